//! The played parties work with each other, before anything of ours is judged by them.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    scratch::{PATIENCE, Scratch, until},
    stack::{deployment::Deployment, hub::Hub, spoke::Spoke},
};

/// Few rounds: nothing is kept secret here.
const ROUNDS: u32 = 1_000;

#[tokio::test]
async fn npm_spokes_and_npm_hubs_find_each_other() {
    let Some(scratch) = Scratch::new().await else { return };
    let deployment = Deployment::new(&scratch.url, "a phrase", ROUNDS);
    deployment.database.create_tables().await;
    let first = Hub::start(&deployment).await;
    let (publisher, consumer) = (Spoke::connected(&deployment).await, Spoke::connected(&deployment).await);
    let mut seen = publisher.subscribe("orders", "created").await;
    consumer
        .consume("orders", "*", |event| if event.name == "created" { Ok(()) } else { Err("no".into()) })
        .await;
    let second = Hub::start(&deployment).await;
    until("the spokes are told of the second hub", || async {
        publisher.hubs().await.len() == 2 && consumer.hubs().await.len() == 2
    })
    .await;
    assert_eq!(first.heard_online(), [second.id()]);

    until("an event is consumed", || async {
        publisher.publish(("orders", "created", "p1"), r#"{"a":1}"#).await;
        deployment.database.published_where("success is not null").await > 0
    })
    .await;
    publisher.publish(("orders", "lost", "p1"), "{}").await;
    let event = timeout(PATIENCE, seen.recv()).await.unwrap().unwrap();
    assert_eq!((&*event.pid, &*event.data), ("p1", r#"{"a":1}"#));
    until("a consumer's error is its outcome", || async {
        deployment.database.published_where("failed is not null and success is null").await == 1
    })
    .await;
    let waiting = publisher.wait("orders", "p2", &["success", "failed"], Duration::from_secs(10));
    let publishing = async {
        until("the hubs know", || async {
            consumer.publish(("orders", "success", "p2"), "{}").await;
            seen.is_closed()
        })
        .await;
    };
    let (name, ()) = tokio::join!(waiting, publishing);
    assert_eq!(name.as_deref(), Some("success"));
    for spoke in [publisher, consumer] {
        spoke.close().await;
    }
    second.stop().await;
    first.stop().await;
    scratch.drop_database().await;
}
