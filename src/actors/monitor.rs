//! Keeps the `log` table and the slow gauges.

mod failures;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use actix::{Actor, AsyncContext, Context, Handler};
use serde::Serialize;

use self::failures::{Failures, Repeated, WINDOW};
use super::{
    clock::now_millis,
    journal::{Journal, Note},
    life::Life,
    mail::{Handle, mail, measured},
    snapshot::{Snapshot, State},
};
use crate::{
    event::{Fault, Uid},
    metrics::{HandshakeFault, Meter, Metrics},
    store::Write,
};

/// Rows that may wait; what comes beyond is counted and dropped.
const MOST_WAITING: usize = 1_000;
/// How often rows are written.
const TICK: Duration = Duration::from_secs(1);

/// Something that the `log` table is to remember.
#[derive(Debug)]
pub struct Notice {
    at: i64,
    message: String,
    error: String,
}
mail!(Notice => ());

impl Notice {
    fn new(message: String, error: String) -> Self {
        Self { at: now_millis(), message, error }
    }

    /// A link came.
    #[must_use]
    pub fn connected(uid: &Uid) -> Self {
        Self::new(format!("connected: {uid}"), "{}".to_owned())
    }

    /// A link went.
    #[must_use]
    pub fn disconnected(uid: &Uid) -> Self {
        Self::new(format!("disconnected: {uid}"), "{}".to_owned())
    }

    /// A link was cut.
    #[must_use]
    pub fn cut(uid: &Uid, fault: &Fault) -> Self {
        let error = serde_json::json!({ "code": fault.code, "message": fault.message });
        Self::new(format!("link cut: {uid}"), error.to_string())
    }

    /// Something that needs no more words.
    #[must_use]
    pub fn told(message: &str) -> Self {
        Self::new(message.to_owned(), "{}".to_owned())
    }

    /// A fault of the hub.
    #[must_use]
    pub fn fault(message: &str, error: &str) -> Self {
        Self::new(message.to_owned(), serde_json::json!({ "message": error }).to_string())
    }
}

/// A handshake failed.
#[derive(Debug)]
pub struct HandshakeFailed {
    /// With whom.
    pub peer: SocketAddr,
    /// For the count.
    pub reason: HandshakeFault,
    /// Why.
    pub fault: Fault,
}
mail!(HandshakeFailed => ());

/// From now on the journal is this one: the core was restarted.
#[derive(Debug)]
pub struct UseJournal(pub Handle<Journal>);
mail!(UseJournal => ());

/// Writes what waits now.
#[derive(Debug)]
pub struct Flush;
mail!(Flush => ());

/// - **Role**: writes connects, disconnects and faults into the `log` table, in batches, off the hot path.
/// - **Owns**: the rows that wait, the count of failed handshakes by peer.
/// - **Receives**: [`Notice`] from anyone, [`HandshakeFailed`] from the listener, [`UseJournal`] and [`Flush`] from the guardian, [`Snapshot`] from the hub.
/// - **Sends**: `Note` to the journal.
/// - **Capacity**: notices are offered; 1,000 rows wait at most, the rest is dropped and counted. Of the
///   handshakes that fail a peer has few rows per reason in 10 s.
/// - **On failure**: the hub drains and ends; the rows that waited are lost.
#[derive(Debug)]
pub struct Monitor {
    meter: Meter,
    metrics: Metrics,
    agent: Uid,
    journal: Handle<Journal>,
    waiting: Vec<Write>,
    failures: Failures,
    _life: Life,
}

measured!(Monitor: Notice, HandshakeFailed, UseJournal, Flush, Snapshot);

impl Monitor {
    /// A monitor that writes in the name of `agent`, the hub.
    #[must_use]
    pub fn new(agent: Uid, metrics: Metrics, meter: Meter, journal: Handle<Journal>, life: Life) -> Self {
        let failures = Failures::default();
        Self { meter, metrics, agent, journal, waiting: Vec::new(), failures, _life: life }
    }

    fn keep(&mut self, notice: Notice) {
        if self.waiting.len() >= MOST_WAITING {
            self.metrics.hub().log_dropped.inc();
            return;
        }
        let Notice { at, message, error } = notice;
        self.waiting.push(Write::Log { at, agent: self.agent.to_string(), message, error });
    }

    /// Tells of the peers that went on failing.
    fn tell_repeated(&mut self) {
        for Repeated { peer, times, last } in self.failures.over(Instant::now()) {
            let whom = peer.map_or_else(|| "other peers".to_owned(), |peer| peer.to_string());
            tracing::warn!(peer = whom, times, last, "handshakes failed again, within {WINDOW:?}");
            let message = format!("handshakes with {whom} failed {times} times more");
            self.keep(Notice::fault(&message, &last));
        }
    }

    fn flush(&mut self) {
        if !self.waiting.is_empty() {
            self.journal.signal(Note(std::mem::take(&mut self.waiting)));
        }
        self.meter.progress();
    }
}

impl Actor for Monitor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, |monitor, _| {
            monitor.tell_repeated();
            monitor.flush();
        });
    }
}

impl Handler<Notice> for Monitor {
    type Result = ();

    fn handle(&mut self, notice: Notice, _: &mut Self::Context) {
        self.keep(notice);
    }
}

impl Handler<HandshakeFailed> for Monitor {
    type Result = ();

    fn handle(&mut self, message: HandshakeFailed, _: &mut Self::Context) {
        let HandshakeFailed { peer, reason, fault } = message;
        let why = fault.to_string();
        if self.failures.note(peer.ip(), reason, &why, Instant::now()) {
            tracing::warn!(%peer, %fault, "handshake failed");
            self.keep(Notice::fault(&format!("handshake with {peer} failed"), &why));
        }
    }
}

/// What waits, and who fails.
#[derive(Debug, Serialize)]
struct MonitorState {
    /// Rows that wait for the `log` table.
    waiting: usize,
    /// Beyond it rows are dropped.
    waiting_limit: usize,
    /// Peers whose handshakes failed lately, each reason counted.
    failing_peers: usize,
}

impl Handler<Snapshot> for Monitor {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        let (waiting, failing_peers) = (self.waiting.len(), self.failures.len());
        State::of(&MonitorState { waiting, waiting_limit: MOST_WAITING, failing_peers })
    }
}

impl Handler<UseJournal> for Monitor {
    type Result = ();

    fn handle(&mut self, message: UseJournal, _: &mut Self::Context) {
        self.journal = message.0;
    }
}

impl Handler<Flush> for Monitor {
    type Result = ();

    fn handle(&mut self, _: Flush, _: &mut Self::Context) {
        self.flush();
    }
}

impl Handle<Monitor> {
    /// Offers a failed handshake; it is dropped as a notice is.
    pub fn handshake_failed(&self, peer: SocketAddr, reason: HandshakeFault, fault: Fault) {
        // Counted as refused by the meter.
        let _ = self.offer(HandshakeFailed { peer, reason, fault });
    }

    /// Offers a notice; one that finds the mailbox full is dropped, which the meter counts.
    pub fn note(&self, notice: Notice) {
        // Counted as refused by the meter.
        let _ = self.offer(notice);
    }
}
