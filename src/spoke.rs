//! The client: publish, subscribe, consume and read over links that restore themselves.
//!
//! A [`Spoke`] is a cheap handle; one task owns the socket of each link. When a link is lost its task connects again
//! with back-off and jitter, restores subscriptions and consumers and sends again, under the same ids and in
//! order, each publish that is not acknowledged: the hub takes it once.
//!
//! Where several hubs share a database, the spoke learns of all that live and keeps a link to each: it gets the events of
//! every hub, publishes those of one process at one of them, and what a lost link leaves it sends to another.
//!
//! ```no_run
//! use eventflow::{pki::Bundle, spoke::{Consume, Publish, Spoke, SpokeConfig}};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let bundle = Bundle::read("eventflow-data/operator.toml")?;
//! let spoke = Spoke::connect(SpokeConfig::from_bundle(bundle)).await?;
//!
//! let consumer = spoke
//!     .consume(Consume::new("orders", "created").concurrency(4), |event| async move {
//!         println!("{} {}", event.id, event.data);
//!         Ok::<(), std::io::Error>(())
//!     })
//!     .await?;
//!
//! let order = serde_json::json!({ "total": 12 });
//! let done = spoke.publish(Publish::new("orders", "created", "order-1").data(&order)?).await?;
//! println!("stored at {} as number {}", done.timestamp, done.seq);
//!
//! consumer.stop().await?;
//! spoke.close().await;
//! # Ok(())
//! # }
//! ```

mod backoff;
mod batch;
mod caught;
mod change;
mod claim;
mod command;
mod config;
mod consume;
mod consumer;
mod credentials;
mod dead;
mod dial;
mod error;
mod fleet;
mod group;
mod handlers;
mod hold;
mod lane;
mod log;
mod nack;
mod nudge;
mod outcome;
mod pids;
mod publish;
mod pulse;
mod query;
mod recurring;
mod renewal;
mod request;
mod schedule;
mod schedules;
mod session;
mod state;
mod subscriber;
mod subscription;
mod task;
#[cfg(test)]
mod tests;
mod time;
mod wait;
mod write;

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{sync::Semaphore, time::Instant};

pub use self::{
    change::Association,
    claim::Claim,
    config::SpokeConfig,
    consume::{Claims, Consume},
    consumer::{Consumer, ConsumerCounts},
    dead::DeadReader,
    error::{
        ChangeError, ConnectError, ConsumeError, GroupError, PublishError, ReadError, RequestError,
        ScheduleError, SettleError, StateError, SubscribeError, Tried, WaitError,
    },
    group::{ConsumerGroup, GroupChange},
    handlers::{BoxError, Handlers, Received, Unhandled},
    hold::Hold,
    log::LogReader,
    nack::Nack,
    pids::PidReader,
    publish::{Pending, Publish},
    recurring::{RanNow, Recurred, Recurrence, RecurringDetails, RecurringReader},
    renewal::{RenewError, Renewal},
    schedule::{Schedule, Scheduled},
    schedules::ScheduleReader,
    subscriber::{Subscriber, SubscriberCounts},
    subscription::{Delivery, Subscription},
    time::Timestamp,
    wait::Wait,
};
use self::{
    command::{Found, SubscribeCommand},
    credentials::Credentials,
    dial::{Connector, Dialer, NoLink, Tls},
    fleet::Fleet,
    lane::Lane,
    query::Query,
    renewal::Renewer,
};
pub use crate::{
    event::Position,
    wire::{Since, StartAt},
};
use crate::{
    event::{Event, EventId, Pattern},
    wire::{Answer, Trace},
};

/// A client of the broker: a cheap handle to its links.
#[derive(Clone)]
pub struct Spoke {
    inner: Arc<Inner>,
}

struct Inner {
    config: SpokeConfig,
    fleet: Arc<Fleet>,
    /// Room of the publish buffer, in bytes.
    room: Arc<Semaphore>,
    ids: Mutex<ulid::Generator>,
    credentials: Arc<Credentials>,
}

