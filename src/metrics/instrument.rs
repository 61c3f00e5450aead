//! What numbers are made of: a counter, a gauge, a peak and a histogram, each a few relaxed atomics.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Only ever grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn inc(&self) {
        self.add(1);
    }

    /// `n` more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The sum so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// One up; the new value.
    pub fn inc(&self) -> i64 {
        self.add(1)
    }

    /// One down; the new value.
    pub fn dec(&self) -> i64 {
        self.add(-1)
    }

    /// `n` up, or down if it is negative; the new value.
    pub fn add(&self, n: i64) -> i64 {
        self.0.fetch_add(n, Relaxed).wrapping_add(n)
    }

    /// To this value.
    pub fn set(&self, value: i64) {
        self.0.store(value, Relaxed);
    }

    /// To the value of a length or a size; more than an `i64` holds counts as its end.
    pub fn set_len(&self, len: usize) {
        self.set(i64::try_from(len).unwrap_or(i64::MAX));
    }

    /// To `value` if that is higher.
    pub fn raise(&self, value: i64) {
        self.0.fetch_max(value, Relaxed);
    }

    /// The value now.
    #[must_use]
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Upper bounds of the time buckets in nanoseconds, 1 µs to 10 s; longer times fall into a last one.
pub(super) const TIME_BOUNDS: &[u64] = &[
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Upper bounds of the buckets for sizes of batches.
pub(super) const SIZE_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];

/// How often values fell between fixed bounds.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// How many raw units make one that is shown: 1e9 for times, kept in nanoseconds. A divisor: the quotient of two
    /// exact numbers is the nearest to the decimal one, a product with 1e-9 isn't.
    per: f64,
    /// One per bound, and one for what is above the last.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// For durations; shown in seconds.
    #[must_use]
    pub(super) fn times() -> Self {
        Self::new(TIME_BOUNDS, 1e9)
    }

    /// For numbers of things.
    #[must_use]
    pub(super) fn sizes() -> Self {
        Self::new(SIZE_BOUNDS, 1.0)
    }

    fn new(bounds: &'static [u64], per: f64) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, per, buckets, sum: AtomicU64::new(0) }
    }

    /// Adds a duration to a histogram of times.
    pub fn record(&self, took: Duration) {
        self.record_raw(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds a number to a histogram of sizes.
    pub fn record_size(&self, size: usize) {
        self.record_raw(size as u64);
    }

    fn record_raw(&self, value: u64) {
        let bucket = self.bounds.partition_point(|&bound| bound < value);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// The buckets as they are now. The count is their sum, so that it agrees with them even while others
    /// record.
    #[must_use]
    pub(super) fn read(&self) -> Reading {
        Reading {
            bounds: self.bounds,
            per: self.per,
            buckets: self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect(),
            sum: self.sum.load(Relaxed),
        }
    }
}

/// A histogram at one moment.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    bounds: &'static [u64],
    per: f64,
    buckets: Vec<u64>,
    sum: u64,
}

impl Reading {
    /// How many values.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their sum, in the unit that is shown.
    pub(super) fn sum(&self) -> f64 {
        self.sum as f64 / self.per
    }

    /// (Upper bound, values in this bucket alone); the last bound is [`f64::MAX`], which stands for infinity.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().map(|&bound| bound as f64 / self.per);
        bounds.chain(std::iter::once(f64::MAX)).zip(self.buckets.iter().copied()).collect()
    }

    /// An estimate of the value below which the share `q` (0 to 1) of all values lies: linear within its
    /// bucket, as Prometheus' `histogram_quantile` does. Values above the last bound count as that bound;
    /// none when there are no values.
    pub(super) fn quantile(&self, q: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * count as f64;
        let mut below = 0u64;
        let mut lower = 0.0;
        for (&bound, &here) in self.bounds.iter().zip(&self.buckets) {
            let upper = bound as f64;
            if here > 0 && (below + here) as f64 >= rank {
                let within = ((rank - below as f64) / here as f64).clamp(0.0, 1.0);
                return Some((lower + (upper - lower) * within) / self.per);
            }
            below += here;
            lower = upper;
        }
        Some(lower / self.per)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_belongs_to_it() {
        let sizes = Histogram::sizes();
        sizes.record_size(2);
        sizes.record_size(3);
        sizes.record_size(5_000);
        let reading = sizes.read();
        let filled: Vec<_> = reading.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(2.0, 1), (4.0, 1), (f64::MAX, 1)]);
        assert_eq!(reading.count(), 3);
        assert_eq!(reading.sum(), 5_005.0);
    }

    #[test]
    fn quantiles_stay_within_their_bucket() {
        let times = Histogram::times();
        for _ in 0..99 {
            times.record(Duration::from_micros(80));
        }
        times.record(Duration::from_millis(40));
        let reading = times.read();
        let p50 = reading.quantile(0.5).unwrap();
        assert!((50e-6..=100e-6).contains(&p50), "{p50}");
        let highest = reading.quantile(1.0).unwrap();
        assert!((25e-3..=50e-3).contains(&highest), "{highest}");
    }

    #[test]
    fn without_values_there_is_no_quantile() {
        assert_eq!(Histogram::times().read().quantile(0.5), None);
    }

    #[test]
    fn beyond_the_last_bound_the_estimate_is_that_bound() {
        let times = Histogram::times();
        times.record(Duration::from_secs(3_600));
        assert_eq!(times.read().quantile(0.99), Some(10.0));
    }
}
