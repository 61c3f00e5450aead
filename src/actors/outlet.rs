//! The way out to one link: a queue bounded in bytes, and the permits that bound what a link has under way.

mod amendment;
mod frame;
mod window;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Serialize;
use tokio::sync::{Notify, mpsc};

pub use self::{
    amendment::{AmendPermit, MOST_AMENDMENTS, Owed},
    frame::{Answered, ClaimPush, EventPush, Frame},
    window::WindowPermit,
};
use crate::{
    event::Fault,
    metrics::{CutReason, Dialect, Label},
    wire::{Answer, HubAddress, Req, Sub},
};

/// Numbers the links of one hub start; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct LinkId(pub u64);

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A frame in the queue, with what it counts for.
#[derive(Debug)]
pub struct Queued {
    /// The frame.
    pub frame: Frame,
    /// Frees its bytes when dropped.
    pub weight: QueuedWeight,
}

/// Bytes of a link's queue; freed when dropped.
#[derive(Debug)]
pub struct QueuedWeight {
    gauge: Arc<LinkGauge>,
    bytes: usize,
}

impl Drop for QueuedWeight {
    fn drop(&mut self) {
        self.gauge.queued_bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.gauge.drained.notify_waiters();
    }
}

/// What a link has under way, counted where several threads see it.
#[derive(Debug, Default)]
pub struct LinkGauge {
    queued_bytes: AtomicUsize,
    window_requests: AtomicUsize,
    window_bytes: AtomicUsize,
    amendments: AtomicUsize,
    cut: AtomicBool,
    stuck: AtomicBool,
    /// The log knows that this link sends what isn't served.
    ignored: AtomicBool,
    /// Something of the queue or of the window was freed.
    drained: Notify,
    v1: AtomicBool,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    /// When something was last written, in milliseconds since the outlet was made.
    wrote: AtomicU64,
}

/// What a link does.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Traffic {
    /// What it speaks; npm until it says otherwise.
    pub dialect: &'static str,
    /// Bytes that wait to be written.
    pub outbound_bytes: usize,
    /// Publishes without an answer.
    pub unanswered_publishes: usize,
    /// Bytes written so far, without TLS.
    pub sent_bytes: u64,
    /// Bytes read so far, without TLS.
    pub received_bytes: u64,
    /// It is being closed.
    pub cut: bool,
}

/// The way out to one link. Cheap to clone; sending never waits: a link whose queue is full is cut.
#[derive(Clone)]
pub struct Outlet {
    id: LinkId,
    frames: mpsc::UnboundedSender<Queued>,
    words: mpsc::UnboundedSender<Word>,
    gauge: Arc<LinkGauge>,
    limit: usize,
    born: Instant,
}

/// A link is to be closed, and why.
#[derive(Debug, Clone)]
pub struct Cut {
    /// For the metrics.
    pub reason: CutReason,
    /// For the other end, if it can be told.
    pub fault: Fault,
}

/// What the rest of the hub tells the connection of a link.
#[derive(Debug, Clone)]
pub enum Word {
    /// Close the link. Comes once.
    Cut(Cut),
    /// The hub is stopping: the other end should hand back what it hasn't begun. Comes once.
    Drain,
    /// The consumer of this number, which was asked for, doesn't come to be.
    Refused(Sub),
    /// The consumer of this number gets nothing more: its binding or its group is gone.
    Ended(Sub, Fault),
    /// Another hub is there. Comes once per link of a peer hub.
    Online(Arc<HubAddress>),
    /// Another hub lives, by its lease. Comes each time that one comes to live.
    Lives(Arc<HubAddress>),
}

/// The receiving ends of an [`Outlet`]: one for the writer, one for the connection.
#[derive(Debug)]
pub struct Outflow {
    /// What to send. The bytes in it are bounded by the outlet's limit, so the channel itself needs no bound.
    pub frames: mpsc::UnboundedReceiver<Queued>,
    /// A cut and a drain at most, one word per consumer that is refused or ended, two per peer hub that comes.
    pub words: mpsc::UnboundedReceiver<Word>,
}

impl Outlet {
    /// A way out that holds at most `limit` bytes.
    #[must_use]
    pub fn new(id: LinkId, limit: usize) -> (Self, Outflow) {
        let (frames, frames_out) = mpsc::unbounded_channel();
        let (words, words_out) = mpsc::unbounded_channel();
        let gauge = Arc::new(LinkGauge::default());
        (
            Self { id, frames, words, gauge, limit, born: Instant::now() },
            Outflow { frames: frames_out, words: words_out },
        )
    }

    /// Which link.
    #[must_use]
    pub fn id(&self) -> LinkId {
        self.id
    }

    /// Queues a frame. False: the link is cut, or is being cut now since its queue is full.
    pub fn send(&self, frame: Frame) -> bool {
        if self.is_cut() {
            return false;
        }
        let bytes = frame.weight();
        let before = self.gauge.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
        let weight = QueuedWeight { gauge: self.gauge.clone(), bytes };
        if before > 0 && before + bytes > self.limit {
            drop(weight);
            self.cut(
                CutReason::SlowSubscriber,
                Fault::retryable(
                    crate::event::code::SLOW_SUBSCRIBER,
                    format!(
                        "this link has over {} bytes waiting to be read: read faster, subscribe to less, or \
                         spread it over several links",
                        self.limit
                    ),
                    Duration::from_millis(100),
                ),
            );
            return false;
        }
        // A writer that is gone has dropped its receiver: the connection is ending anyway.
        self.frames.send(Queued { frame, weight }).is_ok()
    }

    /// Answers one request.
    pub fn answer(&self, req: Req, result: Result<Answer, Fault>) -> bool {
        self.send(Frame::Answers(vec![Answered { req, result, permit: None }]))
    }

