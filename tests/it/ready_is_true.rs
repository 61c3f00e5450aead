//! Promise: `/readyz` is true. A hub whose database was full is ready again as soon as there is room, and one whose
//! database is damaged never is, nor does it acknowledge anything.

use std::io::Write;

use eventflow::{event::code, metrics::Readiness};

use crate::support::{PATIENCE, Raw, TestHub, engine};

async fn publish(link: &mut Raw, n: usize) -> Vec<String> {
    let data = format!("\"{}\"", "x".repeat(20_000));
    link.ask(&["publish", &n.to_string(), &format!("e{n}"), "orders", "created", "o-1", "", &data]).await
}

/// Waits until the readiness is as wanted, and gives it back.
async fn state(hub: &TestHub, what: &str, wanted: impl FnMut(&Readiness) -> bool) -> Readiness {
    let mut readiness = hub.handle.readiness();
    let state = tokio::time::timeout(PATIENCE, readiness.wait_for(wanted)).await;
    state.unwrap_or_else(|_| panic!("{what}")).unwrap().clone()
}

fn is_degraded(readiness: &Readiness) -> bool {
    matches!(readiness, Readiness::Degraded { .. })
}

#[tokio::test]
async fn a_hub_that_has_room_again_is_ready_without_a_new_event() {
    if engine::is_only_for_sqlite("limits of size and damage of files are the embedded database's") {
        return;
    }
    let hub = TestHub::with(|config| config.store.max_bytes = Some(1 << 20)).await;
    let mut link = hub.v1().await;
    let mut n = 1;
    while publish(&mut link, n).await[0] == "ok" {
        n += 1;
        assert!(n < 1_000, "the database never fills");
    }
    let full = state(&hub, "it says that it is full", is_degraded).await;
    assert!(full.reason().contains("full"), "{full:?}");
    let deleted = link.ask(&["delete", "2000", r#"{"domain":"orders","pid":"o-1"}"#]).await;
    assert_eq!(deleted[0], "ok", "{deleted:?}");
    state(&hub, "it is ready again", Readiness::is_ready).await;
    assert_eq!(publish(&mut link, n + 1).await[0], "ok");
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn a_hub_whose_database_is_damaged_acknowledges_nothing() {
    if engine::is_only_for_sqlite("limits of size and damage of files are the embedded database's") {
        return;
    }
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for n in 1..60 {
        assert_eq!(publish(&mut link, n).await[0], "ok");
    }
    drop(link);
    // It begins anew, so that what it reads comes from the file.
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let path = hub.database();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..].fill(0xA5);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&bytes).unwrap();
    let spoke = hub.spoke().await;
    let mut n = 1;
    while spoke.read(&format!("e{n}")).await.is_ok() {
        n += 1;
        assert!(n < 60, "the damage isn't met");
    }
    let damaged = state(&hub, "it says that it is damaged", is_degraded).await;
    assert!(damaged.reason().contains("restore a backup"), "{damaged:?}");
    let mut link = hub.v1().await;
    let refused = publish(&mut link, 100).await;
    assert_eq!(&refused[..1], ["err"], "{refused:?}");
    assert_eq!(refused[2], code::DB_UNAVAILABLE, "{refused:?}");
    assert!(is_degraded(&hub.handle.readiness().borrow()));
    spoke.close().await;
    drop(link);
    hub.stop().await;
}
