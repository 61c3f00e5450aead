//! The numbers of a hub: what each kind of actor does, and what became of the events.
//!
//! There is one [`Metrics`] per hub and no global recorder, so two hubs in one process don't mix. Writing is
//! a few relaxed atomics, without a lock; reading ([`Metrics::snapshot`], [`Metrics::render`]) copies them.
//! Every metric's name stands in `metrics/names.rs`, and labels come from closed sets only.

mod actors;
mod hub;
mod instrument;
mod label;
mod meter;
mod names;
mod readiness;
mod render;
mod snapshot;

use std::sync::Arc;

pub use actors::{ActorReport, ActorsReport, Told};
pub use hub::HubMetrics;
pub use instrument::{Counter, Gauge, Histogram};
pub use label::{
    ActorKind, Counters, CutReason, Dialect, Ended, Gauges, GroupKind, HandshakeFault, Label, ReadyState,
    Refusal, Removed,
};
pub use meter::{MessageMeter, Meter};
pub use readiness::Readiness;
pub use render::{OPENMETRICS, PLAIN};
pub use snapshot::{ActorSnapshot, HubSnapshot, MetricsSnapshot, SizesSnapshot, TimesSnapshot};

use meter::ActorNumbers;

/// All numbers of one hub. Cheap to clone: clones share them.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Numbers>);

#[derive(Debug)]
struct Numbers {
    /// By the index of [`ActorKind`].
    actors: Vec<Arc<ActorNumbers>>,
    hub: HubMetrics,
}

impl Metrics {
    /// All at zero, [`ReadyState::Starting`].
    #[must_use]
    pub fn new() -> Self {
        let actors = ActorKind::ALL.iter().map(|_| Arc::new(ActorNumbers::new())).collect();
        Self(Arc::new(Numbers { actors, hub: HubMetrics::new() }))
    }

    /// What actors of this kind report to.
    #[must_use]
    pub fn meter(&self, kind: ActorKind) -> Meter {
        Meter(self.0.actors[kind.index()].clone())
    }

    /// What the hub as a whole counts.
    #[must_use]
    pub fn hub(&self) -> &HubMetrics {
        &self.0.hub
    }

    /// Notes the state that the hub is in now.
    pub fn set_readiness(&self, readiness: &Readiness) {
        for &state in ReadyState::ALL {
            self.0.hub.readiness.of(state).set(i64::from(state == readiness.state()));
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
