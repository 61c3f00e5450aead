//! Subscriptions and consumers at the hub: registered, taken off, and how claims end.

use super::{Asked, Session};
use crate::{
    event::{Fault, code},
    spoke::command::{Answering, ClaimId, Failure, Key, Settle},
    wire::{NackOptions, Request},
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
        if claim.link != self.link || !self.consumers.settle(token) {
            if how != Settle::Release {
                self.consumers.lost();
            }
            let text = "the link that brought the claim is gone: the hub offers the event again";
            let fault = Fault::refused(code::LINK_LOST, text);
            // A caller that has gone away needs no answer.
            let _ = answer.map(|answer| answer.send(Err(Failure::LinkLost(fault))));
            return;
        }
        let req = self.next_req();
        let request = match how {
            Settle::Ack => Request::Ack { req, token },
            Settle::Nack { reason } => {
                Request::Nack { req, token, options: NackOptions { reason, ..NackOptions::default() } }
            }
            Settle::Release => Request::Release { req, token },
        };
        self.ask(req, Asked::Settle(token, answer), request);
    }
}
