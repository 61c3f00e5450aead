//! A fixed rate: says when each event is due, to some ten microseconds. The runtime's own timers are exact to a
//! millisecond only, which is more than what is measured here.

use std::{
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

/// Moments that were due and not taken yet; beyond it the clock waits, and what is due later is late.
const AHEAD: usize = 1_024;

/// When something is due, again and again.
pub(super) struct Pace(mpsc::Receiver<Instant>);

impl Pace {
    /// From this moment on, one every so often, so many.
    pub(super) fn start(first: Instant, interval: Duration, count: usize) -> Self {
        let (due, receiver) = mpsc::channel(AHEAD);
        // It ends with its last moment, or when nobody asks any more.
        thread::spawn(move || {
            for number in 0..count {
                let moment = moment(first, interval, number);
                // It may return early.
                while let Some(left) =
                    moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
                {
                    thread::park_timeout(left);
                }
                if due.blocking_send(moment).is_err() {
                    break;
                }
            }
        });
        Self(receiver)
    }

    /// Waits for the next moment and gives it; none after the last.
    pub(super) async fn next(&mut self) -> Option<Instant> {
        self.0.recv().await
    }
}

fn moment(first: Instant, interval: Duration, number: usize) -> Instant {
    let nanos = interval.as_nanos().saturating_mul(number as u128);
    first + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// How long between two events at a rate.
pub(super) fn interval(per_second: f64) -> Duration {
    Duration::from_secs_f64(1.0 / per_second.max(1e-3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn moments_come_in_order_and_not_early() {
        let first = Instant::now();
        let mut pace = Pace::start(first, Duration::from_micros(500), 3);
        for number in 0..3 {
            let due = pace.next().await.unwrap();
            assert_eq!(due, first + Duration::from_micros(500 * number));
            assert!(Instant::now() >= due);
        }
        assert_eq!(pace.next().await, None);
    }
}
