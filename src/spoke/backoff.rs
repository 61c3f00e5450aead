//! How long to wait before another try: doubling, with full jitter, so that many clients don't come at once.

use std::time::Duration;

#[derive(Debug, Clone)]
pub(super) struct Backoff {
    first: Duration,
    most: Duration,
    tries: u32,
}

impl Backoff {
    pub(super) fn new(first: Duration, most: Duration) -> Self {
        Self { first, most: most.max(first), tries: 0 }
    }

    /// The next wait: anything up to a bound that doubles each time.
    pub(super) fn next(&mut self) -> Duration {
        let bound = self.bound();
        self.tries = self.tries.saturating_add(1);
        bound.mul_f64(fastrand::f64())
    }

    /// The most that [`Backoff::next`] would say now.
    fn bound(&self) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(self.tries).unwrap_or(u32::MAX));
        doubled.min(self.most)
    }

    pub(super) fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most_and_start_again_after_a_reset() {
        let (first, most) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = Backoff::new(first, most);
        let mut bounds = Vec::new();
        for _ in 0..40 {
            let bound = backoff.bound();
            assert!(backoff.next() <= bound);
            bounds.push(bound.as_millis());
        }
        assert_eq!(bounds[..7], [100, 200, 400, 800, 1600, 3200, 5000]);
        assert_eq!(bounds[39], 5000);
        backoff.reset();
        assert_eq!(backoff.bound(), first);
    }
}
