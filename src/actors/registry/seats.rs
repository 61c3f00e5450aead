//! Subscriptions that replay what is stored and have come near the present: what is dispatched meanwhile is kept for
//! them, within bounds, until they have read up to it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    actors::{
        dispatched::Dispatched,
        outlet::{EventPush, LinkId},
    },
    wire::Sub,
};

/// Events kept for one of them at most; it reads on from the store if there are more.
const MOST_EVENTS: usize = 10_000;
/// Their bytes.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// All of them.
#[derive(Debug, Default)]
pub struct Seats {
    seats: HashMap<(LinkId, Sub), Seat>,
}

#[derive(Debug, Default)]
struct Seat {
    /// In sequence.
    kept: Vec<Arc<Dispatched>>,
    bytes: usize,
    /// There were more than are kept: none is.
    full: bool,
}

/// What was kept for a seat.
#[derive(Debug)]
pub enum Kept {
    /// All that was dispatched since the seat was taken, or since the last look.
    Events(Vec<Arc<Dispatched>>),
    /// It was too much.
    TooMuch,
}

impl Seats {
    /// From now on events are kept for this subscription.
    pub fn take(&mut self, link: LinkId, sub: Sub) {
        self.seats.insert((link, sub), Seat::default());
    }

    /// An event for this subscription.
    pub fn keep(&mut self, link: LinkId, sub: Sub, event: &Arc<Dispatched>) {
        let Some(seat) = self.seats.get_mut(&(link, sub)).filter(|seat| !seat.full) else { return };
        seat.bytes += EventPush::weight_of(event);
        if seat.kept.len() >= MOST_EVENTS || seat.bytes > MOST_BYTES {
            *seat = Seat { full: true, ..Seat::default() };
        } else {
            seat.kept.push(event.clone());
        }
    }

    /// What is kept for it counts for so many bytes; none: too much came, or it has no seat.
    #[must_use]
    pub fn bytes(&self, link: LinkId, sub: Sub) -> Option<usize> {
        self.seats.get(&(link, sub)).filter(|seat| !seat.full).map(|seat| seat.bytes)
    }

    /// Takes out what was kept; the seat stays.
    pub fn empty(&mut self, link: LinkId, sub: Sub) -> Kept {
        match self.seats.get_mut(&(link, sub)).map(std::mem::take) {
            Some(Seat { kept, full: false, .. }) => Kept::Events(kept),
            _ => Kept::TooMuch,
        }
    }

    /// The seat is given up, with what was kept.
    pub fn leave(&mut self, link: LinkId, sub: Sub) {
        self.seats.remove(&(link, sub));
    }

    /// These sequence numbers are deleted.
    pub fn forget(&mut self, seqs: &HashSet<u64>) {
        for seat in self.seats.values_mut() {
            seat.kept.retain(|event| !seqs.contains(&event.seq));
            seat.bytes = seat.kept.iter().map(|event| EventPush::weight_of(event)).sum();
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seats.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Data, Domain, Event, EventId, Name, Pid};

    fn event(seq: u64, bytes: usize) -> Arc<Dispatched> {
        let event = Event {
            id: EventId::parse(format!("e{seq}")).unwrap(),
            timestamp: 0,
            domain: Domain::parse("d").unwrap(),
            name: Name::parse("n").unwrap(),
            pid: Pid::parse("p").unwrap(),
            rid: None,
            data: Data::parse(format!("\"{}\"", "x".repeat(bytes))).unwrap(),
        };
        Arc::new(Dispatched::new(event, seq))
    }

    fn seqs(kept: Kept) -> Option<Vec<u64>> {
        match kept {
            Kept::Events(events) => Some(events.iter().map(|event| event.seq).collect()),
            Kept::TooMuch => None,
        }
    }

    #[test]
    fn what_is_kept_is_handed_over_once() {
        let mut seats = Seats::default();
        let link = LinkId(1);
        seats.keep(link, 7, &event(1, 10));
        seats.take(link, 7);
        for seq in [2, 3, 4] {
            seats.keep(link, 7, &event(seq, 10));
            seats.keep(link, 8, &event(seq, 10));
        }
        seats.forget(&HashSet::from([3]));
        assert_eq!(seats.bytes(link, 7), Some(2 * EventPush::weight_of(&event(2, 10))));
        assert_eq!(seqs(seats.empty(link, 7)), Some(vec![2, 4]));
        assert_eq!(seqs(seats.empty(link, 7)), Some(vec![]));
        seats.keep(link, 7, &event(5, 10));
        seats.leave(link, 7);
        assert_eq!((seats.bytes(link, 7), seats.len()), (None, 0));
    }

    #[test]
    fn too_much_is_not_kept_at_all() {
        let mut seats = Seats::default();
        let link = LinkId(1);
        let small = event(1, 1);
        seats.take(link, 1);
        (0..=MOST_EVENTS).for_each(|_| seats.keep(link, 1, &small));
        assert_eq!(seats.bytes(link, 1), None);
        assert_eq!(seqs(seats.empty(link, 1)), None);
        assert_eq!(seqs(seats.empty(link, 1)), Some(vec![]), "it begins anew");
        let large = event(2, MOST_BYTES / 2);
        (0..2).for_each(|_| seats.keep(link, 1, &large));
        assert_eq!(seqs(seats.empty(link, 1)), None);
    }
}
