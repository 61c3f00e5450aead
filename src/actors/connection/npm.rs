//! npm's dialect: its links are subscribers here.

use super::Connection;
use crate::{
    actors::registry::{SubscribeNpm, UnsubscribeNpm},
    wire::{Record, npm::FromNpm},
};

impl Connection {
    /// Takes a record of an npm link. npm knows no answers: what can't be done is logged.
    pub(super) fn npm(&mut self, record: &Record) {
        let ignored = match crate::wire::npm::parse(record) {
            FromNpm::Subscribe { domain, name } => {
                let subscribe = SubscribeNpm { outlet: self.outlet.clone(), domain, name };
                match self.core.registry.offer(subscribe) {
                    Ok(()) => None,
                    Err(_) => Some("subscribe (the hub is busy)".to_owned()),
                }
            }
            FromNpm::Unsubscribe { domain, name } => {
                self.core.registry.signal(UnsubscribeNpm { link: self.outlet.id(), domain, name });
                None
            }
            FromNpm::Publish { .. } => Some("publish".to_owned()),
            FromNpm::Online { .. } => Some("online".to_owned()),
            FromNpm::Unknown { verb } => Some(verb),
            FromNpm::Malformed(fault) => Some(format!("a record that is none: {fault}")),
        };
        if let Some(what) = ignored {
            self.metrics.hub().npm_ignored.inc();
            tracing::info!(conn.id = %self.outlet.id(), spoke.id = %self.uid, what, "an npm record is ignored");
        }
    }
}
