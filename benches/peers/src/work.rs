//! The work, the same for each broker: so many events, numbered, of 300 bytes; what was confirmed and what came is
//! counted by number.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::sync::Barrier;

/// Bytes of an event's data.
pub const BYTES: usize = 300;
/// Publishers, each with a connection of its own and this many events that aren't confirmed yet.
pub const PUBLISHERS: usize = 2;
pub const WINDOW: usize = 256;
/// Consumers, each with a connection of its own and this many events in hand.
pub const CONSUMERS: usize = 2;
pub const CREDIT: usize = 64;

/// Without anything new for so long the rest is lost.
const STALLED: Duration = Duration::from_secs(30);

/// Events to publish, and what became of them.
pub struct Work {
    events: usize,
    /// A second, by all publishers together; none: as fast as it goes.
    rate: Option<f64>,
    zero: Instant,
    /// When each was due, or sent if there is no rate: nanoseconds.
    due: Vec<AtomicU64>,
    seen: Vec<AtomicU8>,
    confirmed: AtomicU64,
    acked: AtomicU64,
    foreign: AtomicU64,
    waits: Mutex<Histogram<u32>>,
    /// Publishers begin together, once they are connected.
    ready: Barrier,
}

impl Work {
    pub fn new(events: usize, rate: Option<f64>) -> Result<Arc<Self>, crate::Failure> {
        Ok(Arc::new(Self {
            events,
            rate,
            zero: Instant::now(),
            due: std::iter::repeat_with(AtomicU64::default).take(events).collect(),
            seen: std::iter::repeat_with(AtomicU8::default).take(events).collect(),
            confirmed: AtomicU64::new(0),
            acked: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            waits: Mutex::new(Histogram::new_with_bounds(1, 600_000_000, 3)?),
            // And whoever measures.
            ready: Barrier::new(PUBLISHERS + 1),
        }))
    }

    /// Waits until all publishers are connected.
    pub async fn begin(&self) {
        self.ready.wait().await;
    }

    /// The numbers that a publisher sends.
    pub fn numbers(&self, publisher: usize) -> impl Iterator<Item = usize> + use<> {
        (publisher..self.events).step_by(PUBLISHERS)
    }

    /// Waits until an event is due, and gives its data.
    pub async fn next(&self, number: usize, began: Instant) -> String {
        let now = match self.rate {
            Some(rate) => {
                let due = began + Duration::from_secs_f64(number as f64 / rate);
                // Timers are exact to a millisecond: the last part is waited for by giving way.
                if let Some(left) = due.checked_duration_since(Instant::now() + Duration::from_millis(2)) {
                    tokio::time::sleep(left).await;
                }
                while Instant::now() < due {
                    tokio::task::yield_now().await;
                }
                due
            }
            None => Instant::now(),
        };
        let nanos = now.saturating_duration_since(self.zero).as_nanos() as u64;
        self.due[number].store(nanos, Ordering::Relaxed);
        let mut data = format!("[{number},\"");
        let filler = BYTES.saturating_sub(data.len() + 2);
        data.extend(std::iter::repeat_n('x', filler));
        data + "\"]"
    }

    /// A broker has said that it has an event.
    pub fn confirm(&self) {
        self.confirmed.fetch_add(1, Ordering::Relaxed);
    }

    /// An event has come.
    pub fn see(&self, data: &[u8]) {
        let number = std::str::from_utf8(data)
            .ok()
            .and_then(|data| data.strip_prefix('[')?.split_once(',')?.0.parse::<usize>().ok());
        let Some((number, seen)) = number.and_then(|number| Some((number, self.seen.get(number)?))) else {
            self.foreign.fetch_add(1, Ordering::Relaxed);
            return;
        };
        seen.fetch_add(1, Ordering::Relaxed);
        let due = Duration::from_nanos(self.due[number].load(Ordering::Relaxed));
        let wait = self.zero.elapsed().saturating_sub(due);
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.saturating_record(wait.as_micros() as u64);
    }

    /// Its ack is sent, or confirmed by brokers that confirm acks.
    pub fn ack(&self, count: usize) {
        self.acked.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Waits until all have come and are acked.
    pub async fn all_acked(&self) {
        let (mut last, mut since) = (0, Instant::now());
        while last < self.events as u64 && since.elapsed() < STALLED {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let now = self.acked.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
    }

    /// What differs from what must be, in words; nothing if all is well.
    pub fn wrong(&self, consumed: bool) -> Option<String> {
        let events = self.events as u64;
        let confirmed = self.confirmed.load(Ordering::Relaxed);
        if confirmed != events {
            return Some(format!("{confirmed} of {events} confirmed"));
        }
        if !consumed {
            return None;
        }
        let times = || self.seen.iter().map(|seen| seen.load(Ordering::Relaxed));
        let (missing, twice) =
            (times().filter(|times| *times == 0).count(), times().filter(|times| *times > 1).count());
        let foreign = self.foreign.load(Ordering::Relaxed);
        let acked = self.acked.load(Ordering::Relaxed);
        (missing + twice > 0 || foreign > 0 || acked != events).then(|| {
            format!("{missing} missing, {twice} twice, {foreign} foreign, {acked} of {events} acked")
        })
    }

    /// Milliseconds from due to handler, within which this part of all came.
    pub fn wait_ms(&self, quantile: f64) -> f64 {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.value_at_quantile(quantile) as f64 / 1e3
    }
}
