//! Subscriptions and consumers at the hub: registered, taken off, and how claims end.

use std::time::Duration;

use tokio::time::Instant;

use super::{Asked, Session};
use crate::{
    event::{Fault, code},
    spoke::{
        claim::ends_claim,
        command::{Answering, ClaimId, Failure, Key, Settle},
    },
    wire::{ExtendOptions, Request, Token},
};

impl Session {
    pub(super) fn subscribe(&mut self, key: Key) {
        if self.limits.is_none() {
            return;
        }
        let (req, sub) = (self.next_req(), self.next_sub());
        if let Some(request) = self.subscriptions.register(key, req, sub) {
            self.ask(req, Asked::Subscribe(key), request);
        }
    }

    pub(super) fn consume(&mut self, key: Key) {
        let (req, sub) = (self.next_req(), self.next_sub());
        let Some(limits) = &self.limits else { return };
        if let Some(request) = self.consumers.register(key, req, sub, limits) {
            self.ask(req, Asked::Consume(key), request);
        }
    }

    /// Off the hub, but not forgotten.
    pub(super) fn take_off(&mut self, key: Key) {
        if let Some(sub) = self.subscriptions.unregister(key) {
            let req = self.next_req();
            self.ask(req, Asked::Unsubscribe(None), Request::Unsubscribe { req, sub });
        }
    }

    pub(super) fn unsubscribe(&mut self, key: Key, answer: Option<Answering<()>>) {
        match self.subscriptions.forget(key) {
            Some(sub) => {
                let req = self.next_req();
                self.ask(req, Asked::Unsubscribe(answer), Request::Unsubscribe { req, sub });
            }
            // A caller that has gone away needs no answer.
            None => drop(answer.map(|answer| answer.send(Ok(())))),
        }
    }

    pub(super) fn stop(&mut self, key: Key, answer: Option<Answering<()>>) {
        if let Some(sub) = self.consumers.stop(key, answer) {
            let req = self.next_req();
            self.ask(req, Asked::Stop(key), Request::Stop { req, sub });
        }
    }

    pub(super) fn settle(&mut self, claim: ClaimId, how: Settle, answer: Option<Answering<()>>) {
        let token = claim.token;
        let held = if claim.link == self.link { self.consumers.settle(token) } else { None };
        let Some(held) = held else {
            if how != Settle::Release {
                self.consumers.lost();
            }
            // A caller that has gone away needs no answer.
            let _ = answer.map(|answer| answer.send(Err(self.not_held(claim))));
            return;
        };
        let req = self.next_req();
        let request = match how {
            Settle::Ack => Request::Ack { req, token },
            Settle::Nack(options) => Request::Nack { req, token, options },
            Settle::Release => Request::Release { req, token },
        };
        self.ask(req, Asked::Settle(token, held, answer), request);
    }

    /// Holds a claim for so many milliseconds from now on, as its holder asks.
    pub(super) fn extend(&mut self, claim: ClaimId, lease: u64, answer: Answering<()>, now: Instant) {
        let token = claim.token;
        let time = Duration::from_millis(lease);
        if claim.link != self.link || !self.consumers.leases.ask(token, time, now) {
            // A caller that has gone away needs no answer.
            let _ = answer.send(Err(self.not_held(claim)));
            return;
        }
        let req = self.next_req();
        let request = Request::Extend { req, token, options: ExtendOptions { lease: Some(lease) } };
        self.ask(req, Asked::Extend(token, Some(answer)), request);
    }

    /// Extends all claims for which it is time.
    pub(super) fn extend_due(&mut self, now: Instant) {
        for token in self.consumers.leases.due(now) {
            let req = self.next_req();
            let request = Request::Extend { req, token, options: ExtendOptions::default() };
            self.ask(req, Asked::Extend(token, None), request);
        }
    }

    /// The hub couldn't extend a claim.
    pub(super) fn not_extended(&mut self, token: Token, fault: &Fault, again: Option<Instant>) {
        if ends_claim(fault) {
            tracing::debug!(token, %fault, "a claim is lost");
            self.consumers.lose(token);
        } else {
            tracing::debug!(token, %fault, "a claim could not be extended");
            self.consumers.leases.not_extended(token, again);
        }
    }

    fn not_held(&self, claim: ClaimId) -> Failure {
        if claim.link == self.link {
            let text = "the hub has given the event away: its lease was over";
            return Failure::Refused(Fault::refused(code::CLAIM_LOST, text));
        }
        let text = "the link that brought the claim is gone: the hub offers the event again";
        Failure::LinkLost(Fault::refused(code::LINK_LOST, text))
    }
}