    /// Closes the link, saying why. Only the first call counts.
    pub fn cut(&self, reason: CutReason, fault: Fault) {
        if !self.gauge.cut.swap(true, Ordering::AcqRel) {
            let stuck = matches!(
                reason,
                CutReason::SlowSubscriber
                    | CutReason::WriteTimeout
                    | CutReason::Silent
                    | CutReason::Transport
            );
            self.gauge.stuck.store(stuck, Ordering::Release);
            self.tell(Word::Cut(Cut { reason, fault }));
        }
    }

    /// Whether the link is cut since the other end doesn't take what is queued: the last words are to pass it by.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.gauge.stuck.load(Ordering::Acquire)
    }

    /// Tells the connection.
    pub fn tell(&self, word: Word) {
        // A connection that is gone has nothing to be told.
        let _ = self.words.send(word);
    }

    /// Whether [`Self::cut`] was called.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.gauge.cut.load(Ordering::Acquire)
    }

    /// Queues the last words past the limit.
    pub fn bye(&self, fault: Option<Fault>) {
        let weight = QueuedWeight { gauge: self.gauge.clone(), bytes: 0 };
        // As above: without a writer there is nobody to tell.
        let _ = self.frames.send(Queued { frame: Frame::Bye(fault), weight });
    }

    /// The writer has sent all that was queued.
    pub fn wrote(&self) {
        let since = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.gauge.wrote.store(since, Ordering::Release);
    }

    /// The other end speaks v1.
    pub fn speaks_v1(&self) {
        self.gauge.v1.store(true, Ordering::Relaxed);
    }

    /// So many bytes were written, without TLS.
    pub fn sent(&self, bytes: usize) {
        self.gauge.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes were read, without TLS.
    pub fn received(&self, bytes: usize) {
        self.gauge.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What the link does, to be looked at from any thread.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let gauge = &self.gauge;
        let v1 = gauge.v1.load(Ordering::Relaxed);
        Traffic {
            dialect: if v1 { Dialect::V1 } else { Dialect::Npm }.as_str(),
            outbound_bytes: self.queued_bytes(),
            unanswered_publishes: gauge.window_requests.load(Ordering::Relaxed),
            sent_bytes: gauge.sent_bytes.load(Ordering::Relaxed),
            received_bytes: gauge.received_bytes.load(Ordering::Relaxed),
            cut: self.is_cut(),
        }
    }

    /// For how long nothing was sent.
    #[must_use]
    pub fn quiet_for(&self) -> Duration {
        let wrote = Duration::from_millis(self.gauge.wrote.load(Ordering::Acquire));
        self.born.elapsed().saturating_sub(wrote)
    }

    /// Bytes that wait to be written.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.gauge.queued_bytes.load(Ordering::Acquire)
    }

    /// Waits until the queue is at most half full or the link is cut.
    pub async fn room(&self) {
        loop {
            let drained = self.gauge.drained.notified();
            if self.queued_bytes() <= self.limit / 2 || self.is_cut() {
                return;
            }
            drained.await;
        }
    }

    /// Whether so many bytes of events fit into the half of the queue that is for those who may wait, or the queue is
    /// empty.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        let queued = self.queued_bytes();
        queued == 0 || queued.saturating_add(bytes) <= self.limit / 2
    }

    /// Waits for [that much room](Self::has_room), or until the link is cut.
    pub async fn room_for(&self, bytes: usize) {
        loop {
            let drained = self.gauge.drained.notified();
            if self.has_room(bytes) || self.is_cut() {
                return;
            }
            drained.await;
        }
    }

    /// Whether this is the first record of the link that is ignored.
    #[must_use]
    pub fn is_first_ignored(&self) -> bool {
        !self.gauge.ignored.swap(true, Ordering::AcqRel)
    }

    /// Waits until no publish and no change of the link waits for its answer, or the link is cut.
    pub async fn answered(&self) {
        let open = |count: &AtomicUsize| count.load(Ordering::Acquire) > 0;
        loop {
            let drained = self.gauge.drained.notified();
            if !(open(&self.gauge.window_requests) || open(&self.gauge.amendments)) || self.is_cut() {
                return;
            }
            drained.await;
        }
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").field("id", &self.id).field("queued_bytes", &self.queued_bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_full_queue_cuts_the_link_once() {
        let (outlet, mut out) = Outlet::new(LinkId(1), 1_000);
        assert!(outlet.send(Frame::Raw(Bytes::from(vec![0; 800]))));
        assert!(!outlet.send(Frame::Raw(Bytes::from(vec![0; 800]))));
        assert!(!outlet.send(Frame::Raw(Bytes::new())), "nothing after the cut");
        let Word::Cut(cut) = out.words.try_recv().unwrap() else { panic!("a cut") };
        assert_eq!(cut.fault.code, crate::event::code::SLOW_SUBSCRIBER);
        assert!(out.words.try_recv().is_err());
        assert!(outlet.is_stuck(), "the last words pass by what is queued");
        drop(out.frames.try_recv().unwrap());
        assert_eq!(outlet.queued_bytes(), 0);
    }

    #[test]
    fn a_long_answer_counts_for_what_it_holds() {
        let (outlet, _out) = Outlet::new(LinkId(1), 10_000);
        let long = || Err(Fault::refused(crate::event::code::INVALID_RECORD, "x".repeat(6_000)));
        assert!(outlet.answer(1, long()));
        assert!(outlet.queued_bytes() > 6_000);
        assert!(!outlet.answer(2, long()));
    }

    #[test]
    fn one_frame_always_fits() {
        let (outlet, _out) = Outlet::new(LinkId(1), 1_000);
        assert!(outlet.send(Frame::Raw(Bytes::from(vec![0; 5_000]))));
    }
}
