//! Our own dialect: requests of a link to messages for the core.

use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::{
    Connection,
    reads::{MOST_WAITING, Read, What},
    waits::Awaits,
};
use crate::{
    actors::{
        deliveries::{Settle, Verdict},
        journal::{Amending, Amendment, Publishing, Storing, Take},
        mail::MailError,
        outlet::{Answered, Frame, WindowPermit},
    },
    event::{Append, EventId, Fault, code},
    metrics::{CutReason, Refusal as Refused},
    wire::{Hello, Record, Refusal, Reply, Req, Request, Token, Welcome},
};

/// How long a client waits after a mailbox was full.
pub(super) const FULL_WAIT: Duration = Duration::from_millis(50);
/// The verbs whose refusal counts as that of a publish.
const PUBLISHES: [&str; 4] = ["publish", "batch", "persist", "schedule"];
/// What is kept of the name that a client gives itself, in characters.
const CLIENT_NAME: usize = 64;

/// What one read brought for the core, gathered so that each actor gets one message.
#[derive(Debug, Default)]
pub struct Gathered {
    pub(super) publishes: Vec<Publishing>,
    pub(super) taken: Vec<(EventId, WindowPermit)>,
    pub(super) changes: Vec<Amending>,
    verdicts: Vec<(Req, Token, Verdict)>,
}

impl Connection {
    /// Takes the first record, a `hello`.
    pub(super) fn hello(&mut self, record: &Record) {
        match Request::parse(record, &self.config.parse) {
            Ok(Request::Hello(Hello { client })) => {
                let client: String = client.chars().take(CLIENT_NAME).collect();
                tracing::debug!(client, "hello");
                let hubs = self.config.hubs.borrow().to_vec();
                self.reply(&Reply::Welcome(Welcome { hubs, ..self.config.welcome.clone() }));
                self.session.welcome();
                self.say_drain();
            }
            Ok(other) => tracing::error!(verb = other.verb(), "a hello was read as something else"),
            Err(Refusal { req, fault }) => {
                self.outlet.answer(req, Err(fault.clone()));
                self.outlet.cut(CutReason::of(&fault.code), fault);
            }
        }
    }

    /// Tells a client that the hub is stopping: at once, or after its welcome.
    pub(super) fn say_drain(&self) {
        if self.draining && self.session.is_welcome() && !self.gone {
            self.reply(&Reply::Drain);
        }
    }

    /// Takes a record of a v1 link.
    pub(super) fn request(&mut self, record: &Record, gathered: &mut Gathered) {
        match Request::parse(record, &self.config.parse) {
            Ok(request) => self.serve(request, gathered),
            Err(Refusal { req, fault }) => {
                if record.units().next().is_some_and(|verb| PUBLISHES.contains(&verb)) {
                    self.metrics.hub().refused.of(Refused::of(&fault.code)).inc();
                }
                self.outlet.answer(req, Err(fault));
            }
        }
    }

    fn serve(&mut self, request: Request, gathered: &mut Gathered) {
        match request {
            Request::Publish { req, event, expect } => {
                self.publish(req, Storing::Publish(Append { event, expect }), gathered);
            }
            Request::Persist { req, event, expect } => {
                self.publish(req, Storing::Persist(Append { event, expect }), gathered);
            }
            Request::Batch { req, events } => self.publish(req, Storing::Batch(events), gathered),
            Request::Schedule { req, due, event, replaces } => {
                self.schedule(req, Storing::Schedule { due, event, replaces }, gathered);
            }
            Request::Cancel { req, id } => self.amend(req, Amendment::Cancel(id), gathered),
            Request::Recur { req, recur } => self.amend(req, Amendment::Recur(recur), gathered),
            Request::RecurChange { req, name, change } => {
                self.amend(req, Amendment::RecurChange(name, change), gathered);
            }
            Request::RecurRun { req, name, id } => self.amend(req, Amendment::RunExtra(name, id), gathered),
            Request::Associate { req, id, with } => {
                self.amend(req, Amendment::Associate(id, with), gathered);
            }
            Request::Dissociate { req, id, with } => {
                self.amend(req, Amendment::Dissociate(id, with), gathered);
            }
            Request::Nudge { req, ids } => self.nudge(req, ids, gathered),
            Request::Delete { req, what } => self.amend(req, Amendment::Delete(what), gathered),
            Request::Redrive { req, what } => self.amend(req, Amendment::Redrive(what), gathered),
            Request::Group { req, group, action } => {
                // What the link said before of its claims comes first.
                self.send_on(std::mem::take(gathered));
                self.change_group(req, group, action);
            }
            Request::Backlog { req, query } => self.read(Read { req, what: What::Backlog(query) }),
            Request::Dead { req, query, page, limit } => {
                self.read(Read { req, what: What::Dead { query, page, limit } });
            }
            Request::Ack { req, token } => gathered.verdicts.push((req, token, Verdict::Ack)),
            Request::Nack { req, token, options } => {
                gathered.verdicts.push((req, token, Verdict::Nack(options)));
            }
            Request::Extend { req, token, options } => {
                gathered.verdicts.push((req, token, Verdict::Extend(options.lease)));
            }
            Request::Release { req, token } => gathered.verdicts.push((req, token, Verdict::Release)),
            Request::Ping(n) => self.reply(&Reply::Pong(n)),
            Request::Pong(_) => {}
            Request::Hello(_) => {
                let fault = Fault::refused(code::INVALID_RECORD, "hello comes once, as the first record");
                self.outlet.answer(0, Err(fault));
            }
            Request::Renew { req, key } => self.renew(req, key),
            Request::Read { req, id } => self.read(Read { req, what: What::Event(id) }),
            Request::Show { req, id } => self.read(Read { req, what: What::Show(id) }),
            Request::Log { req, query, page, limit } => {
                self.read(Read { req, what: What::Log { query, page, limit } });
            }
            Request::Pids { req, domain, page, limit } => {
                self.read(Read { req, what: What::Pids { domain, page, limit } });
            }
            Request::Schedules { req, query, page, limit } => {
                self.read(Read { req, what: What::Schedules { query, page, limit } });
            }
            Request::RecurList { req, page, limit } => {
                self.read(Read { req, what: What::RecurringPage { page, limit } });
            }
            Request::RecurShow { req, name, runs } => {
                self.read(Read { req, what: What::Recurring { name, runs } });
            }
            Request::Wait { req, wait } => self.wait(req, Awaits::Event(wait)),
            Request::Outcome { req, id, options } => self.wait(req, Awaits::Outcome(id, options)),
            Request::Subscribe { req, sub, domain, name, options } => {
                let taken = self.subscribe(req, sub, (domain, name), options);
                self.refuse(req, taken);
            }
            Request::Unsubscribe { req, sub } => {
                let taken = self.unsubscribe(req, sub);
                self.refuse(req, taken);
            }
            Request::Consume { req, sub, group, domain, name, options } => {
                let taken = self.consume(req, sub, group, (domain, name), options);
                self.refuse(req, taken);
            }
            Request::Stop { req, sub } => {
                let taken = self.stop_consumer(req, sub);
                self.refuse(req, taken);
            }
        }
    }

