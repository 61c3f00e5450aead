//! What the hub says, taken into the session.

use std::time::Duration;

use tokio::time::Instant;

use super::{Asked, Session};
use crate::{
    event::{Fault, Retry, code},
    spoke::{
        claim::ends_claim,
        command::{ClaimId, Failure, Settle},
    },
    wire::{Answer, HubAddress, Reply, Req},
};

/// The shortest wait before a claim is handed back again.
const AGAIN: Duration = Duration::from_millis(10);

/// What the link's task has to do about a reply.
#[derive(Debug, PartialEq)]
pub(in crate::spoke) enum Heard {
    /// Nothing more.
    Taken,
    /// The hub closes the link.
    Bye(Fault),
    /// Another hub is there.
    Hub(HubAddress),
}

impl Session {
    pub(in crate::spoke) fn reply(&mut self, reply: Reply, now: Instant) -> Heard {
        match reply {
            Reply::Event { subs, seq, event } => {
                for key in self.subscriptions.deliver(&subs, seq, &event) {
                    self.take_off(key);
                }
            }
            Reply::Gap { sub, removed } => {
                if let Some(key) = self.subscriptions.removed(sub, removed) {
                    self.take_off(key);
                }
            }
            Reply::Claim { sub, token, attempt, seq, event } => {
                let id = ClaimId { link: self.link, token };
                // Without a handle there is nobody to work on it: the link is ending.
                if let Some(port) = self.port.upgrade()
                    && !self.consumers.claimed(sub, id, (attempt, seq, event), &port, now)
                {
                    self.settle(id, Settle::Release, None);
                }
            }
            Reply::Ended { sub, fault } => self.consumers.ended(sub, fault),
            Reply::Ok { req, answer } => self.answered(req, answer),
            Reply::Err { req, fault } => self.refused(req, fault, now),
            Reply::Item { req, event } => {
                if let Some(event) = self.queries.item(req, event) {
                    self.waits.item(req, event);
                }
            }
            Reply::Ping(n) => self.pong = Some(n),
            Reply::Pong(_) | Reply::Welcome(_) => {}
            Reply::Online(hub) => return Heard::Hub(hub),
            Reply::Drain => {
                self.hub_drains = true;
                if let Some(port) = self.port.upgrade() {
                    self.consumers.hold_off(&port);
                }
            }
            Reply::Bye(fault) => return Heard::Bye(fault),
        }
        Heard::Taken
    }

    fn answered(&mut self, req: Req, answer: Answer) {
        let Some(asked) = self.asked.remove(&req) else {
            let unknown = self
                .publishes
                .answered(req, answer)
                .and_then(|answer| self.queries.answered(req, answer))
                .and_then(|answer| self.waits.answered(req, answer));
            if unknown.is_some() {
                tracing::debug!(req, "the hub answered a request that isn't awaited");
            }
            return;
        };
        match (asked, answer) {
            (Asked::Subscribe(key), Answer::Position(position)) => {
                if self.subscriptions.confirmed(key, position) {
                    self.take_off(key);
                }
            }
            (Asked::Consume(key), _) => {
                if self.consumers.confirmed(key) {
                    self.stop(key, None);
                }
            }
            (Asked::Subscribe(key), _) => {
                let text =
                    "the hub confirmed a subscription without its position: update the hub or this client";
                self.subscriptions.refused(key, Fault::refused(code::INVALID_RECORD, text));
            }
            (Asked::Extend(token, answer), _) => {
                self.consumers.leases.extended(token);
                let _ = answer.map(|answer| answer.send(Ok(())));
            }
            (Asked::Unsubscribe(answer) | Asked::Settle(_, _, answer), _) => {
                // A caller that has gone away needs no answer.
                let _ = answer.map(|answer| answer.send(Ok(())));
            }
            (Asked::Stop(key), _) => self.consumers.stopped(key),
        }
    }

    pub(super) fn refused(&mut self, req: Req, fault: Fault, now: Instant) {
        let Some(asked) = self.asked.remove(&req) else {
            let unknown = self
                .publishes
                .refused(req, fault, now)
                .or_else(|fault| self.queries.refused(req, fault, now))
                .or_else(|fault| self.waits.refused(req, fault, now));
            if let Err(fault) = unknown {
                tracing::warn!(req, %fault, "the hub refused a request that isn't awaited");
            }
            return;
        };
        if let Retry::After(wait) = fault.retry
            && self.is_restoring(&asked)
        {
            tracing::debug!(req, %fault, "the hub refused for now: it is asked again");
            self.restores.push_back((now + wait.max(AGAIN), asked));
            return;
        }
        match asked {
            Asked::Subscribe(key) => self.subscriptions.refused(key, fault),
            Asked::Consume(key) => self.consumers.refused(key, fault),
            Asked::Stop(key) => {
                // Such a hub doesn't know the consumer: it gets no more claims.
                tracing::warn!(%fault, "the hub refused to stop a consumer");
                self.consumers.stopped(key);
            }
            Asked::Unsubscribe(answer) => {
                let _ = answer.map(|answer| answer.send(Err(Failure::Refused(fault))));
            }
            Asked::Extend(token, answer) => {
                let again = match fault.retry {
                    Retry::After(wait) => Some(now + wait.max(AGAIN)),
                    Retry::Never => None,
                };
                self.not_extended(token, &fault, again);
                let _ = answer.map(|answer| answer.send(Err(Failure::Refused(fault))));
            }
            Asked::Settle(token, held, answer) => {
                if ends_claim(&fault) {
                    held.hold.lose();
                    self.consumers.lost();
                } else {
                    self.consumers.leases.put_back(token, held);
                }
                if answer.is_none()
                    && let Retry::After(wait) = fault.retry
                {
                    self.releases.push_back((now + wait.max(AGAIN), token));
                }
                let _ = answer.map(|answer| answer.send(Err(Failure::Refused(fault))));
            }
        }
    }

    /// Whether this was to restore something whose caller was told long ago that it is there; its number is free.
    fn is_restoring(&mut self, asked: &Asked) -> bool {
        match asked {
            Asked::Subscribe(key) if self.subscriptions.is_confirmed(*key) => {
                self.subscriptions.unregister(*key);
                true
            }
            Asked::Consume(key) if self.consumers.is_confirmed(*key) => {
                self.consumers.unregister(*key);
                true
            }
            _ => false,
        }
    }
}
