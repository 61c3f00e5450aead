//! The client against a scripted hub on in-memory streams, with paused time.

mod change;
mod consume;
mod fleet;
mod group;
mod handlers;
mod leases;
mod link;
mod nack;
mod publish;
mod read;
mod request;
mod state;
mod store;
mod subscribe;
#[cfg(feature = "hub")]
mod tls;
mod wait;

use std::{sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::mpsc,
    time::timeout,
};

use super::{
    Publish, Spoke, SpokeConfig,
    dial::{Connector, Io, Opening},
};
use crate::{
    event::{Data, Domain, Event, EventId, Fault, Name, Pid, code},
    pki::{Bundle, Secret},
    wire::{
        Answer, HubAddress, Limits, LinkLimits, ParseLimits, Published, READY, Reader, Reply, Req, Request,
        Welcome,
    },
};

/// More than anything here may take; time is paused, so it costs nothing.
const PATIENCE: Duration = Duration::from_secs(300);

fn limits() -> LinkLimits {
    LinkLimits {
        window_requests: 256,
        window_bytes: 4 << 20,
        data_bytes: 1 << 20,
        record_bytes: (1 << 20) + (64 << 10),
        units: 64,
        credit: 64,
        credit_bytes: 4 << 20,
        subscriptions: 64,
        lease_ms: 30_000,
        ping_ms: 30_000,
        silence_ms: 60_000,
    }
}

/// None: what runs here needs no certificate.
fn credentials() -> Arc<crate::spoke::Credentials> {
    Arc::new(crate::spoke::Credentials::new(config().bundle))
}

fn config() -> SpokeConfig {
    let hub = HubAddress { id: None, host: "hub.test".to_owned(), port: 50001 };
    let mut config = SpokeConfig::from_bundle(Bundle::new("", Secret::new(""), ""));
    config.hubs = vec![hub];
    config
}

/// Gives each stream's far end to the test.
struct Streams(mpsc::UnboundedSender<DuplexStream>);

impl Connector for Streams {
    fn open<'a>(&'a self, _hub: &'a HubAddress) -> Opening<'a> {
        Box::pin(async {
            let (near, far) = duplex(1 << 20);
            self.0.send(far).map_err(|_| Fault::refused(code::NO_HUB, "the test is over"))?;
            Ok(Box::new(near) as Box<dyn Io>)
        })
    }
}

/// The hub's side of all links.
struct FakeHub {
    streams: mpsc::UnboundedReceiver<DuplexStream>,
    connector: Arc<Streams>,
}

impl FakeHub {
    fn new() -> Self {
        let (sender, streams) = mpsc::unbounded_channel();
        Self { streams, connector: Arc::new(Streams(sender)) }
    }

    /// A connected spoke and its first link.
    async fn connected(&mut self, config: SpokeConfig, limits: LinkLimits) -> (Spoke, FakeLink) {
        let connecting = Spoke::connect_by(config, self.connector.clone(), credentials());
        let (spoke, link) = tokio::join!(connecting, async {
            let mut link = self.accept().await;
            link.welcome(limits).await;
            link
        });
        (spoke.unwrap(), link)
    }

    async fn accept(&mut self) -> FakeLink {
        let io = timeout(PATIENCE, self.streams.recv()).await.expect("a connection in time").unwrap();
        FakeLink { io: Box::new(io), reader: Reader::new(Limits::default()) }
    }

    /// The next link, welcomed.
    async fn relinked(&mut self) -> FakeLink {
        let mut link = self.accept().await;
        link.welcome(limits()).await;
        link
    }
}

struct FakeLink {
    io: Box<dyn Io>,
    reader: Reader,
}

impl FakeLink {
    async fn welcome(&mut self, limits: LinkLimits) {
        self.welcome_as("HUB-1.EVENTFLOW-HUB", Vec::new(), limits).await;
    }

    async fn welcome_as(&mut self, hub: &str, hubs: Vec<HubAddress>, limits: LinkLimits) {
        self.io.write_u8(READY).await.unwrap();
        let hello = self.request().await;
        assert!(matches!(hello, Request::Hello(_)), "hello comes first: {hello:?}");
        // A client skips what it doesn't know yet.
        self.io.write_all(b"online\x1fHUB-1\x1f10.0.0.1\x1f50001\x1e").await.unwrap();
        let welcome = Welcome { hub: hub.to_owned(), epoch: 1, limits, hubs, features: Vec::new() };
        self.send(Reply::Welcome(welcome)).await;
    }

    async fn send(&mut self, reply: Reply) {
        let mut out = BytesMut::new();
        reply.encode(&mut out).unwrap();
        self.io.write_all(&out).await.unwrap();
    }

    async fn ok(&mut self, req: Req, answer: Answer) {
        self.send(Reply::Ok { req, answer }).await;
    }

    /// The next request; the end of the link is none.
    async fn next(&mut self) -> Option<Request> {
        let reading = async {
            loop {
                if let Some(record) = self.reader.next().unwrap() {
                    return Some(Request::parse(&record, &ParseLimits { data_bytes: 1 << 20 }).unwrap());
                }
                if self.io.read_buf(self.reader.spare()).await.ok()? == 0 {
                    return None;
                }
            }
        };
        timeout(PATIENCE, reading).await.expect("a request in time")
    }

    async fn request(&mut self) -> Request {
        self.next().await.expect("a request, not the end of the link")
    }

    /// Nothing more comes, however long one waits.
    async fn silence(&mut self) {
        let waited = timeout(Duration::from_secs(20), async {
            assert!(self.reader.next().unwrap().is_none(), "a request too many");
            self.io.read_buf(self.reader.spare()).await
        });
        assert!(waited.await.is_err(), "nothing may come");
    }

    /// The next request that isn't a ping; pings are answered.
    async fn work(&mut self) -> Request {
        loop {
            match self.request().await {
                Request::Ping(n) => self.send(Reply::Pong(n)).await,
                other => return other,
            }
        }
    }

    async fn refuse(&mut self, req: Req, code: &str) {
        self.send(Reply::Err { req, fault: Fault::refused(code, "no") }).await;
    }

    async fn publish(&mut self) -> (Req, EventId) {
        match self.request().await {
            Request::Publish { req, event, .. } => (req, event.id),
            other => panic!("expected a publish: {other:?}"),
        }
    }

    async fn committed(&mut self, req: Req, fresh: bool, seq: u64) {
        self.ok(req, Answer::Published(Published { fresh, timestamp: 1000, seq, state: None })).await;
    }
}

fn publish(id: &str) -> Publish {
    Publish::new("orders", "created", "order-1").id(id)
}

fn event(id: &str) -> Event {
    Event {
        id: EventId::parse(id).unwrap(),
        timestamp: 1000,
        domain: Domain::parse("orders").unwrap(),
        name: Name::parse("created").unwrap(),
        pid: Pid::parse("order-1").unwrap(),
        rid: None,
        data: Data::parse("{}").unwrap(),
    }
}

fn busy(wait: u64) -> Fault {
    Fault::retryable(code::HUB_BUSY, "the hub is busy", Duration::from_millis(wait))
}
