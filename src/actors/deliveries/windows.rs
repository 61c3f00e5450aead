//! What the windows of all bindings hold together: each has a bound of its own, but there may be thousands.
//!
//! The rule when it is used up: the first half of the bytes is for whoever comes first; beyond it a binding may have no
//! more than its even share of the other half; and where nothing is left, one event for each binding that has none.
//! What is refused stays in the database, and is asked for again as the binding's own events go.

use std::{
    cell::Cell,
    cmp::Ordering,
    ops::{AddAssign, SubAssign},
    rc::Rc,
};

/// The bytes of all windows, and the most that they may be. Clones count together.
#[derive(Debug, Clone)]
pub struct Windows(Rc<Numbers>);

#[derive(Debug)]
struct Numbers {
    most: usize,
    held: Cell<usize>,
    /// Bindings that somebody consumes.
    active: Cell<usize>,
    /// How often an event found no room.
    refused: Cell<u64>,
}

impl Default for Windows {
    /// Without a bound.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Windows {
    /// Nothing is held; it may be `most` bytes, and one event of each binding.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Rc::new(Numbers { most, held: Cell::new(0), active: Cell::new(0), refused: Cell::new(0) }))
    }

    /// The bytes that are held, those of pages on their way included.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held.get()
    }

    /// How often an event found no room, since the last call.
    #[must_use]
    pub fn take_refused(&self) -> u64 {
        self.0.refused.take()
    }

    /// How many more bytes a binding may have that holds these; none: not one more event, which a binding that holds
    /// nothing always may.
    #[must_use]
    pub fn room(&self, holds: usize) -> Option<usize> {
        let Numbers { most, held, active, .. } = &*self.0;
        let (half, held) = (most / 2, held.get());
        let share = (half / active.get().max(1)).saturating_sub(holds).min(most.saturating_sub(held));
        let room = half.saturating_sub(held).max(share);
        (room > 0 || holds == 0).then_some(room)
    }

    /// Whether a binding that holds these may have one more event; if not, that is counted.
    #[must_use]
    pub fn admits(&self, holds: usize) -> bool {
        let admits = self.room(holds).is_some();
        if !admits {
            self.0.refused.set(self.0.refused.get() + 1);
        }
        admits
    }

    /// Bytes that are held as long as it lives.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { of: self.clone(), bytes: 0 }
    }

    /// A binding is consumed as long as it lives.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.0.active.set(self.0.active.get() + 1);
        Seat(self.clone())
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) {
        self.0.held.set(change(self.0.held.get()));
    }
}

/// A part of what is held.
#[derive(Debug, Default)]
pub struct Share {
    of: Windows,
    bytes: usize,
}

impl Share {
    /// Nothing of it is held any more.
    pub fn clear(&mut self) {
        *self -= self.bytes;
    }

    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of whom it is a part.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        &self.of
    }
}

impl AddAssign<usize> for Share {
    fn add_assign(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.of.change(|held| held.saturating_add(bytes));
    }
}

impl SubAssign<usize> for Share {
    fn sub_assign(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.of.change(|held| held.saturating_sub(bytes));
    }
}

impl PartialEq<usize> for Share {
    fn eq(&self, bytes: &usize) -> bool {
        self.bytes == *bytes
    }
}

impl PartialOrd<usize> for Share {
    fn partial_cmp(&self, bytes: &usize) -> Option<Ordering> {
        self.bytes.partial_cmp(bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A binding that somebody consumes.
#[derive(Debug)]
pub struct Seat(Windows);

impl Drop for Seat {
    fn drop(&mut self) {
        let active = &self.0.0.active;
        active.set(active.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_goes_to_whoever_comes_first_the_rest_in_even_shares_and_one_event_always_fits() {
        let windows = Windows::new(1_000);
        let _seats: Vec<Seat> = (0..5).map(|_| windows.seat()).collect();
        let mut greedy = windows.share();
        assert_eq!(windows.room(0), Some(500));
        greedy += 500;
        assert_eq!(windows.room(greedy.bytes()), None, "it has more than its share");
        let mut shares: Vec<Share> = (0..4).map(|_| windows.share()).collect();
        for share in &mut shares {
            assert_eq!(windows.room(share.bytes()), Some(100), "an even one of five");
            *share += 100;
            assert_eq!(windows.room(share.bytes()), None);
        }
        assert!(!windows.admits(100) && windows.admits(0));
        assert_eq!((windows.held(), windows.take_refused(), windows.take_refused()), (900, 1, 0));

        // Somebody else, while the others fill what is left.
        let _more = windows.seat();
        let mut last = windows.share();
        last += 100;
        assert_eq!(windows.room(0), Some(0), "one event, however much is held");
        drop(greedy);
        shares.clear();
        assert_eq!((windows.held(), windows.room(100)), (100, Some(400)));
    }

    #[test]
    fn what_is_dropped_is_held_no_more() {
        let windows = Windows::new(100);
        let mut share = windows.share();
        share += 60;
        share -= 20;
        assert!(share == 40 && share > 39);
        share.clear();
        share += 10;
        drop(share);
        assert_eq!(windows.held(), 0);
        drop(windows.seat());
        assert_eq!(windows.room(1), Some(50));
    }
}
