//! One binding's queue: what its consumers are to get next, a window in memory over what the database holds.

mod again;
mod ordered;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    sync::Arc,
};

use self::again::Again;
use super::{
    consumer::ConsumerKey,
    windows::{Seat, Share, Windows},
};
use crate::{
    actors::dispatched::Dispatched,
    event::{DomainStart, Pattern, has_started},
};

/// The most events that a binding keeps in memory; the rest stays in the database until there is room.
/// Small in tests, so that it overflows.
pub const WINDOW_EVENTS: usize = if cfg!(test) { 8 } else { 4_096 };
/// The same in bytes.
pub const WINDOW_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of one page.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// A page is read when fewer wait in memory.
const LOW_WATER: usize = WINDOW_EVENTS / 4;

/// An event that waits for a consumer.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The event.
    pub event: Arc<Dispatched>,
    /// Attempts of its round that were counted so far.
    pub attempts: u32,
    /// Its round.
    pub round: u32,
    /// When it was due for its next attempt, if it has a row that says so: such a one is no matter of cursors.
    pub due: Option<i64>,
}

impl Waiting {
    /// One that nobody had yet.
    #[must_use]
    pub fn new(event: Arc<Dispatched>, round: u32) -> Self {
        Self { event, attempts: 0, round, due: None }
    }
}

/// Where a binding stands between memory and database.
#[derive(Debug)]
enum Mode {
    /// No consumer is connected: nothing is kept in memory.
    Idle {
        /// The database may hold events beyond `loaded` that this binding wants.
        behind: bool,
    },
    /// Everything up to the head was considered: served from memory alone.
    Live,
    /// The database holds events beyond `loaded` that memory doesn't.
    Lagging(Option<Reading>),
}

/// A page is being read; what happens meanwhile.
#[derive(Debug, Default)]
struct Reading {
    /// Tells an answer that is still wanted from one that isn't.
    ticket: u64,
    /// Dispatched since the read began: the page may or may not show them.
    arrived: VecDeque<Arc<Dispatched>>,
    arrived_bytes: Share,
    /// What the page may bring, so that nobody else takes its place.
    _granted: Share,
    /// `arrived` was full and is incomplete.
    overflowed: bool,
    /// Ended since the read began: the page may still show them as open.
    ended: HashSet<u64>,
}

/// A page to be read from the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageWanted {
    /// Give it back with the page.
    pub ticket: u64,
    /// Open events above this sequence number.
    pub after: u64,
    /// So many bytes of them, at least one event.
    pub bytes: usize,
}

/// A page that was read.
#[derive(Debug)]
pub struct Page {
    /// As in [`PageWanted`].
    pub ticket: u64,
    /// Its open events, by sequence number.
    pub rows: Vec<Waiting>,
    /// Everything up to here was looked at.
    pub scanned: u64,
    /// The database has more.
    pub more: bool,
}

/// A durable wish of a group, with the queue that serves it.
#[derive(Debug)]
pub struct Binding {
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
    /// Events below it don't concern this binding.
    pub start_seq: u64,
    /// Nor, in some domains, what is below these numbers.
    starts: Vec<DomainStart>,
    /// From here on everything concerns it, whatever its domain.
    all_from: u64,
    /// Consumers that have credit, in turn.
    pub ready: VecDeque<ConsumerKey>,
    consumers: usize,
    /// While it has consumers.
    seat: Option<Seat>,
    /// Of a group that keeps the order of keys.
    in_order: bool,
    waiting: BTreeMap<u64, Waiting>,
    bytes: Share,
    /// What is due for a retry.
    again: Again,
    /// Everything at or below it was considered.
    loaded: u64,
    mode: Mode,
    tickets: u64,
}

impl Binding {
    /// A binding that nobody consumes yet; everything at or below `loaded` is known to be settled.
    #[must_use]
    pub fn new(domain: Pattern, name: Pattern, start_seq: u64, loaded: u64) -> Self {
        Self {
            domain,
            name,
            start_seq,
            starts: Vec::new(),
            all_from: start_seq,
            ready: VecDeque::new(),
            consumers: 0,
            seat: None,
            in_order: false,
            waiting: BTreeMap::new(),
            bytes: Share::default(),
            again: Again::default(),
            loaded: loaded.max(start_seq.saturating_sub(1)),
            mode: Mode::Idle { behind: true },
            tickets: 0,
        }
    }

    /// It goes on from there, whatever it had.
    pub fn go_to(&mut self, start_seq: u64) {
        self.start_seq = start_seq;
        self.all_from = start_seq;
        self.starts = Vec::new();
        self.loaded = start_seq.saturating_sub(1);
        self.waiting = BTreeMap::new();
        self.again = Again::default();
        self.bytes.clear();
        self.mode = if self.consumers == 0 { Mode::Idle { behind: true } } else { Mode::Lagging(None) };
    }

