//! One link: the session of a spoke or of an npm peer.

mod groups;
mod message;
mod npm;
mod reader;
mod reads;
mod renewal;
mod replays;
mod seats;
mod session;
mod v1;
mod waits;
mod writer;
mod writes;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, fut::wrap_future};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OwnedSemaphorePermit, mpsc, watch},
    task::JoinHandle,
    time::timeout,
};
use tracing::Span;

pub use message::Inbound;

use self::{
    reads::Read,
    replays::Replays,
    session::{Session, Speaks},
    v1::Gathered,
    waits::Waits,
};
use super::{
    collector::Collector,
    deliveries::{self, Deliveries},
    journal::Journal,
    listener::{Closed, Listener},
    mail::{Handle, measured},
    monitor::{Monitor, Notice},
    outlet::{Cut, Outflow, Outlet, Word},
    registry::{self, Registry},
    scheduler::Scheduler,
    warden::Warden,
};
use crate::{
    event::{Fault, Uid, code},
    metrics::{CutReason, Dialect, Label, Meter, Metrics},
    pki::Fingerprint,
    store::Store,
    wire::{self, HubAddress, Limits, ParseLimits, Record, Welcome},
};

/// What every [`Connection`] of a hub start is told.
#[derive(Debug, Clone)]
pub struct ConnectionConfig {
    /// This hub.
    pub hub: Uid,
    /// Sent to v1 links, with the hubs that live by then.
    pub welcome: Welcome,
    /// The hubs that live, this one first.
    pub hubs: watch::Receiver<Arc<[HubAddress]>>,
    /// Sizes of records.
    pub records: Limits,
    /// Sizes within them.
    pub parse: ParseLimits,
    /// Whether spokes may delete what is stored, and cancel schedules.
    pub may_delete: bool,
    /// What may wait to be written, in bytes.
    pub outbound_bytes: usize,
    /// A v1 link is pinged when nothing was sent for so long.
    pub ping: Duration,
    /// A v1 link is cut when nothing was heard for so long; any link, when it takes no bytes for so long.
    pub silence: Duration,
}

/// The actors that a connection works with; new ones after a restart of the core.
#[derive(Debug, Clone)]
pub struct Core {
    /// Commits.
    pub journal: Handle<Journal>,
    /// Subscriptions.
    pub registry: Handle<Registry>,
    /// Claims.
    pub deliveries: Handle<Deliveries>,
    /// Schedules. Connections don't talk to it.
    pub scheduler: Handle<Scheduler>,
    /// What applications put into the database.
    pub collector: Handle<Collector>,
}

impl Core {
    /// Whether all of it is there.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.journal.is_alive()
            && self.registry.is_alive()
            && self.deliveries.is_alive()
            && self.scheduler.is_alive()
            && self.collector.is_alive()
    }
}

/// How long the other end has to read the last words.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Bounds of the interval at which pings and silence are looked at.
const TICK_MIN: Duration = Duration::from_millis(20);
const TICK_MAX: Duration = Duration::from_secs(5);

/// - **Role**: the session of one link: decodes requests, bounds them, hands them to the core; its writer sends
///   what the core puts into the outlet.
/// - **Owns**: the socket (by a reader and a writer task), the session's numbers, the queue of reads, the waits and
///   the subscriptions that replay (a task each).
/// - **Receives**: [`Inbound`] from its reader, one at a time; [`Word`]s from whoever has its outlet.
/// - **Sends**: publishes and changes to the journal, nudges to the collector, wishes and waits to registry and deliveries, verdicts to
///   deliveries, renewals to the warden; [`Closed`] and [`Online`](super::listener::Online) to the listener,
///   [`Notice`]s to the monitor.
/// - **Capacity**: one read at a time; the window bounds publishes, `outbound_bytes` the outlet, 64 reads may queue,
///   1,000 waits be open; the subscriptions that replay hold one page of the store together. Whoever goes beyond a window or a queue is cut; a full core, and a wait too many, refuse
///   the request.
/// - **On failure**: never restarted, the socket is the identity: the link ends, its claims are offered again.
#[derive(Debug)]
pub struct Connection {
    meter: Meter,
    metrics: Metrics,
    config: ConnectionConfig,
    uid: Uid,
    /// The certificates that the other end showed.
    shown: Box<[Fingerprint]>,
    outlet: Outlet,
    core: Core,
    store: Store,
    listener: Handle<Listener>,
    monitor: Handle<Monitor>,
    warden: Handle<Warden>,
    /// When the link's leaf was renewed last.
    renewed: Option<Instant>,
    session: Session,
    reads: VecDeque<Read>,
    reading_now: bool,
    waits: Waits,
    replays: Replays,
    heard: Instant,
    pings: u64,
    /// The session is over; only last words are under way.
    gone: bool,
    /// The other end has said all that it will.
    heard_all: bool,
    /// The writer has ended: in order, or because the link failed.
    written: Option<bool>,
    /// The hub is stopping.
    draining: bool,
    dialect: Dialect,
    /// It said that it is a hub.
    announced: bool,
    /// For all that is logged about the link.
    span: Span,
    /// Reader and writer; they end with the connection.
    tasks: [JoinHandle<()>; 2],
    _permit: OwnedSemaphorePermit,
}

