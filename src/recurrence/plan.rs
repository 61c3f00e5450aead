//! What is to run now, and what becomes of times that were missed.

use std::collections::VecDeque;

use super::Times;
use crate::wire::Missed;

/// A time that passed so long ago was missed: no hub was up, or it was held up. In milliseconds.
pub const GRACE_MS: i64 = 10_000;
/// Missed runs that are made up for at most: the newest.
pub const CATCH_UP: usize = 1_000;
/// Times that are left out are counted up to here.
pub const COUNTED: u64 = 10_000;

/// What to do about missed times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Which of them run.
    pub missed: Missed,
    /// How old they may be to run, for [`Missed::All`]; in milliseconds.
    pub window_ms: i64,
}

/// What is to be done with a schedule that is due.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The times that run now, rising.
    pub runs: Vec<i64>,
    /// How many of them were missed.
    pub late: u64,
    /// Times that don't run at all, counted up to [`COUNTED`].
    pub left_out: u64,
    /// The next time. It may be over too, if not all could run at once. None: that was the last one.
    pub next: Option<i64>,
}

/// What to do at `now` with a schedule whose next time is `due`; `room`: so many may run at once, one always may. None:
/// it isn't due.
#[must_use]
pub fn plan(times: &Times, policy: Policy, due: i64, now: i64, room: usize) -> Option<Plan> {
    if due > now {
        return None;
    }
    let missed = now.saturating_sub(GRACE_MS);
    if due >= missed {
        return Some(Plan { runs: vec![due], late: 0, left_out: 0, next: times.next(due) });
    }
    let mut runs: Vec<i64> = match policy.missed {
        // What wasn't missed runs by itself.
        Missed::Skip => {
            let next = times.next(missed - 1);
            let left_out = count(times, due, next.unwrap_or(i64::MAX).min(now));
            return Some(Plan { next, left_out, ..Plan::default() });
        }
        // And so it does here, behind the one.
        Missed::Once => newest(times, due, missed - 1, 1).into(),
        Missed::All => {
            let oldest = now.saturating_sub(policy.window_ms).min(missed);
            newest(times, due.max(oldest), now, CATCH_UP).into()
        }
    };
    let left_out = count(times, due, runs.first().copied().unwrap_or(now));
    runs.truncate(room.max(1));
    let next = times.next(runs.last().copied().unwrap_or(now));
    let late = runs.iter().filter(|run| **run < missed).count() as u64;
    Some(Plan { runs, late, left_out, next })
}

/// The last `most` times from `from` to `to`, both included. Looks back further and further, so that the cost follows the
/// number of times that are found rather than the span.
fn newest(times: &Times, from: i64, to: i64, most: usize) -> VecDeque<i64> {
    let mut span = 1_000_i64;
    loop {
        let begin = from.max(to.saturating_sub(span));
        let mut found = VecDeque::with_capacity(most.min(64));
        let mut at = times.next(begin.saturating_sub(1));
        while let Some(time) = at.filter(|time| *time <= to) {
            if found.len() == most {
                found.pop_front();
            }
            found.push_back(time);
            at = times.next(time);
        }
        if found.len() == most || begin == from {
            return found;
        }
        span = span.saturating_mul(2);
    }
}

/// How many times there are from `from`, included, to `to`, excluded; at most [`COUNTED`].
fn count(times: &Times, from: i64, to: i64) -> u64 {
    let mut count = 0;
    let mut at = times.next(from.saturating_sub(1));
    while let Some(time) = at.filter(|time| *time < to && count < COUNTED) {
        count += 1;
        at = times.next(time);
    }
    count
}
