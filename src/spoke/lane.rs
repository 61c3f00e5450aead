//! A bounded queue from the links' tasks to one reader: bounded in items and in weight, and the sender never
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
    max_weight: usize,
    state: Mutex<State<T>>,
    wake: Notify,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    max_items: usize,
    weight: usize,
    /// Items were left out; so many are to be read before that is told.
    lagged: Option<usize>,
    closed: bool,
    fault: Option<Fault>,
}

impl<T> Lane<T> {
    pub(super) fn new(max_items: usize, max_weight: usize) -> Self {
        let state =
            State { items: VecDeque::new(), max_items, weight: 0, lagged: None, closed: false, fault: None };
        Self { max_weight, state: Mutex::new(state), wake: Notify::new() }
    }

    /// From now on it takes so many items, if that is more than before.
    pub(super) fn widen(&self, max_items: usize) {
        let mut state = self.lock();
        state.max_items = state.max_items.max(max_items);
    }

    /// Adds an item, or gives it back if the queue is full. A lone item always fits.
    pub(super) fn push(&self, item: T, weight: usize) -> Result<(), T> {
        let mut state = self.lock();
        let fits = state.items.len() < state.max_items && state.weight + weight <= self.max_weight;
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
        let mut state = self.lock();
        state.lagged = Some(state.items.len());
        drop(state);
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
        state.lagged = state.lagged.map(|left| left.min(kept.len()));
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

    /// Whether nothing is added any more: it has ended, or its reader has gone.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
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
                if state.lagged == Some(0) {
                    state.lagged = None;
                    return Taken::Lagged;
                }
                if let Some((item, weight)) = state.items.pop_front() {
                    state.weight -= weight;
                    state.lagged = state.lagged.map(|left| left - 1);
                    return Taken::Item(item);
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

    #[tokio::test]
    async fn a_lag_is_told_at_its_place_though_others_go_on_adding() {
        let lane = Lane::new(2, 10);
        assert_eq!(lane.push(1, 1), Ok(()));
        lane.lag();
        assert_eq!(lane.push(2, 1), Ok(()));
        assert_eq!(lane.take().await, Taken::Item(1));
        assert_eq!(lane.take().await, Taken::Lagged);
        assert_eq!(lane.take().await, Taken::Item(2));
        lane.widen(3);
        for item in 1..=3 {
            assert_eq!(lane.push(item, 1), Ok(()));
        }
        assert_eq!(lane.push(4, 1), Err(4));
    }
}
