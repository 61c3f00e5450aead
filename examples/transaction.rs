//! An application that keeps its orders in the hub's own database: an order and the event that tells of it are committed
//! together, or neither is. No outbox to drain, no event of an order that was rolled back.

use std::time::Duration;

use eventflow::hub::Hub;
use eventflow::spoke::{Consume, Spoke, SpokeConfig};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseBackend, DatabaseConnection, DatabaseTransaction,
    Statement, TransactionTrait,
};
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error>;

/// Opens the hub's database as any SQLite client may: with foreign keys on, and patience for the other writer.
async fn open(database: &std::path::Path) -> Result<DatabaseConnection, Failure> {
    let mut options = ConnectOptions::new(format!("sqlite://{}", database.display()));
    options.max_connections(1).sqlx_logging(false);
    let database = Database::connect(options).await?;
    database.execute_unprepared("PRAGMA foreign_keys = ON").await?;
    database.execute_unprepared("PRAGMA busy_timeout = 5000").await?;
    database.execute_unprepared("PRAGMA synchronous = FULL").await?;
    database
        .execute_unprepared(
            "CREATE TABLE IF NOT EXISTS shop_order (number TEXT PRIMARY KEY, total INTEGER NOT NULL)",
        )
        .await?;
    Ok(database)
}

/// Writes an order and its event into the transaction. Returns the event's id.
async fn order(transaction: &DatabaseTransaction, number: &str, total: u32) -> Result<String, Failure> {
    let run = async |sql: &str, values: Vec<sea_orm::Value>| {
        transaction.execute_raw(Statement::from_sql_and_values(DatabaseBackend::Sqlite, sql, values)).await
    };
    // A stable id: whoever repeats this repeats the same event.
    let id = format!("{number}-created");
    let data = serde_json::json!({ "total": total }).to_string();
    run("INSERT INTO shop_order (number, total) VALUES (?, ?)", vec![number.into(), total.into()]).await?;
    run(
        "INSERT INTO event (id, domain, pid, name, data) VALUES (?, 'orders', ?, 'created', ?)",
        vec![id.as_str().into(), number.into(), data.into()],
    )
    .await?;
    run("INSERT INTO event_published (event_id, publisher) VALUES (?, 'SHOP')", vec![id.as_str().into()])
        .await?;
    Ok(id)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("eventflow-transaction-{}", std::process::id()));
    let mut config = eventflow::config::HubConfig { data: folder.clone(), ..Default::default() };
    config.hub.internal_port = 0;
    config.admin.enabled = false;
    let hub = Hub::builder().config(config).start().await?;
    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
    let (handled, mut seen) = mpsc::unbounded_channel();
    let consumer = spoke
        .consume(Consume::new("orders", "created"), move |event| {
            let handled = handled.clone();
            async move { handled.send(event.pid.to_string()) }
        })
        .await?;

    let database = open(&folder.join("eventflow.db")).await?;
    let transaction = database.begin().await?;
    order(&transaction, "order-1", 12).await?;
    transaction.rollback().await?;

    let transaction = database.begin().await?;
    let id = order(&transaction, "order-2", 30).await?;
    transaction.commit().await?;
    // Without it, or if this program ended here, the hub would find the event by itself within some 15 s.
    for event in spoke.nudge([&id]).await? {
        println!("{} is {}", event.id, event.state);
    }

    let first = tokio::time::timeout(Duration::from_secs(20), seen.recv()).await?;
    println!("handled {}", first.unwrap_or_default());
    let orders =
        database.query_all_raw(Statement::from_string(DatabaseBackend::Sqlite, "SELECT 1 FROM shop_order"));
    println!("{} order, {} event published", orders.await?.len(), hub.metrics().hub.published);

    consumer.stop().await?;
    spoke.close().await;
    hub.shutdown().await?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