measured!(Connection: Inbound);

/// What a [`Connection`] needs of its hub.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The limits.
    pub config: ConnectionConfig,
    /// The core.
    pub core: Core,
    /// For reads.
    pub store: Store,
    /// Hears of the end.
    pub listener: Handle<Listener>,
    /// Hears of connects, disconnects and faults.
    pub monitor: Handle<Monitor>,
    /// Renews leaves.
    pub warden: Handle<Warden>,
    /// The hub's numbers.
    pub metrics: Metrics,
    /// Those of connections.
    pub meter: Meter,
    /// For all that is logged about the link.
    pub span: Span,
}

impl Connection {
    /// Starts the session of a link whose handshake is done and whose ready byte is sent, on this thread.
    /// `permit` is given back when the link ends.
    pub fn spawn<S>(
        socket: S,
        (uid, shown): (Uid, Box<[Fingerprint]>),
        permit: OwnedSemaphorePermit,
        (outlet, outflow): (Outlet, Outflow),
        around: Surroundings,
    ) where
        S: AsyncRead + AsyncWrite + 'static,
    {
        let (read, write) = tokio::io::split(socket);
        let Surroundings { config, core, store, listener, monitor, warden, metrics, meter, span } = around;
        let Outflow { frames, words } = outflow;
        let writer = writer::run(write, frames, outlet.clone(), metrics.clone(), config.silence);
        Self::create(|ctx| {
            ctx.set_mailbox_capacity(1);
            let handle = Handle::new(ctx.address(), meter.clone());
            let limits = reader::Limits {
                records: config.records,
                npm_publishes: config.welcome.limits.window_requests as usize,
            };
            let reading = actix_rt::spawn(reader::run(read, limits, handle, outlet.clone(), metrics.clone()));
            let (done, written) = tokio::sync::oneshot::channel();
            let writing = actix_rt::spawn(async move {
                // The connection may have ended before its writer.
                let _ = done.send(writer.await);
            });
            Self::listen(words, ctx);
            ctx.spawn(wrap_future::<_, Self>(written).map(|written, connection, ctx| {
                connection.written = Some(written.unwrap_or(false));
                connection.end_if_done(ctx);
            }));
            meter.spawned();
            metrics.hub().links.of(Dialect::Npm).inc();
            ctx.run_interval((config.ping / 4).clamp(TICK_MIN, TICK_MAX), Self::tick);
            let hub = Uid::from_stored(config.welcome.hub.clone());
            let replays =
                Replays::new(hub, core.registry.clone(), store.clone(), outlet.clone(), metrics.clone());
            let waits = Waits::new(core.clone(), store.clone(), outlet.clone(), metrics.clone());
            Self {
                session: Session::new(config.welcome.limits.subscriptions as usize),
                meter,
                metrics,
                config,
                uid,
                shown,
                outlet,
                core,
                store,
                listener,
                monitor,
                warden,
                renewed: None,
                reads: VecDeque::new(),
                reading_now: false,
                waits,
                replays,
                heard: Instant::now(),
                pings: 0,
                gone: false,
                heard_all: false,
                written: None,
                draining: false,
                dialect: Dialect::Npm,
                announced: false,
                span,
                tasks: [reading, writing],
                _permit: permit,
            }
        });
    }

    /// One word of the hub after the other.
    fn listen(mut words: mpsc::UnboundedReceiver<Word>, ctx: &mut Context<Self>) {
        let next = async move { (words.recv().await, words) };
        ctx.spawn(wrap_future::<_, Self>(next).map(|(word, words), connection, ctx| {
            let _entered = connection.span.clone().entered();
            match word {
                Some(Word::Cut(cut)) => connection.cut(&cut, ctx),
                Some(Word::Drain) => {
                    connection.draining = true;
                    connection.waits.drain();
                    connection.say_drain();
                }
                Some(Word::Refused(sub)) => _ = connection.forget_consumer(sub),
                Some(Word::Ended(sub, fault)) => connection.end_consumer(sub, fault),
                Some(Word::Online(hub)) => connection.say_online(&hub),
                Some(Word::Lives(hub)) => connection.say_lives(&hub),
                None => return,
            }
            Self::listen(words, ctx);
        }));
    }

    /// The session is over: nothing more is taken from the link, and what it holds is offered again.
    fn leave(&mut self) {
        if !std::mem::replace(&mut self.gone, true) {
            self.waits.end();
            self.replays.end();
            self.core.registry.signal(registry::LinkGone(self.outlet.id()));
            self.core.deliveries.signal(deliveries::LinkGone(self.outlet.id()));
        }
    }

