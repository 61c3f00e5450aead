//! How long the next attempt waits.

use super::policy::Policy;

/// How much a wait is spread, up and down, so that what failed together doesn't come back together.
const SPREAD: f64 = 0.2;

impl Policy {
    /// How long the next attempt waits after `failed` of them, in milliseconds. `chance` is between 0 and 1.
    #[must_use]
    pub fn back_off(&self, failed: u32, chance: f64) -> i64 {
        let doubled = 2_i64.saturating_pow(failed.saturating_sub(1));
        let wait = self.delay.saturating_mul(doubled).min(self.max_delay).max(0);
        let spread = SPREAD * (2.0 * chance.clamp(0.0, 1.0) - 1.0);
        // A wait of milliseconds is exact in a float for longer than anybody waits.
        wait.saturating_add((wait as f64 * spread) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_cap_and_are_spread_by_a_fifth() {
        let policy = Policy::default();
        let middle: Vec<i64> = (1..12).map(|failed| policy.back_off(failed, 0.5)).collect();
        assert_eq!(
            middle,
            [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]
        );
        assert_eq!((policy.back_off(1, 0.0), policy.back_off(1, 1.0)), (800, 1_200));
        assert_eq!((policy.back_off(99, 0.0), policy.back_off(u32::MAX, 1.0)), (240_000, 360_000));
        assert_eq!(policy.back_off(0, 0.5), 1_000);
    }

    #[test]
    fn whatever_is_set_a_wait_is_a_time() {
        let policy = Policy { delay: i64::MAX, max_delay: i64::MAX, ..Policy::default() };
        assert!(policy.back_off(u32::MAX, 1.0) > 0);
        let none = Policy { delay: 0, max_delay: 0, ..Policy::default() };
        assert_eq!(none.back_off(3, 1.0), 0);
    }
}