    /// The same, which keeps no more in memory than all of these may together.
    #[must_use]
    pub fn within(mut self, windows: &Windows) -> Self {
        self.bytes = windows.share();
        self
    }

    /// Whether its group keeps the order of keys: such a one counts as any other, but isn't held up by them, since what it
    /// has read may wait for what it hasn't.
    pub fn set_in_order(&mut self, in_order: bool) {
        self.in_order = in_order;
    }

    /// The same, where some domains start later.
    #[must_use]
    pub fn with_starts(mut self, starts: Vec<DomainStart>) -> Self {
        self.all_from = starts.iter().map(|start| start.seq).fold(self.start_seq, u64::max);
        self.starts = starts;
        self
    }

    /// Whether an event of this domain isn't from before its time.
    #[must_use]
    pub fn reaches(&self, seq: u64, domain: &str) -> bool {
        seq >= self.all_from || (seq >= self.start_seq && has_started(&self.starts, domain, seq))
    }

    /// Whether this event is one of its own.
    #[must_use]
    pub fn covers(&self, event: &Dispatched) -> bool {
        self.reaches(event.seq, &event.event.domain) && self.matches(event)
    }

    /// The same, from whatever time it is: so is what waits for another attempt. It was the group's before.
    #[must_use]
    pub fn matches(&self, event: &Dispatched) -> bool {
        self.domain.matches(&event.event.domain) && self.name.matches(&event.event.name)
    }

    /// Whether anybody consumes it.
    #[must_use]
    pub fn has_consumers(&self) -> bool {
        self.consumers > 0
    }

    /// A consumer came: from now on events are kept for it. True: it is the first.
    pub fn joined(&mut self) -> bool {
        self.consumers += 1;
        self.seat.get_or_insert_with(|| self.bytes.windows().seat());
        if let Mode::Idle { behind } = self.mode {
            self.mode = if behind { Mode::Lagging(None) } else { Mode::Live };
        }
        self.consumers == 1
    }

    /// A consumer left; with the last one the memory is given up, the database keeps the events. Returns those that were
    /// due for a retry here.
    #[must_use]
    pub fn left(&mut self, key: ConsumerKey) -> BTreeSet<u64> {
        self.consumers = self.consumers.saturating_sub(1);
        self.ready.retain(|ready| *ready != key);
        if self.consumers == 0 {
            let behind = !self.is_live() || !self.waiting.is_empty();
            self.loaded = self.floor();
            self.waiting = BTreeMap::new();
            self.bytes.clear();
            self.seat = None;
            self.mode = Mode::Idle { behind };
            return self.again.take_all();
        }
        BTreeSet::new()
    }

    /// Everything at or below it is settled or somebody's claim.
    #[must_use]
    pub fn floor(&self) -> u64 {
        match self.waiting.first_key_value() {
            Some((first, _)) => self.loaded.min(first.saturating_sub(1)),
            None => self.loaded,
        }
    }

    /// Everything at or below it was considered.
    #[must_use]
    pub fn loaded(&self) -> u64 {
        self.loaded
    }

