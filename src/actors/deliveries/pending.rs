//! How many events wait for a consumer, wherever they are: counted from the database, page by page, and kept by what
//! happens since.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

/// The most ends that are remembered while a page is read; beyond, the count begins anew.
const MOST_ENDED: usize = 65_536;

/// The number of events that a binding wants, that have no outcome and are nobody's claim.
#[derive(Debug)]
pub struct Pending {
    /// As of the last count and what happened since. None: never counted.
    known: Option<i64>,
    counting: Option<Counting>,
    /// It may not be true any more.
    wanted: bool,
    /// The same, but it can wait.
    unsure: bool,
    /// npm spokes claim in the database, unseen.
    shared: bool,
    oldest: Oldest,
}

/// The oldest of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oldest {
    /// Whoever was it waits no more, or it was never looked for.
    Unknown,
    /// None waits.
    Nothing,
    /// This one, by its number.
    At(u64),
}

/// A count under way. An event between `counted` and `until` is counted with its page, any other one by what happens to it.
#[derive(Debug)]
struct Counting {
    counted: u64,
    until: u64,
    sum: i64,
    /// The first of them.
    first: Option<u64>,
    /// Ended since the page is being read: it may show them all the same.
    ended: HashSet<u64>,
    /// They were too many.
    spoiled: bool,
}

/// Which events are to be looked at next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarksWanted {
    /// Those above this number.
    pub after: u64,
    /// Those up to this one.
    pub until: u64,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            known: None,
            counting: None,
            wanted: true,
            unsure: false,
            shared: false,
            oldest: Oldest::Unknown,
        }
    }
}

impl Pending {
    /// How many there are; none while that was never counted.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        // Between a new binding and the count that it asks for, more may go than was known of.
        self.known.map(|count| u64::try_from(count).unwrap_or(0))
    }

    /// Which of them is the oldest.
    #[must_use]
    pub fn oldest(&self) -> Oldest {
        self.oldest
    }

    /// The number may have become wrong: count again.
    pub fn doubt(&mut self) {
        self.wanted = true;
    }

    /// The number may be off by little: count again with [`Self::refresh`].
    pub fn be_unsure(&mut self) {
        self.unsure = true;
    }

    /// npm spokes may claim events: [`Self::refresh`] counts from now on.
    pub fn share(&mut self) {
        self.shared = true;
    }

    /// Now and then: count again, if there is reason to.
    pub fn refresh(&mut self) {
        self.wanted |= std::mem::take(&mut self.unsure) | self.shared;
    }

    /// Begins a count, if one is wanted and none is under way: everything up to `floor` is settled, and `head` is the last
    /// event that was dispatched. No floor: nothing is wanted by anybody.
    pub fn begin(&mut self, floor: Option<u64>, head: u64) -> Option<MarksWanted> {
        if !self.wanted || self.counting.is_some() {
            return None;
        }
        self.wanted = false;
        let Some(floor) = floor.filter(|floor| *floor < head) else {
            self.known = Some(0);
            self.oldest = Oldest::Nothing;
            return None;
        };
        self.counting = Some(Counting {
            counted: floor,
            until: head,
            sum: 0,
            first: None,
            ended: HashSet::new(),
            spoiled: false,
        });
        Some(MarksWanted { after: floor, until: head })
    }

    /// Counts a page: what is up to `read`, of which these events wait as far as the page knows. Returns what is to be
    /// read next; none: that was all.
    pub fn page(&mut self, waiting: impl Iterator<Item = u64>, read: Option<u64>) -> Option<MarksWanted> {
        let counting = self.counting.as_mut()?;
        if counting.spoiled {
            self.failed();
            return None;
        }
        let ended = std::mem::take(&mut counting.ended);
        for seq in waiting.filter(|seq| !ended.contains(seq)) {
            counting.sum += 1;
            counting.first.get_or_insert(seq);
        }
        match read {
            Some(read) if read < counting.until => {
                counting.counted = read;
                Some(MarksWanted { after: read, until: counting.until })
            }
            _ => {
                self.known = Some(counting.sum);
                // One that came back meanwhile may be older; the next count tells.
                let none = if counting.sum > 0 { Oldest::Unknown } else { Oldest::Nothing };
                self.oldest = counting.first.map_or(none, Oldest::At);
                self.counting = None;
                None
            }
        }
    }

    /// The page couldn't be read: the last number stands, and another count is wanted.
    pub fn failed(&mut self) {
        self.counting = None;
        self.wanted = true;
    }

    /// The event waits now: it was dispatched, or came back.
    pub fn came(&mut self, seq: u64) {
        self.change(seq, 1);
        self.oldest = match self.oldest {
            Oldest::Nothing => Oldest::At(seq),
            Oldest::At(oldest) => Oldest::At(oldest.min(seq)),
            Oldest::Unknown => Oldest::Unknown,
        };
    }

    /// The event waits no more: a consumer has it, or it was deleted.
    pub fn went(&mut self, seq: u64) {
        self.change(seq, -1);
        if self.known.is_some_and(|known| known <= 0) {
            self.oldest = Oldest::Nothing;
        } else if self.oldest == Oldest::At(seq) {
            self.oldest = Oldest::Unknown;
        }
    }

    /// The event is no more to be served. A page under way may not know that.
    pub fn ended(&mut self, seq: u64) {
        if let Some(counting) = &mut self.counting
            && counting.is_to_come(seq)
        {
            if counting.ended.len() < MOST_ENDED {
                counting.ended.insert(seq);
            } else {
                counting.spoiled = true;
            }
        }
    }

    fn change(&mut self, seq: u64, by: i64) {
        if let Some(known) = &mut self.known {
            *known += by;
        }
        if let Some(counting) = &mut self.counting
            && !counting.is_to_come(seq)
        {
            counting.sum += by;
        }
    }
}

impl Counting {
    fn is_to_come(&self, seq: u64) -> bool {
        seq > self.counted && seq <= self.until
    }
}
