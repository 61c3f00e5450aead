//! Events that npm spokes were told of. They claim in the database, so whoever of ours is to get such an event claims
//! it there first; and where nobody of ours was ready at once, npm spokes have a moment's precedence.

use std::collections::BTreeMap;

use super::binding::Waiting;

/// For so long npm spokes alone may claim an event that no consumer of ours was ready for, in milliseconds.
pub const NPM_FIRST: i64 = 5_000;
/// Events that are known as told. Of the oldest beyond that it is forgotten: a consumer of ours may then work on one
/// that an npm spoke claims meanwhile; its ack is refused.
const MOST_TOLD: usize = 65_536;
/// Events that wait here for the end of that moment; beyond, our consumers are offered them at once.
const MOST_LATER: usize = if cfg!(test) { 8 } else { 4_096 };
/// The same in bytes.
const MOST_LATER_BYTES: usize = 16 * 1024 * 1024;

/// What npm spokes were told of, by sequence number.
#[derive(Debug, Default)]
pub struct Guards {
    /// From when on consumers of ours may have it, in milliseconds since 1970.
    told: BTreeMap<u64, i64>,
    /// Up to here events were dispatched by an earlier start, which may have told npm spokes of them.
    earlier: u64,
    /// There are npm spokes.
    npm_here: bool,
    /// Those that a binding of ours wants.
    later: BTreeMap<u64, Waiting>,
    later_bytes: usize,
}

impl Guards {
    /// Nobody was told yet, but for what was dispatched before: up to `earlier`.
    #[must_use]
    pub fn new(earlier: u64) -> Self {
        Self { earlier, ..Self::default() }
    }

    /// An npm spoke came.
    pub fn npm_came(&mut self) {
        self.npm_here = true;
    }

    /// npm spokes hear of the event; consumers of ours may have it from `not_before` on.
    pub fn guard(&mut self, seq: u64, not_before: i64) {
        self.told.insert(seq, not_before);
        if self.told.len() > MOST_TOLD {
            self.told.pop_first();
        }
    }

    /// Whether the event must be claimed in the database before it is handed out.
    #[must_use]
    pub fn is_guarded(&self, seq: u64) -> bool {
        (self.npm_here && seq <= self.earlier) || (!self.told.is_empty() && self.told.contains_key(&seq))
    }

    /// Until when the event is only for npm spokes, if it still is.
    #[must_use]
    pub fn waits_until(&self, seq: u64, now: i64) -> Option<i64> {
        self.told.get(&seq).copied().filter(|not_before| *not_before > now)
    }

    /// The event is nobody else's any more.
    pub fn forget(&mut self, seq: u64) {
        self.told.remove(&seq);
    }

    /// Keeps an event until [`Self::due`]. Given back: there is no room.
    ///
    /// # Errors
    /// The event, if there is no room.
    pub fn keep(&mut self, waiting: Waiting) -> Result<(), Waiting> {
        if self.later.len() >= MOST_LATER || self.later_bytes >= MOST_LATER_BYTES {
            return Err(waiting);
        }
        self.later_bytes += waiting.event.weight();
        if let Some(old) = self.later.insert(waiting.event.seq, waiting) {
            self.later_bytes -= old.event.weight();
        }
        Ok(())
    }

    /// The event is kept here no longer: it was deleted, or a binding that had it in its own window was quicker.
    pub fn drop_kept(&mut self, seq: u64) {
        if self.later.is_empty() {
            return;
        }
        if let Some(waiting) = self.later.remove(&seq) {
            self.later_bytes -= waiting.event.weight();
        }
    }

    /// Whether it is kept here.
    #[must_use]
    pub fn keeps(&self, seq: u64) -> bool {
        !self.later.is_empty() && self.later.contains_key(&seq)
    }

    /// How many events wait here.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.later.len()
    }

    /// The oldest event that waits here and has no row that says so.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.later.iter().find(|(_, waiting)| waiting.due.is_none()).map(|(seq, _)| *seq)
    }

    /// Takes out what consumers of ours may have now, oldest first.
    pub fn due(&mut self, now: i64) -> Vec<Waiting> {
        let told = &self.told;
        let due: Vec<Waiting> = self
            .later
            .extract_if(.., |seq, _| told.get(seq).is_none_or(|not_before| *not_before <= now))
            .map(|(_, waiting)| waiting)
            .collect();
        self.later_bytes -= due.iter().map(|waiting| waiting.event.weight()).sum::<usize>();
        due
    }
}
