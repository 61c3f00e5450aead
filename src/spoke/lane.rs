//! A bounded queue from the link's task to one reader: bounded in items and in weight, and the sender never
//! waits: what doesn't fit is the sender's to decide.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::event::Fault;

/// What a reader finds next.
#[derive(Debug, PartialEq)]
pub(super) enum Taken<T> {
    /// The oldest item.
    Item(T),
    /// The queue was full at this place and items were left out. Said once.
    Lagged,
    /// Nothing comes any more.
    Closed,
}

#[derive(Debug)]
pub(super) struct Lane<T> {
    max_items: usize,
    max_weight: usize,
    state: Mutex<State<T>>,
    wake: Notify,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    weight: usize,
    lagged: bool,
    closed: bool,
    fault: Option<Fault>,
}

impl<T> Lane<T> {
    pub(super) fn new(max_items: usize, max_weight: usize) -> Self {
        let state = State { items: VecDeque::new(), weight: 0, lagged: false, closed: false, fault: None };
        Self { max_items, max_weight, state: Mutex::new(state), wake: Notify::new() }
    }

    /// Adds an item, or gives it back if the queue is full. A lone item always fits.
    pub(super) fn push(&self, item: T, weight: usize) -> Result<(), T> {
        let mut state = self.lock();
        let fits = state.items.len() < self.max_items && state.weight + weight <= self.max_weight;
        if state.closed || !(fits || state.items.is_empty()) {
            return Err(item);
        }
        state.items.push_back((item, weight));
        state.weight += weight;
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Tells the reader, once it has read all that is here, that items were left out.
    pub(super) fn lag(&self) {
        self.lock().lagged = true;
        self.wake.notify_one();
    }

    /// Takes out everything.
    pub(super) fn clear(&self) {
        self.discard(|_| true);
    }

    /// Takes out all such items.
    pub(super) fn discard(&self, mut is_such: impl FnMut(&T) -> bool) {
        let mut state = self.lock();
        let (out, kept): (VecDeque<_>, _) =
            std::mem::take(&mut state.items).into_iter().partition(|(item, _)| is_such(item));
        state.weight = kept.iter().map(|(_, weight)| weight).sum();
        state.items = kept;
        drop(state);
        // Dropped after the lock is free: an item's own drop may do more.
        drop(out);
    }

    /// Nothing is added any more; what is here can still be read. The first reason is kept.
    pub(super) fn close(&self, fault: Option<Fault>) {
        let mut state = self.lock();
        if !state.closed {
            state.closed = true;
            state.fault = fault;
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Why it was closed, if there was a reason.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    /// Waits for what comes next. Safe to cancel. For one reader at a time.
    pub(super) async fn take(&self) -> Taken<T> {
        loop {
            {
                let mut state = self.lock();
                if let Some((item, weight)) = state.items.pop_front() {
                    state.weight -= weight;
                    return Taken::Item(item);
                }
                if std::mem::take(&mut state.lagged) {
                    return Taken::Lagged;
                }
                if state.closed {
                    return Taken::Closed;
                }
            }
            // A push between the look and here has left its wake-up behind.
            self.wake.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_bounded_in_items_and_weight_but_a_lone_item_fits() {
        let lane = Lane::new(2, 10);
        assert_eq!(lane.push(1, 100), Ok(()));
        assert_eq!(lane.push(2, 1), Err(2));
        assert_eq!(lane.take().await, Taken::Item(1));
        assert_eq!(lane.push(3, 4), Ok(()));
        assert_eq!(lane.push(4, 6), Ok(()));
        assert_eq!(lane.push(5, 0), Err(5));
    }

    #[tokio::test]
    async fn a_lag_is_told_once_and_after_what_was_there() {
        let lane = Lane::new(2, 10);
        assert_eq!(lane.push(1, 1), Ok(()));
        lane.lag();
        assert_eq!(lane.take().await, Taken::Item(1));
        assert_eq!(lane.take().await, Taken::Lagged);
        lane.close(None);
        assert_eq!(lane.take().await, Taken::<i32>::Closed);
        assert_eq!(lane.push(2, 1), Err(2));
    }
}
