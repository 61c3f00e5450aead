//! What a spoke has under way, without a socket: commands and replies go in, requests come out. It takes the
//! time and never reads a clock.

mod consumers;
mod leases;
mod moves;
mod publishes;
mod queries;
mod registrations;
mod replies;
mod subscriptions;
#[cfg(test)]
mod tests;
mod waits;
mod window;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
};

use bytes::BytesMut;
use tokio::time::Instant;

pub(super) use self::replies::Heard;
use self::{
    consumers::Consumers, leases::Held, publishes::Publishes, queries::Queries, subscriptions::Subscriptions,
    waits::Waits,
};
use super::{
    Drained, PublishError, Status,
    backoff::Backoff,
    command::{
        Answering, ClaimId, Command, Failure, Key, LinkNumber, Port, QueryCommand, Remark, Settle, closed,
    },
};
use crate::{
    event::Fault,
    wire::{LinkLimits, Req, Request, Sub, Token, Welcome},
};

/// A request of the present link that isn't a publish or a read.
#[derive(Debug)]
enum Asked {
    Subscribe(Key),
    Unsubscribe(Option<Answering<()>>),
    Consume(Key),
    Stop(Key),
    Settle(Token, Held, Option<Answering<()>>),
    Extend(Token, Option<Answering<()>>),
}

#[derive(Debug)]
pub(super) struct Session {
    /// What claims settle themselves by.
    port: Weak<Port>,
    /// The last number that a request has got; never used twice, not even on another link.
    req: Req,
    sub: Sub,
    link: LinkNumber,
    limits: Option<LinkLimits>,
    hub: Option<Arc<str>>,
    trouble: Option<Arc<str>>,
    links_lost: u64,
    closing: bool,
    /// The hub of this link is stopping: nothing new is begun on it.
    hub_drains: bool,
    /// What callers are told once it is closed.
    reason: Fault,
    /// Requests to write; small ones only, and never more than credit, subscriptions and reads allow.
    control: VecDeque<Request>,
    /// Only the latest: a pong answers all pings before it.
    pong: Option<u64>,
    asked: HashMap<Req, Asked>,
    /// Claims that were dropped, and that the hub was too busy to take back: when to hand them back again.
    releases: VecDeque<(Instant, Token)>,
    /// Subscriptions and consumers that the hub was too busy to restore: when to ask for them again.
    restores: VecDeque<(Instant, Asked)>,
    publishes: Publishes,
    queries: Queries,
    waits: Waits,
    subscriptions: Subscriptions,
    consumers: Consumers,
}

impl Session {
    /// A session without a link; `retry` paces publishes that the hub refuses for now.
    pub(super) fn new(retry: Backoff, port: Weak<Port>) -> Self {
        Self {
            port,
            req: 0,
            sub: 0,
            link: 0,
            limits: None,
            hub: None,
            trouble: None,
            links_lost: 0,
            closing: false,
            hub_drains: false,
            reason: closed(),
            control: VecDeque::new(),
            pong: None,
            asked: HashMap::new(),
            releases: VecDeque::new(),
            restores: VecDeque::new(),
            publishes: Publishes::new(retry),
            queries: Queries::default(),
            waits: Waits::default(),
            subscriptions: Subscriptions::default(),
            consumers: Consumers::default(),
        }
    }

    pub(super) fn link_up(&mut self, welcome: &Welcome) {
        self.link += 1;
        self.hub = Some(welcome.hub.as_str().into());
        self.trouble = None;
        self.publishes.link_up(&welcome.limits);
        self.limits = Some(welcome.limits.clone());
        self.subscriptions.link_up(&welcome.hub);
        for key in self.subscriptions.wanted() {
            self.subscribe(key);
        }
        for key in self.consumers.wanted() {
            self.consume(key);
        }
    }