/// How the links stand, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The id of the first hub whose link is up.
    pub hub: Option<Arc<str>>,
    /// Why no link is up, while there is none.
    pub trouble: Option<Arc<str>>,
    /// Links lost so far.
    pub links_lost: u64,
    /// Publishes sent and not answered.
    pub publishes_in_flight: usize,
    /// Publishes that wait for the window, the link or a retry.
    pub publishes_waiting: usize,
    /// Publishes sent again so far, after a lost link or a refusal for now.
    pub publishes_retried: u64,
    /// Subscriptions that live.
    pub subscriptions: usize,
    /// Times that a subscription lagged behind.
    pub lagged: u64,
    /// Consumers that live.
    pub consumers: usize,
    /// Claims of the present links that are not settled.
    pub claims_held: usize,
    /// Claims settled too late: their link was gone, or the hub had given them away.
    pub claims_lost: u64,
    /// The spoke is closed: this handle does nothing any more.
    pub closed: bool,
    /// Each link by itself: one for each hub that the spoke knows, the first one first.
    pub links: Vec<LinkStatus>,
}

/// How one link stands, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStatus {
    /// `host:port` of its hub, with its id if that was known beforehand.
    pub address: Arc<str>,
    /// The hub's id while the link is up.
    pub hub: Option<Arc<str>>,
    /// Why it isn't up, once it was lost.
    pub trouble: Option<Arc<str>>,
    /// How often it was lost so far.
    pub links_lost: u64,
    /// Publishes sent on it and not answered.
    pub publishes_in_flight: usize,
    /// Its claims that are not settled.
    pub claims_held: usize,
}

/// What was still open when a spoke closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Publishes that were not acknowledged; each caller was told.
    pub publishes: usize,
    /// Claims that were not settled: the hub offers their events again.
    pub claims: usize,
    /// Other requests without an answer.
    pub requests: usize,
}

impl Drained {
    /// Whether everything was answered and settled.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

impl Spoke {
    /// Connects, and returns with the first link. From then on the spoke connects again by itself, and to the other hubs that
    /// it is configured with or hears of.
    ///
    /// # Errors
    /// [`ConnectError`] says for each address what happened: after
    /// [`connect_deadline`](SpokeConfig::connect_deadline), or at once if every hub refuses for good.
    pub async fn connect(config: SpokeConfig) -> Result<Self, ConnectError> {
        let credentials = Arc::new(Credentials::new(config.bundle.clone()));
        credentials.that_hold()?;
        let tls = Arc::new(Tls::new(credentials.clone()));
        let spoke = Self::connect_by(config, tls, credentials).await?;
        tokio::spawn(spoke.renewer().run(spoke.inner.fleet.board().clone()));
        Ok(spoke)
    }