    /// Answers a request that wasn't taken.
    fn refuse(&self, req: Req, taken: Result<(), Fault>) {
        if let Err(fault) = taken {
            self.outlet.answer(req, Err(fault));
        }
    }

    fn wait(&mut self, req: Req, awaits: Awaits) {
        let taken = self.waits.begin(req, awaits);
        self.refuse(req, taken);
    }

    fn read(&mut self, read: Read) {
        if self.reads.len() >= MOST_WAITING {
            let fault = Fault::retryable(
                code::HUB_BUSY,
                format!("this link has {MOST_WAITING} reads waiting: wait for their answers"),
                FULL_WAIT,
            );
            self.outlet.answer(read.req, Err(fault));
        } else {
            self.reads.push_back(read);
        }
    }

    /// Sends on what one read brought.
    pub(super) fn send_on(&mut self, gathered: Gathered) {
        let Gathered { publishes, taken, changes, verdicts } = gathered;
        if !taken.is_empty() {
            let take = Take { outlet: self.outlet.clone(), uid: self.uid.clone(), events: taken };
            // One per read, and nothing is read beyond the window.
            self.core.journal.signal(take);
        }
        self.send_publishes(publishes);
        self.send_changes(changes);
        if !verdicts.is_empty() {
            let reqs: Vec<Req> = verdicts.iter().map(|(req, ..)| *req).collect();
            let sent = self.core.deliveries.offer(Settle { outlet: self.outlet.clone(), verdicts });
            self.refuse_all(reqs, sent);
        }
    }

    pub(super) fn refuse_all(&mut self, reqs: Vec<Req>, sent: Result<(), MailError>) {
        if let Err(fault) = self.taken(sent) {
            let answers = reqs
                .into_iter()
                .map(|req| Answered { req, result: Err(fault.clone()), permit: None })
                .collect();
            self.outlet.send(Frame::Answers(answers));
        }
    }

    /// A full mailbox refuses the request; a core that is gone cuts the link.
    pub(super) fn taken(&self, sent: Result<(), MailError>) -> Result<(), Fault> {
        sent.map_err(|error| {
            if error == MailError::Full {
                return Fault::retryable(
                    code::HUB_BUSY,
                    "the hub has more work waiting than it allows: try again in a moment",
                    FULL_WAIT,
                );
            }
            let fault = super::restart();
            self.outlet.cut(CutReason::Restart, fault.clone());
            fault
        })
    }

    pub(super) fn reply(&self, reply: &Reply) {
        let mut bytes = BytesMut::new();
        match reply.encode(&mut bytes) {
            Ok(()) => {
                self.outlet.send(Frame::Raw(bytes.freeze()));
            }
            Err(error) => tracing::error!(%error, "our own words can't be sent"),
        }
    }

    /// Pings and silence; npm links have neither.
    pub(super) fn watch_silence(&mut self, now: Instant) {
        let silent = now.duration_since(self.heard);
        if silent >= self.config.silence {
            self.outlet.cut(
                CutReason::Silent,
                Fault::retryable(
                    code::LINK_SILENT,
                    format!(
                        "nothing was heard on this link for {silent:?}: send a ping whenever you have sent nothing \
                         for {:?}",
                        self.config.ping
                    ),
                    Duration::ZERO,
                ),
            );
        } else if self.outlet.quiet_for() >= self.config.ping {
            self.pings += 1;
            self.reply(&Reply::Ping(self.pings));
        }
    }
}
