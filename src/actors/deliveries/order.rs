//! The order of keys in a group that asked for it: of each process one event at a time, by number. Pure, and bounded:
//! what memory has no room for stays in the database, and is read once it is its turn.

mod lane;
mod loading;
mod pages;

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use self::{
    lane::{First, Lane},
    loading::Loading,
    pages::Read,
};
pub use self::{
    loading::{HeldPage, HeldWanted},
    pages::{LanePage, LaneWanted},
};
use super::binding::{WINDOW_BYTES, WINDOW_EVENTS, Waiting};
use crate::event::Pid;

/// Events in back-off, and dead ones that block, that memory knows: with more of them nothing new is read. Small in
/// tests, so that there are too many.
pub const MOST_BACK: usize = if cfg!(test) { 3 } else { 65_536 };
/// The most events that wait for their turn in memory, beside one of each process that comes back.
const MOST_HELD: usize = WINDOW_EVENTS / 2;
/// The same in bytes.
const MOST_HELD_BYTES: usize = WINDOW_BYTES / 2;
/// The same of one process, in events.
const LANE_HELD: usize = if cfg!(test) { 2 } else { 64 };

/// A process: a copy of its own, since a pid may hold the whole record that it came with.
pub type Key = Rc<str>;

/// Whose turn it is, for each process.
#[derive(Debug)]
pub struct Order {
    with_dead: bool,
    lanes: HashMap<Key, Lane>,
    /// The process of each event that a lane knows by its number.
    whose: HashMap<u64, Key>,
    /// Events that wait for their turn in memory.
    held: usize,
    bytes: usize,
    /// Events in back-off, or dead.
    backs: usize,
    /// Those whose turn it would be, if every binding had come as far.
    beyond: BTreeSet<(u64, Key)>,
    /// Lanes in which something has changed.
    touched: BTreeSet<Key>,
    /// Lanes of which a page is wanted, by its first number.
    wants: BTreeSet<(u64, Key)>,
    reads: Vec<Read>,
    tickets: u64,
    loading: Loading,
}

/// What became of an event that was to be placed.
#[derive(Debug)]
pub enum Admitted {
    /// It is known to its lane: [`Order::next`] says whose turn it is.
    Known,
    /// It was its turn already: what consumers wait with is to be taken back, and this one [held](Order::hold).
    Again(Waiting),
    /// There is no room, and it has a row that says when it was due.
    Left(Waiting),
}

/// What is to be done for a process.
#[derive(Debug)]
pub enum Next {
    /// Nothing.
    Nothing,
    /// This one has its turn.
    Give(Waiting),
    /// This one had its turn, and an earlier one has come.
    Recall(u64),
    /// One whose time had come, and for which there was no room, is to be looked for again.
    Look,
}

