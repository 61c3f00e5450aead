//! What all actors do alike with records of npm links that come to nothing.

use super::outlet::Outlet;
use crate::{event::Uid, metrics::HubMetrics};

/// Counts and logs a record that is ignored or refused: npm has no answers. One line a link stands out: who sends
/// millions mustn't fill the log.
pub fn ignored(metrics: &HubMetrics, outlet: &Outlet, uid: &Uid, what: &str) {
    metrics.npm_ignored.inc();
    if outlet.is_first_ignored() {
        tracing::info!(
            conn.id = %outlet.id(),
            spoke.id = %uid,
            what,
            "an npm record is ignored; further ones of this link are only counted"
        );
    } else {
        tracing::debug!(conn.id = %outlet.id(), what, "an npm record is ignored");
    }
}
