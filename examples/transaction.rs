//! An application that keeps its orders in the hub's own database: an order and the event that tells of it are committed
//! together, or neither is. No outbox to drain, and no event of an order that was rolled back.
//!
//! `transaction` uses the SQLite file of a hub in a temporary folder; `transaction URL` an empty database of PostgreSQL, MySQL or
//! MariaDB.

use std::{path::Path, time::Duration};

use eventflow::config::DatabaseUrl;
use eventflow::hub::Hub;
use eventflow::spoke::{Consume, Spoke, SpokeConfig};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend,
    TransactionTrait,
    sea_query::{Expr, ExprTrait, Query},
};
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error>;

/// Opens the hub's database as any application may.
async fn open(url: Option<&str>, folder: &Path) -> Result<DatabaseConnection, Failure> {
    let file = || format!("sqlite://{}", folder.join("eventflow.db").display());
    let mut options = ConnectOptions::new(url.map_or_else(file, str::to_owned));
    // What is set below holds for one connection.
    options.max_connections(1).sqlx_logging(false);
    let database = Database::connect(options).await?;
    let settings: &[&str] = match database.get_database_backend() {
        // Foreign keys, patience for the other writer, and commits that survive a power cut.
        DbBackend::Sqlite => {
            &["PRAGMA foreign_keys = ON", "PRAGMA busy_timeout = 5000", "PRAGMA synchronous = FULL"]
        }
        // The times of an event are defaults there, in the zone of whoever inserts it.
        DbBackend::MySql => &["SET time_zone = '+00:00'"],
        _ => &[],
    };
    let table =
        "CREATE TABLE IF NOT EXISTS shop_order (number VARCHAR(64) PRIMARY KEY, total INTEGER NOT NULL)";
    for statement in settings.iter().chain(&[table]) {
        database.execute_unprepared(statement).await?;
    }
    Ok(database)
}

/// Writes an order and its event into the transaction. Returns the event's id.
async fn order(transaction: &DatabaseTransaction, number: &str, total: u32) -> Result<String, Failure> {
    let insert = async |table: &'static str, row: Vec<(&'static str, Expr)>| {
        let (columns, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
        let insert = Query::insert().into_table(table).columns(columns).values_panic(values).to_owned();
        transaction.execute(&insert).await
    };
    // A stable id: whoever repeats this repeats the same event.
    let id = format!("{number}-created");
    let data = Expr::val(serde_json::json!({ "total": total }).to_string());
    let data = match transaction.get_database_backend() {
        // A text that is bound is no JSON by itself there.
        DbBackend::Postgres => data.cast_as("json"),
        _ => data,
    };
    insert("shop_order", vec![("number", number.into()), ("total", total.into())]).await?;
    let event = vec![
        ("id", id.as_str().into()),
        ("domain", "orders".into()),
        ("pid", number.into()),
        ("name", "created".into()),
        ("data", data),
    ];
    insert("event", event).await?;
    insert("event_published", vec![("event_id", id.as_str().into()), ("publisher", "SHOP".into())]).await?;
    Ok(id)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("eventflow-transaction-{}", std::process::id()));
    let mut config = eventflow::config::HubConfig { data: folder.clone(), ..Default::default() };
    config.hub.internal_port = 0;
    config.admin.enabled = false;
    let url = std::env::args().nth(1);
    let hub = Hub::builder().config(config);
    let hub = match &url {
        Some(url) => hub.database(DatabaseUrl::parse(url)?),
        None => hub,
    };
    let hub = hub.start().await?;
    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
    let (handled, mut seen) = mpsc::unbounded_channel();
    let consumer = spoke
        .consume(Consume::new("orders", "created"), move |event| {
            let handled = handled.clone();
            async move { handled.send(event.pid.to_string()) }
        })
        .await?;

    let database = open(url.as_deref(), &folder).await?;
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
    let orders = Query::select().expr(Expr::val(1)).from("shop_order").to_owned();
    let orders = database.query_all(&orders).await?;
    println!("{} order, {} event published", orders.len(), hub.metrics().hub.published);

    consumer.stop().await?;
    spoke.close().await;
    hub.shutdown().await?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