    /// The oldest event that waits in memory.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|(seq, _)| *seq)
    }

    /// How many events wait in memory.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether memory holds all that waits.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.mode, Mode::Live)
    }

    /// Where its events come from now, in a word.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self.mode {
            Mode::Idle { .. } => "idle",
            Mode::Live => "live",
            Mode::Lagging(_) => "lagging",
        }
    }

    /// A live event. True: it must be placed now (handed out or put into [`Self::put`]); false: it stays in the
    /// database, or in this binding's buffer, until its turn.
    pub fn arrive(&mut self, event: &Arc<Dispatched>) -> bool {
        match &mut self.mode {
            Mode::Idle { behind } => {
                *behind = true;
                false
            }
            Mode::Live => {
                let is_full = self.waiting.len() >= WINDOW_EVENTS || self.bytes >= WINDOW_BYTES;
                if is_full || (!self.in_order && !self.bytes.windows().admits(self.bytes.bytes())) {
                    self.mode = Mode::Lagging(None);
                    return false;
                }
                self.loaded = self.loaded.max(event.seq);
                true
            }
            Mode::Lagging(None) => false,
            Mode::Lagging(Some(reading)) => {
                let is_full = reading.arrived.len() >= WINDOW_EVENTS || reading.arrived_bytes >= WINDOW_BYTES;
                let holds = self.bytes.bytes() + reading.arrived_bytes.bytes();
                let is_full = is_full || (!self.in_order && !self.bytes.windows().admits(holds));
                if is_full {
                    reading.overflowed = true;
                    reading.arrived = VecDeque::new();
                    reading.arrived_bytes.clear();
                }
                if !reading.overflowed {
                    reading.arrived_bytes += event.weight();
                    reading.arrived.push_back(event.clone());
                }
                false
            }
        }
    }

    /// All events up to `seq` went by: where nothing is left behind, they are considered.
    pub fn passed(&mut self, seq: u64) {
        if matches!(self.mode, Mode::Live | Mode::Idle { behind: false }) {
            self.loaded = self.loaded.max(seq);
        }
    }

    /// Keeps an event for the next consumer with credit.
    pub fn put(&mut self, waiting: Waiting) {
        if let Mode::Idle { behind } = &mut self.mode {
            *behind = true;
            self.loaded = self.loaded.min(waiting.event.seq.saturating_sub(1));
            return;
        }
        self.bytes += waiting.event.weight();
        if let Some(old) = self.waiting.insert(waiting.event.seq, waiting) {
            self.bytes -= old.event.weight();
        }
    }

    /// The oldest event that waits.
    pub fn take(&mut self) -> Option<Waiting> {
        let (_, waiting) = self.waiting.pop_first()?;
        self.bytes -= waiting.event.weight();
        Some(waiting)
    }

    /// The event was handed out through another binding of the group.
    pub fn forget(&mut self, seq: u64) {
        self.again.remove(seq);
        if let Some(waiting) = self.waiting.remove(&seq) {
            self.bytes -= waiting.event.weight();
        }
    }

    /// The event has its outcome: a page under way may not know that yet.
    pub fn ended(&mut self, seq: u64) {
        if let Mode::Lagging(Some(reading)) = &mut self.mode {
            reading.ended.insert(seq);
        }
    }

    /// Whether a page should be read now. Asked again only after [`Self::page`] or [`Self::page_failed`].
    pub fn want_page(&mut self) -> Option<PageWanted> {
        let Mode::Lagging(reading @ None) = &mut self.mode else { return None };
        if self.waiting.len() > LOW_WATER || self.bytes > WINDOW_BYTES / 2 {
            return None;
        }
        let windows = self.bytes.windows();
        let room = if self.in_order { Some(PAGE_BYTES) } else { windows.room(self.bytes.bytes()) };
        let bytes = room?.min(PAGE_BYTES);
        let mut granted = windows.share();
        granted += bytes;
        self.tickets += 1;
        let (ticket, arrived_bytes) = (self.tickets, windows.share());
        *reading = Some(Reading { ticket, arrived_bytes, _granted: granted, ..Reading::default() });
        Some(PageWanted { ticket, after: self.loaded, bytes })
    }

    /// The page couldn't be read; [`Self::want_page`] will ask again.
    pub fn page_failed(&mut self, ticket: u64) {
        if let Mode::Lagging(reading) = &mut self.mode
            && reading.as_ref().is_some_and(|reading| reading.ticket == ticket)
        {
            *reading = None;
        }
    }

    /// Takes a page. Returns what must be placed now, oldest first.
    ///
    /// `head` is the last event that was dispatched. The page may show later ones, committed but still on their
    /// way through the registry: they are left to their dispatch, else they would be handed out twice. `round` is that of
    /// what was dispatched meanwhile.
    pub fn page(&mut self, page: Page, head: u64, round: u32) -> Vec<Waiting> {
        let Page { ticket, mut rows, mut scanned, mut more } = page;
        if scanned > head {
            rows.retain(|waiting| waiting.event.seq <= head);
            scanned = head;
            more = false;
        }
        let Mode::Lagging(slot) = &mut self.mode else { return Vec::new() };
        if slot.as_ref().is_none_or(|reading| reading.ticket != ticket) {
            return Vec::new();
        }
        let Some(mut reading) = slot.take() else { return Vec::new() };
        self.loaded = self.loaded.max(scanned);
        let mut place: Vec<Waiting> = rows
            .into_iter()
            .filter(|waiting| {
                !reading.ended.contains(&waiting.event.seq)
                    && !self.waiting.contains_key(&waiting.event.seq)
                    && self.covers(&waiting.event)
            })
            .collect();
        if !more && !reading.overflowed {
            self.mode = Mode::Live;
            for event in std::mem::take(&mut reading.arrived) {
                if event.seq > self.loaded {
                    self.loaded = event.seq;
                    if !reading.ended.contains(&event.seq) && !self.waiting.contains_key(&event.seq) {
                        place.push(Waiting::new(event, round));
                    }
                }
            }
        }
        place
    }
}
