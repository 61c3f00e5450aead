//! The publishes that a link has under way, bounded in number and bytes.

use std::sync::{Arc, atomic::Ordering};

use super::{LinkGauge, Outlet};

/// A place in a link's publish window; freed when dropped.
#[derive(Debug)]
pub struct WindowPermit {
    gauge: Arc<LinkGauge>,
    bytes: usize,
}

impl Drop for WindowPermit {
    fn drop(&mut self) {
        self.gauge.window_requests.fetch_sub(1, Ordering::AcqRel);
        self.gauge.window_bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.gauge.drained.notify_waiters();
    }
}

impl Outlet {
    /// A place in the window for a publish of a link that knows no answers: it always has one. [`Self::within`] holds
    /// it back.
    #[must_use]
    pub fn charge(&self, weight: usize) -> WindowPermit {
        self.gauge.window_requests.fetch_add(1, Ordering::AcqRel);
        self.gauge.window_bytes.fetch_add(weight, Ordering::AcqRel);
        WindowPermit { gauge: self.gauge.clone(), bytes: weight }
    }

    /// Waits until no more than so many publishes of the link are under way, or the link is cut.
    pub async fn within(&self, requests: usize) {
        loop {
            let drained = self.gauge.drained.notified();
            if self.gauge.window_requests.load(Ordering::Acquire) <= requests || self.is_cut() {
                return;
            }
            drained.await;
        }
    }

    /// A place in the publish window of `requests` and `bytes`; none if it's beyond. A lone request always fits.
    #[must_use]
    pub fn window(&self, weight: usize, requests: usize, bytes: usize) -> Option<WindowPermit> {
        let open = self.gauge.window_requests.fetch_add(1, Ordering::AcqRel);
        let held = self.gauge.window_bytes.fetch_add(weight, Ordering::AcqRel);
        let permit = WindowPermit { gauge: self.gauge.clone(), bytes: weight };
        (open == 0 || (open < requests && held + weight <= bytes)).then_some(permit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::outlet::LinkId;

    #[test]
    fn the_window_ends_where_it_says() {
        let (outlet, _out) = Outlet::new(LinkId(1), 1_000);
        let lone = outlet.window(5_000, 2, 1_000).unwrap();
        assert!(outlet.window(1, 2, 1_000).is_none(), "bytes are used up");
        drop(lone);
        let first = outlet.window(10, 2, 1_000).unwrap();
        let _second = outlet.window(10, 2, 1_000).unwrap();
        assert!(outlet.window(10, 2, 1_000).is_none(), "requests are used up");
        drop(first);
        assert!(outlet.window(10, 2, 1_000).is_some());
    }
}
