//! A spoke of several hubs.

mod ask;
mod consume;
mod publish;
mod subscribe;

use std::{collections::HashMap, sync::Mutex};

use super::*;
use crate::spoke::Status;

const IDS: [&str; 3] = ["HUB-A", "HUB-B", "HUB-C"];

/// Hubs that are there, by their ports.
#[derive(Default)]
struct Ports(Mutex<HashMap<u16, mpsc::UnboundedSender<DuplexStream>>>);

impl Connector for Ports {
    fn open<'a>(&'a self, hub: &'a HubAddress) -> Opening<'a> {
        Box::pin(async {
            let away = || Fault::retryable(code::NO_HUB, "nobody listens", Duration::ZERO);
            let (near, far) = duplex(1 << 20);
            let listening = self.0.lock().unwrap().get(&hub.port).cloned();
            listening.ok_or_else(away)?.send(far).map_err(|_| away())?;
            Ok(Box::new(near) as Box<dyn Io>)
        })
    }
}

/// One of them.
struct One {
    id: &'static str,
    port: u16,
    ports: Arc<Ports>,
    streams: mpsc::UnboundedReceiver<DuplexStream>,
}

impl One {
    fn new(number: u16, ports: &Arc<Ports>) -> Self {
        let (sender, streams) = mpsc::unbounded_channel();
        ports.0.lock().unwrap().insert(number, sender);
        Self { id: IDS[usize::from(number)], port: number, ports: ports.clone(), streams }
    }

    fn address(&self) -> HubAddress {
        HubAddress { id: Some(self.id.to_owned()), host: "hub.test".to_owned(), port: self.port }
    }

    async fn linked(&mut self, hubs: &[HubAddress]) -> FakeLink {
        let io = timeout(PATIENCE, self.streams.recv()).await.expect("a connection in time").unwrap();
        let mut link = FakeLink { io: Box::new(io), reader: Reader::new(Limits::default()) };
        link.welcome_as(self.id, hubs.to_vec(), limits()).await;
        link
    }

    /// Nobody listens there any more.
    fn away(&mut self) {
        self.ports.0.lock().unwrap().remove(&self.port);
    }

    /// It listens again.
    fn back(&mut self) {
        let (sender, streams) = mpsc::unbounded_channel();
        self.ports.0.lock().unwrap().insert(self.port, sender);
        self.streams = streams;
    }
}

/// A spoke that was told of one hub, the hub and the other one that it learned of, and the links to both.
struct Two {
    spoke: Spoke,
    ports: Arc<Ports>,
    a: One,
    b: One,
    to_a: FakeLink,
    to_b: FakeLink,
}

async fn two() -> Two {
    two_by(config()).await
}

async fn two_by(mut config: SpokeConfig) -> Two {
    let ports = Arc::new(Ports::default());
    let (mut a, mut b) = (One::new(0, &ports), One::new(1, &ports));
    config.hubs = vec![HubAddress { id: None, ..a.address() }];
    let listed = [a.address(), b.address()];
    let connecting = Spoke::connect_by(config, ports.clone(), credentials());
    let (spoke, to_a) = tokio::join!(connecting, a.linked(&listed));
    let (spoke, to_b) = (spoke.unwrap(), b.linked(&listed).await);
    up(&spoke, 2).await;
    Two { spoke, ports, a, b, to_a, to_b }
}

/// Waits until so many links are up.
async fn up(spoke: &Spoke, links: usize) -> Status {
    let wanted = |status: &Status| status.links.iter().filter(|link| link.hub.is_some()).count() == links;
    timeout(PATIENCE, spoke.status_when(wanted)).await.expect("links in time")
}

