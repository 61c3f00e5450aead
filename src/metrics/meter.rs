//! What one kind of actor reports.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::instrument::{Counter, Gauge, Histogram};

/// So many types of messages can one kind of actor tell apart; the rest is counted as [`OTHER`].
const MESSAGE_TYPES: usize = 32;
/// Where messages are counted when a kind has more than [`MESSAGE_TYPES`] types.
pub(super) const OTHER: &str = "other";

/// The numbers of all actors of one kind.
#[derive(Debug)]
pub(super) struct ActorNumbers {
    pub(super) alive: Gauge,
    pub(super) restarts: Counter,
    pub(super) depth: Gauge,
    pub(super) depth_peak: Gauge,
    pub(super) waited: Histogram,
    pub(super) handling: Histogram,
    pub(super) refused: Counter,
    /// Milliseconds since 1970; 0: never.
    progress: AtomicU64,
    messages: [OnceLock<MessageType>; MESSAGE_TYPES],
    other: Counter,
}

#[derive(Debug)]
struct MessageType {
    name: &'static str,
    handled: Counter,
}

impl ActorNumbers {
    pub(super) fn new() -> Self {
        Self {
            alive: Gauge::default(),
            restarts: Counter::default(),
            depth: Gauge::default(),
            depth_peak: Gauge::default(),
            waited: Histogram::times(),
            handling: Histogram::times(),
            refused: Counter::default(),
            progress: AtomicU64::new(0),
            messages: [const { OnceLock::new() }; MESSAGE_TYPES],
            other: Counter::default(),
        }
    }

    /// The slot of this type of message, taken now if it is the first; none when all are taken.
    fn slot(&self, name: &'static str) -> Option<usize> {
        self.messages.iter().position(|slot| {
            slot.get_or_init(|| MessageType { name, handled: Counter::default() }).name == name
        })
    }

    fn counter(&self, slot: Option<usize>) -> &Counter {
        slot.and_then(|slot| self.messages[slot].get()).map_or(&self.other, |message| &message.handled)
    }

    /// (Type, handled) of every type that is known.
    pub(super) fn messages(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let known = self.messages.iter().map_while(OnceLock::get);
        let other = Some((OTHER, self.other.get())).filter(|(_, handled)| *handled > 0);
        known.map(|message| (message.name, message.handled.get())).chain(other)
    }

    /// When a message was last handled, or progress was reported; milliseconds since 1970.
    pub(super) fn last_progress(&self) -> Option<u64> {
        Some(self.progress.load(Relaxed)).filter(|&at| at > 0)
    }
}

/// What actors of one kind report to. Cheap to clone; nothing here takes a lock or waits.
#[derive(Debug, Clone)]
pub struct Meter(pub(super) Arc<ActorNumbers>);

impl Meter {
    /// An actor of this kind started. The first of a kind begins with an empty mailbox, whatever its
    /// predecessor left behind.
    pub fn spawned(&self) {
        if self.0.alive.inc() == 1 {
            self.0.depth.set(0);
        }
    }

    /// An actor of this kind ended.
    pub fn ended(&self) {
        self.0.alive.dec();
    }

    /// An actor of this kind was restarted after a failure; [`Meter::spawned`] is reported besides.
    pub fn restarted(&self) {
        self.0.restarts.inc();
    }

    /// A message is about to enter a mailbox. To be called before the send: the receiver may be quicker than
    /// the sender's next line. [`Meter::offering`] does it all.
    pub fn queued(&self) {
        self.0.depth_peak.raise(self.0.depth.inc());
    }

    /// Takes a [`Meter::queued`] back: its message didn't enter, or was dropped with its mailbox.
    pub fn unqueued(&self) {
        self.0.depth.dec();
    }

    /// A message was turned away because the mailbox is full or closed. Counts only: the depth is
    /// [`Meter::unqueued`]'s.
    pub fn refused(&self) {
        self.0.refused.inc();
    }

    /// Runs `send`, counting its message as queued, or as refused if that fails.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn offering<T, E>(&self, send: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.queued();
        send().inspect_err(|_| {
            self.unqueued();
            self.refused();
        })
    }

    /// A message that was sent at `sent` left the mailbox and is now handled.
    pub fn started(&self, sent: Instant) {
        self.0.depth.dec();
        self.0.waited.record(sent.elapsed());
    }

    /// A message of this type was handled. `message` must come from a closed set: see [`Meter::message`],
    /// which is quicker for hot ones.
    pub fn handled(&self, message: &'static str, took: Duration) {
        self.record(self.0.slot(message), took);
    }

    /// Something got done without a message: a timer ran, a task ended.
    pub fn progress(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.progress.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Registers a type of message, for example its name as a type: `Publish`.
    #[must_use]
    pub fn message(&self, name: &'static str) -> MessageMeter {
        MessageMeter { slot: self.0.slot(name), meter: self.clone() }
    }

    fn record(&self, slot: Option<usize>, took: Duration) {
        self.0.counter(slot).inc();
        self.0.handling.record(took);
        self.progress();
    }
}

/// A [`Meter`] for one type of message.
#[derive(Debug, Clone)]
pub struct MessageMeter {
    slot: Option<usize>,
    meter: Meter,
}

impl MessageMeter {
    /// One of them was handled.
    pub fn handled(&self, took: Duration) {
        self.meter.record(self.slot, took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Meter {
        Meter(Arc::new(ActorNumbers::new()))
    }

    #[test]
    fn the_peak_outlives_the_depth() {
        let meter = meter();
        for _ in 0..3 {
            meter.queued();
        }
        for _ in 0..3 {
            meter.started(Instant::now());
        }
        assert_eq!(meter.0.depth.get(), 0);
        assert_eq!(meter.0.depth_peak.get(), 3);
        assert_eq!(meter.0.waited.read().count(), 3);
    }

    #[test]
    fn a_failed_offer_is_refused_and_leaves_no_depth() {
        let meter = meter();
        assert_eq!(meter.offering(|| Err::<(), _>("full")), Err("full"));
        assert_eq!(meter.offering(|| Ok::<_, ()>(7)), Ok(7));
        assert_eq!((meter.0.depth.get(), meter.0.refused.get()), (1, 1));
    }

    #[test]
    fn both_ways_to_name_a_message_count_the_same() {
        let meter = meter();
        let publish = meter.message("Publish");
        publish.handled(Duration::from_micros(3));
        meter.handled("Publish", Duration::from_micros(3));
        meter.handled("Ack", Duration::from_micros(1));
        assert_eq!(meter.0.messages().collect::<Vec<_>>(), [("Publish", 2), ("Ack", 1)]);
        assert!(meter.0.last_progress().is_some());
    }

    #[test]
    fn types_beyond_the_table_are_counted_together() {
        let meter = meter();
        for number in 0..=MESSAGE_TYPES {
            meter.handled(String::leak(format!("Type{number}")), Duration::ZERO);
        }
        assert_eq!(meter.0.messages().last(), Some((OTHER, 1)));
        assert_eq!(meter.0.messages().count(), MESSAGE_TYPES + 1);
    }

    #[test]
    fn a_successor_begins_with_an_empty_mailbox() {
        let meter = meter();
        meter.spawned();
        meter.queued();
        meter.ended();
        meter.restarted();
        meter.spawned();
        assert_eq!((meter.0.depth.get(), meter.0.alive.get(), meter.0.restarts.get()), (0, 1, 1));
    }
}