    async fn connect_by(
        config: SpokeConfig,
        connector: Arc<dyn Connector>,
        credentials: Arc<Credentials>,
    ) -> Result<Self, ConnectError> {
        if config.hubs.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        let now = Instant::now();
        let mut dialer = Dialer::new(&config, connector.clone(), config.hubs.clone(), now);
        let waited = config.connect_deadline;
        let link = dialer.link(Some(now + waited)).await.map_err(|end| match end {
            NoLink::Late => ConnectError::NoHub { waited, tried: dialer.tried() },
            NoLink::Refused(fault) => ConnectError::Refused { tried: dialer.tried(), fault },
        })?;
        let inner = Inner {
            room: Arc::new(Semaphore::new(config.publish_buffer.clamp(1, u32::MAX as usize))),
            ids: Mutex::new(ulid::Generator::new()),
            credentials,
            fleet: Fleet::start(config.clone(), connector, dialer, link),
            config,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Subscribes to events whose domain and name match: every subscriber gets each of them, live.
    ///
    /// ```no_run
    /// use eventflow::spoke::{Delivery, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut orders = spoke.subscribe("orders", "*").await?;
    /// while let Some(delivery) = orders.next().await {
    ///     match delivery {
    ///         Delivery::Event { event, seq } => println!("{seq}: {}", event.name),
    ///         Delivery::Gap { from, to } => println!("events from {from} to {to} may be missing"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SubscribeError`] if a pattern breaks the rules, the hub refuses or doesn't answer in time.
    pub async fn subscribe(&self, domain: &str, name: &str) -> Result<Subscription, SubscribeError> {
        self.subscription(domain, name, None).await
    }

    /// Subscribes from a point on: what the hub keeps from there comes first, then live events, in one order and each
    /// once. A link that is lost, a hub that is restarted and a reader that is slow change nothing of it: the subscription
    /// goes on where it ended.
    ///
    /// ```no_run
    /// use eventflow::spoke::{Delivery, Since, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let since = match std::fs::read_to_string("position") {
    ///     Ok(kept) => Since::Position(kept.parse()?),
    ///     Err(_) => Since::All,
    /// };
    /// let mut orders = spoke.subscribe_from("orders", "*", since).await?;
    /// while let Some(delivery) = orders.next().await {
    ///     match delivery {
    ///         Delivery::Event { event, .. } => println!("{}", event.name),
    ///         Delivery::Removed { events, .. } => println!("{events} events are no longer there"),
    ///         _ => {}
    ///     }
    ///     std::fs::write("position", orders.position().to_string())?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Spoke::subscribe`]. The hub refuses an event that it hasn't published, and a position of another hub.
    pub async fn subscribe_from(
        &self,
        domain: &str,
        name: &str,
        since: impl Into<Since>,
    ) -> Result<Subscription, SubscribeError> {
        self.subscription(domain, name, Some(since.into())).await
    }

    async fn subscription(
        &self,
        domain: &str,
        name: &str,
        since: Option<Since>,
    ) -> Result<Subscription, SubscribeError> {
        let (domain, name) = (Pattern::parse(domain)?, Pattern::parse(name)?);
        let config = &self.inner.config;
        let lane = Arc::new(Lane::new(config.subscription_events, config.subscription_bytes));
        let fleet = self.inner.fleet.clone();
        let (replays, left) = (since.is_some(), Position::default());
        let subscribe = SubscribeCommand { domain, name, since, shared: false, left, lane: lane.clone() };
        let key = fleet.key();
        // Made before a hub has confirmed it: given up while waiting, its drop takes it off.
        let mut subscription = Subscription::new(key, lane, fleet.clone(), replays);
        subscription.begins(fleet.subscribe(key, subscribe).await?);
        Ok(subscription)
    }

    /// Consumes by a handler: `Ok` is an ack; an error, or a panic, is a nack with its text. The event is then tried
    /// again as its group's back-off says, or as a [`Nack`] does that is the error or among its sources.
    ///
    /// Handlers run as tasks, at most [`concurrency`](Consume::concurrency) at once, begun in the order in
    /// which events came. They may take as long as they like, since leases are extended meanwhile; what blocks a
    /// thread belongs into `tokio::task::spawn_blocking`, lest it hold up the task that does so. An event may
    /// come more than once: when a link or a claim is lost before its ack is confirmed.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use eventflow::{event::Event, spoke::{Consume, Nack, Spoke}};
    ///
    /// # async fn charge(event: &Event) -> Result<u32, std::io::Error> { Ok(200) }
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let consume = Consume::new("orders", "created").group("billing").handler_timeout(Duration::from_secs(300));
    /// let consumer = spoke
    ///     .consume(consume, |event| async move {
    ///         match charge(&event).await.map_err(|error| Nack::new(error.to_string()))? {
    ///             404 => Err(Nack::new("no such customer").give_up()),
    ///             429 => Err(Nack::new("the bank is busy").after(Duration::from_secs(60))),
    ///             _ => Ok(()),
    ///         }
    ///     })
    ///     .await?;
    /// # consumer.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConsumeError`] if a pattern or group breaks the rules, the hub refuses or doesn't answer in time.
    pub async fn consume<H, F, E>(&self, consume: Consume, mut handler: H) -> Result<Consumer, ConsumeError>
    where
        H: FnMut(Event) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        let manner = consume.manner();
        let claims = self.claims(consume).await?;
        Ok(Consumer::start(claims, manner, move |claim| handler(claim.event().clone())))
    }

    /// Consumes by pulling claims, each to be settled by [`Claim::ack`], [`Claim::nack`] or
    /// [`Claim::release`].
    ///
    /// ```no_run
    /// use eventflow::spoke::{Consume, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut claims = spoke.claims(Consume::new("orders", "created")).await?;
    /// while let Some(claim) = claims.next().await {
    ///     println!("{} for the {}. time", claim.event().id, claim.attempt());
    ///     claim.ack().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Spoke::consume`].
    pub async fn claims(&self, consume: Consume) -> Result<Claims, ConsumeError> {
        let fleet = self.inner.fleet.clone();
        let consume = consume.check()?;
        let key = fleet.key();
        // Made before a hub has confirmed it: given up while waiting, its drop ends it.
        let claims = Claims::new(key, consume.lane.clone(), fleet.clone());
        fleet.consume(key, consume).await?;
        Ok(claims)
    }

    /// Reads an event by its id.
    ///
    /// # Errors
    /// [`ReadError::NotFound`] if there is none, else why it couldn't be read.
    pub async fn read(&self, id: &str) -> Result<Event, ReadError> {
        let found = self.inner.fleet.query(Query::Read(EventId::parse(id)?)).await?;
        found.events.into_iter().next().ok_or_else(|| ReadError::NotFound { id: id.to_owned() })
    }

    /// Reads an event and what became of it.
    ///
    /// # Errors
    /// [`ReadError::NotFound`] if there is none, else why it couldn't be read.
    pub async fn show(&self, id: &str) -> Result<(Event, Trace), ReadError> {
        let Found { events, answer } = self.inner.fleet.query(Query::Show(EventId::parse(id)?)).await?;
        match (events.into_iter().next(), answer) {
            (Some(event), Answer::Trace(trace)) => Ok((event, *trace)),
            _ => Err(ReadError::NotFound { id: id.to_owned() }),
        }
    }

    /// Renews the certificate now. That is done by itself in time, at two thirds of the certificate's life; by hand it
    /// is of use before a long time without a link. The link stays, the next one is made with the new certificate, and
    /// the bundle's file is replaced (mode 0600) if it was read from one.
    ///
    /// # Errors
    /// [`RenewError`]: the hub refuses, doesn't answer in time, or the file can't be replaced.
    pub async fn renew(&self) -> Result<Renewal, RenewError> {
        self.renewer().renew().await
    }

    fn renewer(&self) -> Renewer {
        Renewer { credentials: self.inner.credentials.clone(), fleet: Arc::downgrade(&self.inner.fleet) }
    }

    /// How the links stand now.
    #[must_use]
    pub fn status(&self) -> Status {
        self.inner.fleet.board().status()
    }

    /// Waits until the links stand so. If the spoke ends first, gives how it ended.
    pub async fn status_when(&self, wanted: impl FnMut(&Status) -> bool) -> Status {
        self.inner.fleet.board().when(wanted).await
    }

    /// Closes all links for all handles: consumers stop, publishes are answered, running handlers end and are
    /// settled, what is queued is written, and each link is shut down and read to its end; all of it within
    /// [`close_deadline`](SpokeConfig::close_deadline). New requests are refused meanwhile. Says what was
    /// left.
    pub async fn close(&self) -> Drained {
        self.inner.fleet.close().await
    }

    fn new_id(&self) -> String {
        let mut ids = self.inner.ids.lock().unwrap_or_else(PoisonError::into_inner);
        // Fails only when the random part of one millisecond is used up.
        ids.generate().unwrap_or_else(|_| ulid::Ulid::new()).to_string()
    }
}

impl fmt::Debug for Spoke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spoke").field("status", &self.status()).finish_non_exhaustive()
    }
}
