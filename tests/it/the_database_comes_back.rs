//! Promise: a hub whose database server is away says so, tells publishers to try again, and goes on by itself when the
//! server is back, without a restart of its core: nothing that was acked is lost, and nothing has two outcomes.
//!
//! Twice the server is stopped or killed; with `EVENTFLOW_TEST_LONG=1` five times, for 20 s each.

use std::time::Duration;

use eventflow::{
    metrics::{ActorKind, Readiness},
    spoke::{Spoke, SpokeConfig},
};
use tokio::time::timeout;

use crate::support::{
    PATIENCE, TestHub, engine,
    load::{self, Load},
    server::Server,
};

async fn spoke(hub: &TestHub) -> Spoke {
    let mut config = SpokeConfig::from_bundle(hub.bundle());
    config.backoff = (Duration::from_millis(10), Duration::from_millis(200));
    config.publish_deadline = 4 * PATIENCE;
    Spoke::connect(config).await.unwrap()
}

/// A hub on a server of its own.
async fn hub(server: &Server) -> TestHub {
    let folder = tempfile::tempdir().unwrap();
    engine::note(folder.path(), server.url());
    TestHub::on(folder, |_| {}).await
}

async fn state(hub: &TestHub, what: &str, wanted: impl FnMut(&Readiness) -> bool) -> Readiness {
    let mut readiness = hub.handle.readiness();
    let state = timeout(PATIENCE, readiness.wait_for(wanted)).await;
    state.unwrap_or_else(|_| panic!("{what}")).unwrap().clone()
}

fn is_degraded(readiness: &Readiness) -> bool {
    matches!(readiness, Readiness::Degraded { .. })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_and_nothing_is_lost() {
    let Some(server) = Server::start() else { return };
    let hub = hub(&server).await;
    let publishers = vec![spoke(&hub).await, spoke(&hub).await];
    let workers = vec![spoke(&hub).await, spoke(&hub).await];
    let rate = if load::is_long() { 500 } else { 100 };
    let load = Load::start(publishers, workers, rate).await;
    let (times, away) = if load::is_long() { (5, 20) } else { (2, 3) };
    for time in 0..times {
        load.acks(50).await;
        if time % 2 == 0 {
            server.stop();
        } else {
            server.kill();
        }
        let told = state(&hub, "it says that the database is away", is_degraded).await;
        assert!(told.reason().contains("database"), "{told:?}");
        let acked = load.acked();
        // Not a guess at how long something takes: that long the server is away.
        tokio::time::sleep(Duration::from_secs(away)).await;
        assert!(is_degraded(&hub.handle.readiness().borrow()), "it is ready without a database");
        assert_eq!(load.acked(), acked, "acked without a database");
        server.start_again();
        state(&hub, "it is ready again", Readiness::is_ready).await;
    }
    load.acks(50).await;
    let tally = load.finish().await;
    println!("{times} times without a database\n{tally}");
    assert_eq!(tally.acked.len(), tally.published, "each publish was acked in the end");
    for kind in [ActorKind::Journal, ActorKind::Deliveries, ActorKind::Scheduler] {
        assert_eq!(hub.handle.metrics().actor(kind).unwrap().restarts, 0, "{kind:?}");
    }
    let (database, id) = (hub.database(), hub.handle.info().id.clone());
    let _folder = hub.stop().await;
    tally.check(database, &id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn even_if_nobody_writes_it_is_told() {
    let Some(server) = Server::start() else { return };
    let hub = hub(&server).await;
    server.stop();
    let told = state(&hub, "it says that the database is away", is_degraded).await;
    assert!(told.reason().contains("on a server, whether that runs"), "{told:?}");
    server.start_again();
    state(&hub, "it is ready again", Readiness::is_ready).await;
    let client = spoke(&hub).await;
    client.close().await;
    hub.stop().await;
}