impl Order {
    /// An order of which nothing is known but what is in somebody's hands. `with_dead`: dead events hold back others. Its
    /// pages have tickets of their own, if `nth` is another one than those of the orders that the group had before.
    #[must_use]
    pub fn new<'a>(nth: u32, with_dead: bool, in_hands: impl Iterator<Item = (&'a Pid, u64)>) -> Self {
        let mut order = Self {
            with_dead,
            lanes: HashMap::new(),
            whose: HashMap::new(),
            held: 0,
            bytes: 0,
            backs: 0,
            beyond: BTreeSet::new(),
            touched: BTreeSet::new(),
            wants: BTreeSet::new(),
            reads: Vec::new(),
            tickets: u64::from(nth) << 32,
            loading: Loading::default(),
        };
        for (pid, seq) in in_hands {
            order.know(pid, seq).hands.insert(seq);
        }
        order
    }

    /// Whether memory has no room for more events that wait for their turn.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.held >= MOST_HELD || self.bytes >= MOST_HELD_BYTES
    }

    /// Whether nothing new is to be read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.backs >= MOST_BACK
    }

    /// Whether events would have their turns, if bindings had come as far.
    #[must_use]
    pub fn waits_for_bindings(&self) -> bool {
        !self.beyond.is_empty()
    }

    /// How many events wait for their turn in memory.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// The events that wait for their turn in memory.
    pub fn all_held(&self) -> impl Iterator<Item = &Waiting> {
        self.lanes.values().flat_map(|lane| lane.held.values())
    }

    /// Whether it waits for its turn in memory.
    #[must_use]
    pub fn holds(&self, seq: u64) -> bool {
        self.lane_of(seq).is_some_and(|lane| lane.held.contains_key(&seq))
    }

    /// Whether it has its turn and waits for a consumer.
    #[must_use]
    pub fn is_out(&self, seq: u64) -> bool {
        self.lane_of(seq).is_some_and(|lane| lane.out == Some(seq))
    }

    /// The first event here that no cursor may pass.
    #[must_use]
    pub fn lowest(&self) -> Option<u64> {
        self.lanes.values().filter_map(Lane::lowest).min()
    }

    /// The first one that the database keeps since there was no room.
    #[must_use]
    pub fn first_skipped(&self) -> Option<u64> {
        self.lanes.values().filter_map(|lane| lane.skipped).map(|(first, _)| first).min()
    }

    /// An event that somebody may have: new, or due again. `comes_back`: somebody had it.
    pub fn admit(&mut self, waiting: Waiting, comes_back: bool) -> Admitted {
        let (seq, is_due) = (waiting.event.seq, waiting.due.is_some());
        let crowded = self.is_crowded();
        let pid = waiting.event.event.pid.clone();
        let key = self.key(&pid);
        self.touched.insert(key.clone());
        let lane = self.lanes.entry(key.clone()).or_default();
        if lane.out == Some(seq) {
            return Admitted::Again(waiting);
        }
        if lane.hands.contains(&seq) || lane.held.contains_key(&seq) {
            return Admitted::Known;
        }
        if lane.back.remove(&seq) {
            lane.left.remove(&seq);
            self.backs -= 1;
            self.whose.remove(&seq);
        }
        if !is_due && !comes_back && lane.skips(seq) {
            return Admitted::Known;
        }
        let has_room = !crowded
            && lane.held.len() < LANE_HELD
            && (is_due || lane.skipped.is_none_or(|(first, _)| seq < first));
        // A page under way begins where those that were skipped did.
        if comes_back
            || has_room
            || lane.would_be_next(seq)
            || (lane.reading && lane.skipped.is_some_and(|(first, _)| seq < first))
        {
            self.hold(waiting);
        } else if is_due {
            lane.left.insert(seq);
            self.keep_back(&pid, seq);
            return Admitted::Left(waiting);
        } else {
            lane.skip(seq);
        }
        Admitted::Known
    }

    /// Keeps an event until it is its turn.
    pub fn hold(&mut self, waiting: Waiting) {
        let seq = waiting.event.seq;
        self.held += 1;
        self.bytes += waiting.event.weight();
        let pid = waiting.event.event.pid.clone();
        let lane = self.know(&pid, seq);
        lane.out.take_if(|out| *out == seq);
        if let Some(old) = lane.held.insert(seq, waiting) {
            self.held -= 1;
            self.bytes -= old.event.weight();
        }
    }

    /// The database has it: it waits for a time, or is dead and blocks.
    pub fn keep_back(&mut self, pid: &Pid, seq: u64) {
        if self.know(pid, seq).back.insert(seq) {
            self.backs += 1;
        }
    }

    /// A lane in which something has changed; [`Self::next`] says what is to be done.
    pub fn pop_touched(&mut self) -> Option<Key> {
        self.touched.pop_first()
    }

    /// Those up to here are known as far as any consumer's: they may have their turns.
    pub fn advance(&mut self, horizon: u64) {
        while self.beyond.first().is_some_and(|(seq, _)| *seq <= horizon)
            && let Some((_, key)) = self.beyond.pop_first()
        {
            self.touched.insert(key);
        }
    }

    /// What is to be done for a process, where nothing above `horizon` may have its turn.
    pub fn next(&mut self, key: &Key, horizon: u64) -> Next {
        let (loaded, open) = (self.is_loaded(), self.is_open());
        let Some(lane) = self.lanes.get_mut(key) else { return Next::Nothing };
        if !lane.hands.is_empty() {
            return Next::Nothing;
        }
        let first = lane.first();
        if let Some(out) = lane.out {
            if first.is_none_or(|first| out < first.seq()) {
                return Next::Nothing;
            }
            lane.out = None;
            self.whose.remove(&out);
            return Next::Recall(out);
        }
        match first {
            None => {
                self.lanes.remove(key);
                Next::Nothing
            }
            Some(First::Held(seq)) => {
                // While not all are known, what is due again goes on, and what stands before that.
                if !(loaded || open && lane.has_failed()) {
                    return Next::Nothing;
                }
                if seq > horizon {
                    self.beyond.insert((seq, key.clone()));
                    return Next::Nothing;
                }
                let Some(waiting) = lane.held.remove(&seq) else { return Next::Nothing };
                lane.out = Some(seq);
                self.held -= 1;
                self.bytes -= waiting.event.weight();
                Next::Give(waiting)
            }
            Some(First::Back(seq)) if lane.left.remove(&seq) => Next::Look,
            Some(First::Back(_)) => Next::Nothing,
            Some(First::Skipped(seq)) => {
                if !lane.reading {
                    self.wants.insert((seq, key.clone()));
                }
                Next::Nothing
            }
        }
    }

    /// Somebody has it.
    pub fn handed(&mut self, seq: u64) {
        if let Some(lane) = self.lane_of_mut(seq) {
            lane.out.take_if(|out| *out == seq);
            lane.hands.insert(seq);
        }
    }

    /// It has its outcome, or is gone.
    pub fn ended(&mut self, seq: u64) {
        self.forget(seq);
        self.not_open(seq);
        self.loading.ended(seq);
    }

    /// It waits for a time in the database from now on, or is dead and blocks.
    pub fn waits(&mut self, seq: u64) {
        self.not_open(seq);
        if let Some(key) = self.forget(seq) {
            if self.lanes.entry(key.clone()).or_default().back.insert(seq) {
                self.backs += 1;
            }
            self.whose.insert(seq, key);
        }
    }

    /// Nothing is known of it any more: somebody brings it again, or it is looked for in the database. Returns whose it
    /// was.
    pub fn forget(&mut self, seq: u64) -> Option<Key> {
        let key = self.whose.remove(&seq)?;
        let lane = self.lanes.get_mut(&key)?;
        lane.hands.remove(&seq);
        lane.out.take_if(|out| *out == seq);
        if lane.back.remove(&seq) {
            lane.left.remove(&seq);
            self.backs -= 1;
        }
        if let Some(waiting) = lane.held.remove(&seq) {
            self.held -= 1;
            self.bytes -= waiting.event.weight();
        }
        self.beyond.remove(&(seq, key.clone()));
        self.touched.insert(key.clone());
        Some(key)
    }

    /// A page under way may show it as open.
    fn not_open(&mut self, seq: u64) {
        for read in &mut self.reads {
            read.ended.insert(seq);
        }
    }

    fn key(&self, pid: &Pid) -> Key {
        self.lanes.get_key_value(pid.as_str()).map_or_else(|| Key::from(pid.as_str()), |(key, _)| key.clone())
    }

    /// The lane of this process, which knows the event from now on.
    fn know(&mut self, pid: &Pid, seq: u64) -> &mut Lane {
        let key = self.key(pid);
        self.whose.insert(seq, key.clone());
        self.touched.insert(key.clone());
        self.lanes.entry(key).or_default()
    }

    fn lane_of(&self, seq: u64) -> Option<&Lane> {
        self.lanes.get(self.whose.get(&seq)?)
    }

    fn lane_of_mut(&mut self, seq: u64) -> Option<&mut Lane> {
        self.lanes.get_mut(self.whose.get(&seq)?)
    }
}
