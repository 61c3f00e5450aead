//! Promise: a hub starts and stops inside any program, on disk or in memory, one or several of them.

use std::{
    future::Future,
    net::TcpStream,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use eventflow::{
    config::HubConfig,
    hub::{Hub, HubHandle},
    metrics::{ActorKind, Readiness},
    spoke::{Consume, Publish, Spoke, SpokeConfig},
};
use tokio::sync::mpsc;

use crate::support::until;

async fn memory() -> HubHandle {
    Hub::builder().in_memory().free_ports().start().await.expect("the hub starts")
}

async fn disk(folder: &tempfile::TempDir) -> HubHandle {
    let data = folder.path().join("data");
    Hub::builder().data(data).free_ports().start().await.expect("the hub starts")
}

async fn spoke(hub: &HubHandle) -> Spoke {
    Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await.expect("the spoke connects")
}

/// Publishes so many events, and waits until as many are handled.
async fn work(hub: &HubHandle, events: u64) {
    let spoke = spoke(hub).await;
    let (handled, mut done) = mpsc::channel(1);
    let consumer = spoke
        .consume(Consume::new("work", "*"), move |event| {
            let handled = handled.clone();
            async move { handled.send(event).await }
        })
        .await
        .unwrap();
    for n in 0..events {
        spoke.publish(Publish::new("work", "made", format!("p-{n}"))).await.unwrap();
        done.recv().await.unwrap();
    }
    consumer.stop().await.unwrap();
    spoke.close().await;
}

async fn start_work_stop() {
    let hub = memory().await;
    work(&hub, 3).await;
    assert_eq!(hub.metrics().hub.outcomes["success"], 3);
    assert!(hub.shutdown().await.unwrap().is_clean());
}

#[test]
fn in_a_tokio_runtime_of_many_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(start_work_stop());
}

#[test]
fn in_a_tokio_runtime_of_one_thread() {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(start_work_stop());
}

#[test]
fn in_an_actix_system() {
    actix_rt::System::new().block_on(async {
        start_work_stop().await;
        // The host's own system goes on.
        let answer = actix_rt::spawn(async { 7 }).await.unwrap();
        assert_eq!(answer, 7);
        assert!(actix_rt::System::is_registered());
    });
}

#[test]
fn in_an_executor_that_knows_neither() {
    let hub = block_on(memory());
    assert_eq!(*hub.readiness().borrow(), Readiness::Ready);
    TcpStream::connect(hub.info().address).unwrap();
    assert!(block_on(hub.shutdown()).unwrap().is_clean());
}

/// The smallest executor there is.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[tokio::test]
async fn two_hubs_on_disk_know_nothing_of_each_other() {
    let (left, right) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    both(disk(&left).await, disk(&right).await).await;
}

#[tokio::test]
async fn two_hubs_in_memory_know_nothing_of_each_other() {
    both(memory().await, memory().await).await;
}

async fn both(left: HubHandle, right: HubHandle) {
    assert_ne!(left.info().id, right.info().id);
    assert_ne!(left.info().address, right.info().address);
    assert_ne!(left.info().fingerprint, right.info().fingerprint, "each has certificates of its own");
    assert_ne!(left.admin_token().expose(), right.admin_token().expose());
    tokio::join!(work(&left, 2), work(&right, 5));
    let numbers = |hub: &HubHandle| {
        let numbers = hub.metrics();
        (numbers.hub.published, numbers.hub.outcomes["success"])
    };
    assert_eq!((numbers(&left), numbers(&right)), ((2, 2), (5, 5)));
    assert!(left.shutdown().await.unwrap().is_clean());
    work(&right, 1).await;
    assert_eq!(numbers(&right), (6, 6), "one goes on without the other");
    assert!(right.shutdown().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_hub_on_disk_hands_out_the_bundle_that_it_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let hub = disk(&folder).await;
    let file = hub.info().bundle.clone().expect("it is in the data folder");
    assert_eq!(eventflow::pki::Bundle::read(file).unwrap(), hub.bundle());
    hub.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_hub_in_memory_begins_anew() {
    let first = memory().await;
    assert_eq!((&first.info().data, &first.info().bundle), (&None, &None));
    let before = spoke(&first).await;
    before.publish(Publish::new("orders", "created", "order-1").id("e-1")).await.unwrap();
    before.close().await;
    let (id, bundle) = (first.info().id.clone(), first.bundle());
    first.shutdown().await.unwrap();

    let second = memory().await;
    assert_ne!(second.info().id, id);
    assert_eq!(second.info().epoch, 1);
    assert_ne!(second.bundle().root, bundle.root);
    let after = spoke(&second).await;
    assert_eq!(after.log("orders", "order-1").collect(10).await.unwrap(), []);
    after.close().await;
    second.shutdown().await.unwrap();
}

/// The folder that a configuration names is left alone.
#[tokio::test]
async fn in_memory_wins_over_any_folder() {
    let folder = tempfile::tempdir().unwrap();
    let config = HubConfig { data: folder.path().join("data"), ..HubConfig::default() };
    let builder = Hub::builder().in_memory().config(config).free_ports();
    let hub = builder.data(folder.path().join("other")).start().await.unwrap();
    work(&hub, 1).await;
    hub.shutdown().await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_core_that_fails_finds_its_events_in_memory() {
    let hub = memory().await;
    let client = spoke(&hub).await;
    let published = client.publish(Publish::new("work", "made", "p-1")).await.unwrap();
    hub.inject_panic(ActorKind::Journal);
    until("the core is back", async || {
        let restarts = hub.metrics().actor(ActorKind::Journal).map(|journal| journal.restarts);
        restarts == Some(1) && *hub.readiness().borrow() == Readiness::Ready
    })
    .await;
    let next = client.publish(Publish::new("work", "made", "p-2")).await.unwrap();
    assert!(next.seq > published.seq);
    client.close().await;
    work(&hub, 1).await;
    // Its consumer got what nobody had taken before, too.
    assert_eq!(hub.metrics().hub.published, 3);
    assert!(hub.shutdown().await.unwrap().is_clean());
}