    pub(super) fn link_down(&mut self, fault: &Fault) {
        self.links_lost += 1;
        self.hub_drains = false;
        self.hub = None;
        self.trouble = Some(fault.message.as_str().into());
        self.limits = None;
        self.control.clear();
        self.releases.clear();
        // All of them are wanted on the next link.
        self.restores.clear();
        self.pong = None;
        self.publishes.link_down(fault);
        self.queries.link_down(fault);
        self.waits.link_down();
        self.subscriptions.link_down();
        self.consumers.link_down();
        for (_, asked) in self.asked.drain() {
            // Callers that have gone away need no answer.
            match asked {
                // Registered again on the next link, or forgotten with this one.
                Asked::Subscribe(_) | Asked::Consume(_) | Asked::Stop(_) => {}
                // The hub forgot it with the link.
                Asked::Unsubscribe(answer) => {
                    let _ = answer.map(|answer| answer.send(Ok(())));
                }
                Asked::Settle(_, held, answer) => {
                    held.hold.lose();
                    self.consumers.lost();
                    let _ = answer.map(|answer| answer.send(Err(Failure::LinkLost(fault.clone()))));
                }
                Asked::Extend(_, answer) => {
                    let _ = answer.map(|answer| answer.send(Err(Failure::LinkLost(fault.clone()))));
                }
            }
        }
    }

    /// Takes what a handle asks. What is about the link itself is the task's own.
    pub(super) fn command(&mut self, command: Command, now: Instant) {
        match command {
            Command::Write(write) if self.takes_requests() => {
                let req = self.next_req();
                self.publishes.add(req, write);
            }
            Command::Write(write) => {
                let _ = write.answer.send(Err(PublishError::Closed(self.reason.clone())));
            }
            Command::Query(query) if self.takes_requests() => self.queries.add(query),
            Command::Query(QueryCommand { answer, .. }) => self.refuse(answer),
            Command::Wait(wait) if self.takes_requests() => self.waits.add(wait),
            Command::Wait(wait) => self.refuse(wait.answer),
            Command::Subscribe { key, subscribe, answer } if !self.closing => {
                self.subscriptions.add(key, subscribe, answer);
                self.subscribe(key);
            }
            Command::Consume { key, consume, answer } if !self.closing => {
                if self.consumers.add(key, consume, answer) {
                    self.consume(key);
                }
            }
            Command::Subscribe { answer: Some(answer), .. } => self.refuse(answer),
            Command::Consume { answer: Some(answer), .. } => self.refuse(answer),
            Command::Unsubscribe { key, answer } => self.unsubscribe(key, Some(answer)),
            Command::Stop { key, answer } => self.stop(key, Some(answer)),
            Command::Settle { claim, how, answer } => self.settle(claim, how, Some(answer)),
            Command::Extend { claim, lease, answer } => self.extend(claim, lease, answer, now),
            Command::Subscribe { .. }
            | Command::Consume { .. }
            | Command::Reach(_)
            | Command::Close { .. }
            | Command::End(_) => {}
        }
    }

    pub(super) fn remark(&mut self, remark: Remark) {
        match remark {
            Remark::Claim(claim) => self.settle(claim, Settle::Release, None),
            Remark::Subscription(key) => self.unsubscribe(key, None),
            Remark::Consumer(key) => self.stop(key, None),
            Remark::Drained(key) => {
                if self.subscriptions.drained(key) {
                    self.subscribe(key);
                }
            }
        }
    }

    pub(super) fn ping(&mut self) {
        self.control.push_front(Request::Ping(self.req));
    }

    /// Writes what may be sent now, until `out` holds about `most` bytes. Says whether anything was written.
    pub(super) fn fill(&mut self, out: &mut BytesMut, most: usize, now: Instant) -> bool {
        let before = out.len();
        if self.limits.is_none() {
            return false;
        }
        if let Some(n) = self.pong.take() {
            self.write(Request::Pong(n), out, now);
        }
        while out.len() < most {
            let Some(request) = self.next_request(now) else { break };
            self.write(request, out, now);
        }
        out.len() > before
    }

    /// Tells callers whose deadline has passed, and does what was put off until now.
    pub(super) fn expire(&mut self, now: Instant) {
        self.publishes.expire(now);
        self.queries.expire(now);
        self.waits.expire(now);
        self.extend_due(now);
        while let Some((_, token)) = self.releases.pop_front_if(|(due, _)| *due <= now) {
            self.settle(ClaimId { link: self.link, token }, Settle::Release, None);
        }
        while let Some((_, asked)) = self.restores.pop_front_if(|(due, _)| *due <= now) {
            match asked {
                Asked::Subscribe(key) => self.subscribe(key),
                Asked::Consume(key) => self.consume(key),
                _ => {}
            }
        }
    }

