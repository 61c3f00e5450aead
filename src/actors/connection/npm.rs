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
                let (domain, name) = (domain.to_string(), name.to_string());
                let subscribe = SubscribeNpm { outlet: self.outlet.clone(), domain, name };
                match self.core.registry.offer(subscribe) {
                    Ok(()) => None,
                    Err(_) => Some("subscribe (the hub is busy)".to_owned()),
                }
            }
            FromNpm::Unsubscribe { domain, name } => {
                let (domain, name) = (domain.to_string(), name.to_string());
                self.core.registry.signal(UnsubscribeNpm { link: self.outlet.id(), domain, name });
                None
            }
            FromNpm::Publish { .. } => Some("publish".to_owned()),
            FromNpm::Online { .. } => Some("online".to_owned()),
            FromNpm::Unknown { verb } => Some(verb.chars().take(64).collect()),
        };
        if let Some(verb) = ignored {
            self.metrics.hub().npm_ignored.inc();
            tracing::info!(conn.id = %self.outlet.id(), spoke.id = %self.uid, verb, "an npm record is ignored");
        }
    }
}
