//! Keeps the `log` table and the slow gauges.

use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler};

use super::{
    clock::now_millis,
    journal::{Journal, Note},
    life::Life,
    mail::{Handle, mail, measured},
};
use crate::{
    event::{Fault, Uid},
    metrics::{Meter, Metrics},
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

/// From now on the journal is this one: the core was restarted.
#[derive(Debug)]
pub struct UseJournal(pub Handle<Journal>);
mail!(UseJournal => ());

/// Writes what waits now.
#[derive(Debug)]
pub struct Flush;
mail!(Flush => ());

/// - **Role**: writes connects, disconnects and faults into the `log` table, in batches, off the hot path.
/// - **Owns**: the rows that wait.
/// - **Receives**: [`Notice`] from anyone, [`UseJournal`] and [`Flush`] from the guardian.
/// - **Sends**: `Note` to the journal.
/// - **Capacity**: notices are offered; 1,000 rows wait at most, the rest is dropped and counted.
/// - **On failure**: the hub drains and ends; the rows that waited are lost.
#[derive(Debug)]
pub struct Monitor {
    meter: Meter,
    metrics: Metrics,
    agent: Uid,
    journal: Handle<Journal>,
    waiting: Vec<Write>,
    _life: Life,
}

measured!(Monitor: Notice, UseJournal, Flush);

impl Monitor {
    /// A monitor that writes in the name of `agent`, the hub.
    #[must_use]
    pub fn new(agent: Uid, metrics: Metrics, meter: Meter, journal: Handle<Journal>, life: Life) -> Self {
        Self { meter, metrics, agent, journal, waiting: Vec::new(), _life: life }
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
        ctx.run_interval(TICK, |monitor, _| monitor.flush());
    }
}

impl Handler<Notice> for Monitor {
    type Result = ();

    fn handle(&mut self, notice: Notice, _: &mut Self::Context) {
        if self.waiting.len() >= MOST_WAITING {
            self.metrics.hub().log_dropped.inc();
            return;
        }
        let Notice { at, message, error } = notice;
        self.waiting.push(Write::Log { at, agent: self.agent.to_string(), message, error });
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
    /// Offers a notice; one that finds the mailbox full is dropped, which the meter counts.
    pub fn note(&self, notice: Notice) {
        // Counted as refused by the meter.
        let _ = self.offer(notice);
    }
}
