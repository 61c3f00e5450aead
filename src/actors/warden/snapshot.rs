//! What a [`Warden`] tells about itself.

use std::time::SystemTime;

use actix::Handler;
use serde::Serialize;

use super::Warden;
use crate::{
    actors::snapshot::{Snapshot, State},
    pki::unix_seconds,
};

/// When what is due, and how many are revoked.
#[derive(Debug, Serialize)]
struct WardenState {
    /// Until the hub's own leaf ends, in seconds.
    leaf_left_seconds: i64,
    /// When the hub's own certificates are looked after next, in seconds since 1970.
    renew_at: i64,
    /// A renewal of its own is under way.
    renewing: bool,
    /// Renewals that failed since the last one that didn't.
    failures: u32,
    /// Certificates that are revoked and not yet past their end.
    revoked: usize,
}

impl Handler<Snapshot> for Warden {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        State::of(&WardenState {
            leaf_left_seconds: self.established.left(SystemTime::now()),
            renew_at: unix_seconds(SystemTime::now() + self.until_renewal()),
            renewing: self.renewing,
            failures: self.failures,
            revoked: self.watch.revoked().borrow().len(),
        })
    }
}
