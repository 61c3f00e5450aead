//! npm's dialect: its links are subscribers here.

use super::Connection;
use crate::{
    actors::{
        mail::MailError,
        registry::{SubscribeNpm, UnsubscribeNpm},
    },
    metrics::CutReason,
    wire::{Record, npm::FromNpm},
};

impl Connection {
    /// Takes a record of an npm link. npm knows no answers: what can't be done is logged.
    pub(super) fn npm(&mut self, record: &Record) {
        let ignored = match crate::wire::npm::parse(record) {
            FromNpm::Subscribe { domain, name } => {
                let subscribe = SubscribeNpm { outlet: self.outlet.clone(), domain, name };
                self.npm_sent(self.core.registry.offer(subscribe));
                None
            }
            FromNpm::Unsubscribe { domain, name } => {
                let unsubscribe = UnsubscribeNpm { link: self.outlet.id(), domain, name };
                self.npm_sent(self.core.registry.offer(unsubscribe));
                None
            }
            FromNpm::Publish { .. } => Some("publish".to_owned()),
            FromNpm::Online { .. } => Some("online".to_owned()),
            FromNpm::Unknown { verb } => Some(verb),
            FromNpm::Malformed(fault) => Some(format!("a record that is none: {fault}")),
        };
        if let Some(what) = ignored {
            self.metrics.hub().npm_ignored.inc();
            // One line a link: who sends millions mustn't fill the log.
            if std::mem::replace(&mut self.ignored_some, true) {
                tracing::debug!(what, "an npm record is ignored");
            } else {
                tracing::info!(what, "an npm record is ignored; further ones of this link are only counted");
            }
        }
    }

    /// A wish that isn't taken can't be answered: the link is cut, and its client connects and asks again.
    fn npm_sent(&self, sent: Result<(), MailError>) {
        if let Err(fault) = self.taken(sent) {
            self.outlet.cut(CutReason::of(&fault.code), fault);
        }
    }
}