    /// Closes the link with its last words, and gives the other end a moment to read them.
    fn cut(&mut self, cut: &Cut, ctx: &mut Context<Self>) {
        if self.gone {
            // It was ending anyway.
            self.end_if_done(ctx);
            return;
        }
        let Cut { reason, fault } = cut;
        self.metrics.hub().cuts.of(*reason).inc();
        tracing::info!(reason = reason.as_str(), %fault, "link cut");
        self.monitor.note(Notice::cut(&self.uid, fault));
        self.leave();
        self.outlet.bye((self.dialect == Dialect::V1).then(|| fault.clone()));
        ctx.run_later(LAST_WORDS, |_, ctx| ctx.stop());
        self.end_if_done(ctx);
    }

    /// The other end has closed its side. It may have closed only that: what was queued still goes out, and so do
    /// the answers to what it published.
    fn hear_end(&mut self, ctx: &mut Context<Self>) {
        self.heard_all = true;
        self.leave();
        let outlet = self.outlet.clone();
        let answered = async move { timeout(LAST_WORDS / 2, outlet.answered()).await };
        ctx.spawn(wrap_future::<_, Self>(answered).map(|_, connection, _| connection.outlet.bye(None)));
        ctx.run_later(LAST_WORDS, |_, ctx| ctx.stop());
        self.end_if_done(ctx);
    }

    /// The link is over once both sides have said all, or its socket failed.
    fn end_if_done(&self, ctx: &mut Context<Self>) {
        let done = match self.written {
            Some(in_order) => self.heard_all || !in_order,
            None => false,
        };
        if self.gone && done {
            ctx.stop();
        }
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.waits.reap();
        self.replays.reap();
        if !self.gone && self.dialect == Dialect::V1 {
            self.watch_silence(Instant::now());
        }
    }

    /// The first record decides the dialect for good.
    fn decide(&mut self, first: &Record) {
        let v1 = wire::is_hello(first);
        self.session.decide(v1);
        let links = &self.metrics.hub().links;
        if v1 {
            links.of(self.dialect).dec();
            self.dialect = Dialect::V1;
            self.outlet.speaks_v1();
            links.of(self.dialect).inc();
        }
        self.metrics.hub().links_opened.of(self.dialect).inc();
    }

    fn records(&mut self, records: &[Record], ctx: &mut Context<Self>) {
        let mut gathered = Gathered::default();
        for record in records {
            match self.session.speaks() {
                Speaks::Unknown => {
                    self.decide(record);
                    match self.session.speaks() {
                        Speaks::V1 => self.hello(record),
                        _ => self.npm(record, &mut gathered, ctx),
                    }
                }
                Speaks::Npm => self.npm(record, &mut gathered, ctx),
                Speaks::V1 => self.request(record, &mut gathered),
            }
            if self.outlet.is_cut() {
                break;
            }
        }
        // What came before a record that cuts the link is served all the same.
        self.send_on(gathered);
    }

    /// Starts the next read, if none is under way.
    fn next_read(&mut self, ctx: &mut Context<Self>) {
        if self.reading_now || self.gone {
            return;
        }
        let Some(read) = self.reads.pop_front() else { return };
        self.reading_now = true;
        let (store, deliveries) = (self.store.clone(), self.core.deliveries.clone());
        let read = reads::run(read, store, deliveries, self.config.hub.clone(), self.outlet.clone());
        ctx.spawn(wrap_future::<_, Self>(read).map(|(), connection, ctx| {
            connection.reading_now = false;
            connection.next_read(ctx);
        }));
    }
}

impl Actor for Connection {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.monitor.note(Notice::connected(&self.uid));
    }
}

/// However it ends, by a panic too: what it held is offered again, and nobody takes it for alive.
impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
        for task in &self.tasks {
            task.abort();
        }
        self.metrics.hub().links.of(self.dialect).dec();
        self.meter.ended();
        self.monitor.note(Notice::disconnected(&self.uid));
        self.listener.signal(Closed(self.outlet.id()));
    }
}

impl Handler<Inbound> for Connection {
    type Result = ();

    fn handle(&mut self, message: Inbound, ctx: &mut Self::Context) {
        let Inbound { records, broken, ended } = message;
        let _entered = self.span.clone().entered();
        self.heard = Instant::now();
        if !self.gone && !self.outlet.is_cut() {
            self.records(&records, ctx);
            self.next_read(ctx);
        }
        if let Some(error) = broken {
            let fault = Fault::from(error);
            self.outlet.cut(CutReason::of(&fault.code), fault);
        }
        if let Some(end) = ended {
            if let Some(error) = end {
                tracing::debug!(%error, "the link broke");
            }
            self.hear_end(ctx);
        }
    }
}

/// The last words when the core restarts.
#[must_use]
pub fn restart() -> Fault {
    Fault::retryable(
        code::HUB_RESTART,
        "the hub restarts its core after an internal fault: nothing that was acknowledged is lost, connect again",
        Duration::from_millis(200),
    )
}
