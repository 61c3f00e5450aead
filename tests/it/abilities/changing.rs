//! Associations, deletion, certificates, and how the link stands.

use eventflow::spoke::{Association, Spoke, SpokeConfig};
use serde_json::json;

use super::place::Place;
use crate::support::PATIENCE;

#[tokio::test]
async fn associate_with_a_child_process() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    at.event("e2", "created", json!(null)).await;
    at.spoke.associate("e1", Association::child_process("parcels", "parcel-7")).await.unwrap();
    let answer = at.row("associate with a child process", &[("ID", "e2")], "").await.well().value();
    assert_eq!(answer, json!({ "id": "e2", "associated": true }));
    assert_eq!(at.spoke.child_log("parcels", "parcel-7").collect(9).await.unwrap().len(), 2);
    at.leave().await;
}

#[tokio::test]
async fn associate_with_an_entity() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    at.event("e2", "created", json!(null)).await;
    at.spoke.associate("e1", Association::entity("customer-4")).await.unwrap();
    at.row("associate with an entity", &[("ID", "e2")], "").await.well();
    assert_eq!(at.spoke.entity_log("customer-4").collect(9).await.unwrap().len(), 2);
    at.leave().await;
}

#[tokio::test]
async fn take_an_association_back() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let (parcel, customer) =
        (Association::child_process("parcels", "parcel-7"), Association::entity("customer-4"));
    for association in [&parcel, &customer] {
        at.spoke.associate("e1", association.clone()).await.unwrap();
        at.spoke.dissociate("e1", association.clone()).await.unwrap();
        at.spoke.associate("e1", association.clone()).await.unwrap();
    }
    at.row("take an association back", &[("ID", "e1")], "").await.well();
    at.run("eventflow dissociate e1 --child parcels parcel-7").await.well();
    assert!(at.spoke.entity_log("customer-4").collect(9).await.unwrap().is_empty());
    assert!(at.spoke.child_log("parcels", "parcel-7").collect(9).await.unwrap().is_empty());
    at.leave().await;
}

#[tokio::test]
async fn delete_an_event() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    at.event("e2", "created", json!(null)).await;
    at.spoke.delete("e1").await.unwrap();
    let answer = at.row("delete an event", &[("ID", "e2")], "").await.well().value();
    assert_eq!(answer, json!({ "id": "e2", "deleted": true }));
    assert!(at.spoke.log("orders", "order-1").collect(9).await.unwrap().is_empty());
    at.leave().await;
}

#[tokio::test]
async fn delete_the_log_of_a_process() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    at.event_of("orders", "order-2", "other", "created", json!(null)).await;
    assert_eq!(at.spoke.delete_log("orders", "order-1").await.unwrap(), 1);
    at.event("e2", "created", json!(null)).await;
    at.event("e3", "paid", json!(null)).await;
    let answer = at.row("delete the log of a process", &[], "").await.well().value();
    assert_eq!(answer, json!({ "domain": "orders", "pid": "order-1", "deleted": 2 }));
    let left = at.spoke.domain_log("orders").collect(9).await.unwrap();
    assert_eq!(left.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["other"]);
    at.leave().await;
}

#[tokio::test]
async fn renew_the_certificate_before_its_time() {
    let at = Place::new().await;
    let before = at.bundle();
    // With the file that the command renews too.
    let spoke = Spoke::connect(SpokeConfig::from_bundle(at.bundle())).await.unwrap();
    spoke.renew().await.unwrap();
    spoke.close().await;
    let between = at.bundle();
    assert!(before.cert != between.cert && before.key != between.key, "by Rust");
    at.row("renew the certificate before its time", &[], "").await.well();
    let after = at.bundle();
    assert!(between.cert != after.cert && between.key != after.key, "by the command");
    at.run("eventflow publish orders created").await.well();
    at.leave().await;
}

#[tokio::test]
async fn how_the_link_stands() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let hub = at.spoke.status().hub.unwrap();
    let said = at.row("how the link stands", &[("ID", "e1")], "").await.well();
    assert!(said.stderr.contains(&*hub), "{said:?}");
    let there = at.spoke.status_when(|status| status.hub.is_some()).await;
    assert_eq!((there.hub.as_deref(), there.closed), (Some(&*hub), false));

    let spoke = at.spoke.clone();
    let watching = tokio::spawn(async move { spoke.status_when(|status| status.closed).await });
    tokio::task::yield_now().await;
    assert!(!watching.is_finished(), "it isn't closed yet");
    at.leave().await;
    let closed = tokio::time::timeout(PATIENCE, watching).await.expect("it hears of it").unwrap();
    assert!(closed.closed, "{closed:?}");
}