/// Waits for something while a link stays alive and is asked nothing.
async fn meanwhile<T>(link: &mut FakeLink, waiting: impl Future<Output = T>) -> T {
    tokio::select! {
        value = waiting => value,
        other = link.work() => panic!("nothing may be asked: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_spoke_that_knows_one_hub_learns_of_the_others_and_links_to_each() {
    let mut two = two().await;
    let status = two.spoke.status();
    assert_eq!(status.hub.as_deref(), Some("HUB-A"), "the first one comes first");
    let hubs: Vec<_> = status.links.iter().map(|link| link.hub.as_deref().unwrap()).collect();
    assert_eq!(hubs, ["HUB-A", "HUB-B"]);
    // One that comes later is told of.
    let mut c = One::new(2, &two.ports);
    two.to_b.send(Reply::Online(c.address())).await;
    let _to_c = c.linked(&[]).await;
    up(&two.spoke, 3).await;
    // Told again, it is known.
    two.to_a.send(Reply::Online(c.address())).await;
    two.to_a.send(Reply::Online(two.a.address())).await;
    two.to_a.send(Reply::Ping(1)).await;
    assert_eq!(two.to_a.request().await, Request::Pong(1));
    assert_eq!(two.spoke.status().links.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_two_addresses_lead_to_has_one_link() {
    let ports = Arc::new(Ports::default());
    let (mut a, mut other) = (One::new(0, &ports), One::new(1, &ports));
    other.id = a.id;
    let mut config = config();
    config.hubs = vec![HubAddress { id: None, ..a.address() }, HubAddress { id: None, ..other.address() }];
    let connecting = Spoke::connect_by(config, ports.clone(), credentials());
    let (spoke, to_a) = tokio::join!(connecting, a.linked(&[]));
    let spoke = spoke.unwrap();
    let mut double = other.linked(&[]).await;
    assert_eq!(double.next().await, None, "it is closed");
    timeout(PATIENCE, spoke.status_when(|status| status.links.len() == 1)).await.unwrap();
    // It is one more way to the hub.
    a.away();
    drop(to_a);
    let _again = other.linked(&[]).await;
    up(&spoke, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_gone_for_a_minute_is_given_up_and_found_again_when_it_is_named() {
    let Two { spoke, mut b, mut to_a, to_b, .. } = two().await;
    b.away();
    drop(to_b);
    let began = tokio::time::Instant::now();
    meanwhile(&mut to_a, spoke.status_when(|status| status.links.len() == 1)).await;
    assert_eq!(began.elapsed().as_secs(), 60);
    assert_eq!(spoke.status().links_lost, 1, "what it counted stays counted");
    b.back();
    to_a.send(Reply::Online(b.address())).await;
    let _to_b = b.linked(&[]).await;
    up(&spoke, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_configured_hub_is_never_given_up() {
    let Two { spoke, mut a, to_a, mut to_b, b: _b, .. } = two().await;
    a.away();
    drop(to_a);
    meanwhile(&mut to_b, tokio::time::sleep(Duration::from_secs(600))).await;
    assert_eq!(spoke.status().links.len(), 2);
    a.back();
    let _to_a = a.linked(&[]).await;
    up(&spoke, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_refuses_the_spoke_for_good_ends_it_only_if_all_do() {
    let Two { spoke, mut a, mut b, mut to_a, mut to_b, .. } = two().await;
    let fault = Fault::refused(code::CERTIFICATE, "the certificate is of another root");
    a.away();
    to_a.send(Reply::Bye(fault.clone())).await;
    up(&spoke, 1).await;
    assert!(!spoke.status().closed);
    // It is tried again all the same.
    a.back();
    let mut to_a = a.linked(&[]).await;
    up(&spoke, 2).await;
    a.away();
    b.away();
    to_a.send(Reply::Bye(fault.clone())).await;
    to_b.send(Reply::Bye(fault.clone())).await;
    let ended = timeout(PATIENCE, spoke.status_when(|status| status.closed)).await.unwrap();
    assert!(ended.closed);
    let error = spoke.subscribe("orders", "*").await.unwrap_err();
    assert_eq!(error.code(), code::CERTIFICATE);
}

#[tokio::test(start_paused = true)]
async fn close_ends_all_links() {
    let Two { spoke, mut to_a, mut to_b, .. } = two().await;
    let closing = tokio::spawn({
        let spoke = spoke.clone();
        async move { spoke.close().await }
    });
    assert_eq!((to_a.next().await, to_b.next().await), (None, None));
    drop((to_a, to_b));
    assert!(closing.await.unwrap().is_clean());
    assert!(spoke.status().closed);
}

#[tokio::test(start_paused = true)]
async fn without_a_handle_all_links_end() {
    let Two { spoke, mut to_a, mut to_b, .. } = two().await;
    drop(spoke);
    assert_eq!((to_a.next().await, to_b.next().await), (None, None));
}