    /// When to look again, if ever.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let release = self.releases.front().map(|(due, _)| *due);
        let restore = self.restores.front().map(|(due, _)| *due);
        let leases = self.consumers.leases.next_due();
        let held = [self.publishes.next_due(), self.queries.next_due(), self.waits.next_due(), leases];
        held.into_iter().flatten().chain(release).chain(restore).min()
    }

    /// Stops all consumers; refuses new work once no claim is held, since its handler may have to publish.
    pub(super) fn begin_close(&mut self) {
        if !self.closing {
            self.closing = true;
            for key in self.consumers.keys() {
                self.stop(key, None);
            }
        }
    }

    /// Whether nothing is under way. Waits don't hold up the end: nobody knows how long they take.
    pub(super) fn is_drained(&self) -> bool {
        self.control.is_empty()
            && self.asked.is_empty()
            && self.consumers.held() == 0
            && self.publishes.is_empty()
            && self.queries.is_empty()
    }

    /// The end: everybody who waits is told why.
    pub(super) fn close(&mut self, fault: &Fault) -> Drained {
        self.closing = true;
        self.reason = fault.clone();
        let open = std::mem::take(&mut self.asked);
        let requests = self.queries.close(fault) + self.waits.close(fault) + open.len();
        for (_, asked) in open {
            if let Asked::Unsubscribe(Some(answer))
            | Asked::Settle(_, _, Some(answer))
            | Asked::Extend(_, Some(answer)) = asked
            {
                // A caller that has gone away needs no answer.
                let _ = answer.send(Err(Failure::Closed(fault.clone())));
            }
        }
        self.control.clear();
        self.hub = None;
        self.limits = None;
        self.subscriptions.close(fault);
        Drained { publishes: self.publishes.close(fault), claims: self.consumers.close(fault), requests }
    }

    pub(super) fn status(&self) -> Status {
        Status {
            hub: self.hub.clone(),
            trouble: self.trouble.clone(),
            links_lost: self.links_lost,
            publishes_in_flight: self.publishes.in_flight(),
            publishes_waiting: self.publishes.waiting(),
            publishes_retried: self.publishes.retried(),
            subscriptions: self.subscriptions.len(),
            lagged: self.subscriptions.lagged(),
            consumers: self.consumers.len(),
            claims_held: self.consumers.held(),
            claims_lost: self.consumers.lost_count(),
            closed: false,
            links: Vec::new(),
        }
    }

    fn takes_requests(&self) -> bool {
        !self.closing || self.consumers.held() > 0
    }

    fn next_request(&mut self, now: Instant) -> Option<Request> {
        if let Some(request) = self.control.pop_front() {
            return Some(request);
        }
        if let Some(request) = self.queries.next(self.req + 1) {
            self.req += 1;
            return Some(request);
        }
        if self.hub_drains {
            return None;
        }
        if let Some(request) = self.waits.next(self.req + 1, now) {
            self.req += 1;
            return Some(request);
        }
        self.publishes.next(now)
    }

    fn write(&mut self, request: Request, out: &mut BytesMut, now: Instant) {
        if let Err(error) = request.encode(out) {
            // Parsed texts hold no control character; if one slips through, its own caller is told.
            let fault = Fault::from(error);
            match request.req() {
                Some(req) => self.refused(req, fault, now),
                None => tracing::error!(%fault, "a record can't be written"),
            }
        }
    }

    fn ask(&mut self, req: Req, asked: Asked, request: Request) {
        self.asked.insert(req, asked);
        self.control.push_back(request);
    }

    fn next_req(&mut self) -> Req {
        self.req += 1;
        self.req
    }

    fn next_sub(&mut self) -> Sub {
        self.sub = self.sub.wrapping_add(1);
        self.sub
    }

    fn refuse<T>(&self, answer: Answering<T>) {
        // A caller that has gone away needs no answer.
        let _ = answer.send(Err(Failure::Closed(self.reason.clone())));
    }
}
