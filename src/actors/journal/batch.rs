//! One transaction's worth of writes, and who hears how each of them went.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::oneshot;

use super::{
    message::Publishing,
    npm::{NpmPublish, taken},
    sequence::Sequence,
};
use crate::{
    actors::{
        deliveries::{Finish, Recorded, Reserved, Settled},
        dispatched::Dispatched,
        outlet::{Answered, Frame, LinkId, Outlet, WindowPermit},
    },
    event::{Event, EventId, Fault, NewEvent, Outcome, Uid, code},
    metrics::{HubMetrics, Refusal},
    store::{AttemptRow, Binding, StoreError, Write, Written},
    wire::{Answer, Attempt, Req, Token},
};

/// Who hears how a write went.
#[derive(Debug)]
pub enum ReplyTo {
    /// The link that published.
    Publisher {
        /// The link.
        outlet: Outlet,
        /// Its request.
        req: Req,
        /// Its place in the link's window.
        permit: WindowPermit,
    },
    /// Deliveries, about the outcome of a claim.
    Claim {
        /// The claim.
        token: Token,
        /// What was to be recorded.
        outcome: Outcome,
    },
    /// Deliveries, that an attempt is no longer under way.
    Attempt,
    /// Deliveries, whether a claim is ours.
    Reserve(Token),
    /// The registry, of what an npm link has published.
    Npm(NpmPublish),
    /// Whoever made the binding.
    Binding(oneshot::Sender<Result<Binding, Fault>>),
    /// Nobody: a failure is logged.
    Nobody,
}

/// A write that waits for its transaction.
#[derive(Debug)]
pub struct Job {
    /// What to write.
    pub write: Write,
    /// What it counts for, in bytes.
    pub weight: usize,
    /// Who hears of it.
    pub reply: ReplyTo,
}

/// A publish that was committed or not, with what is needed to tell of it.
#[derive(Debug)]
pub struct Reply {
    to: ReplyTo,
    /// The number that the event was given, if it was given one.
    seq: u64,
    /// The event, if the write was a publish.
    event: Option<Event>,
}

/// The writes of one transaction.
#[derive(Debug, Default)]
pub struct Batch {
    writes: Vec<Write>,
    replies: Vec<Reply>,
}

impl Batch {
    /// How many writes it has.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Adds a job; a publish gets its place in the sequence now, in the order of the queue.
    pub fn push(&mut self, job: Job, sequence: &mut Sequence, now: u64) {
        let Job { mut write, reply, .. } = job;
        let (mut given, mut published) = (0, None);
        match &mut write {
            Write::Publish { event, seq, .. } => {
                let place = sequence.next(now);
                *seq = place.seq;
                event.timestamp = place.timestamp;
                (given, published) = (place.seq, Some(event.clone()));
            }
            Write::Take { seq, .. } => {
                given = sequence.next(now).seq;
                *seq = given;
            }
            _ => {}
        }
        self.writes.push(write);
        self.replies.push(Reply { to: reply, seq: given, event: published });
    }

    /// What goes to the store, and what stays here until it answers.
    pub fn split(self) -> (Vec<Write>, Vec<Reply>) {
        (self.writes, self.replies)
    }
}

/// What the rest of the core hears of a transaction.
#[derive(Debug, Default)]
pub struct Told {
    /// Events to dispatch, in sequence.
    pub committed: Vec<Arc<Dispatched>>,
    /// Events that only npm links hear of.
    pub npm: Vec<Arc<Dispatched>>,
    /// npm publishes that the database refused for now.
    pub again: Vec<NpmPublish>,
    /// Outcomes, attempts and claims.
    pub recorded: Recorded,
}

/// Answers the publishers, and gathers what the rest of the core must hear.
pub fn tell(replies: Vec<Reply>, results: Vec<Result<Written, StoreError>>, metrics: &HubMetrics) -> Told {
    let mut told = Told::default();
    let mut answers: BTreeMap<LinkId, (Outlet, Vec<Answered>)> = BTreeMap::new();
    for (Reply { to, seq, event }, result) in replies.into_iter().zip(results) {
        match to {
            ReplyTo::Publisher { outlet, req, permit } => {
                let result = match result {
                    Ok(Written::Published(published)) => {
                        if published.fresh {
                            metrics.published.inc();
                            told.committed.extend(event.map(|mut event| {
                                // One that was only persisted keeps the time that it was stored with.
                                event.timestamp = published.timestamp;
                                Arc::new(Dispatched::new(event, seq))
                            }));
                        } else {
                            metrics.duplicates.inc();
                        }
                        Ok(Answer::Published(published))
                    }
                    Ok(other) => Err(mismatch(&other)),
                    Err(error) => Err(Fault::from(error)),
                };
                if let Err(fault) = &result {
                    metrics.refused.of(Refusal::of(&fault.code)).inc();
                }
                let link = outlet.id();
                answers.entry(link).or_insert_with(|| (outlet, Vec::new())).1.push(Answered {
                    req,
                    result,
                    permit: Some(permit),
                });
            }
            ReplyTo::Claim { token, outcome } => {
                told.recorded.settled.push(Settled {
                    token,
                    outcome,
                    result: result.map(|_| ()).map_err(Fault::from),
                });
            }
            ReplyTo::Binding(made) => {
                let bound = match result {
                    Ok(Written::Bound(binding)) => Ok(binding),
                    Ok(other) => Err(mismatch(&other)),
                    Err(error) => Err(Fault::from(error)),
                };
                // Whoever asked may be gone: the binding stays all the same.
                let _ = made.send(bound);
            }
            ReplyTo::Attempt => {
                told.recorded.attempts += 1;
                warn_unwritten(result);
            }
            ReplyTo::Reserve(token) => {
                let won = match result {
                    Ok(Written::Claimed(won)) => Some(won),
                    Ok(_) => None,
                    Err(error) => {
                        tracing::warn!(%error, "whose an event is can't be found out now");
                        None
                    }
                };
                told.recorded.reserved.push(Reserved { token, won });
            }
            ReplyTo::Npm(publish) => taken(publish, seq, result, metrics, &mut told),
            ReplyTo::Nobody => warn_unwritten(result),
        }
    }
    for (outlet, answers) in answers.into_values() {
        outlet.send(Frame::Answers(answers));
    }
    told
}

fn warn_unwritten(result: Result<Written, StoreError>) {
    if let Err(error) = result {
        tracing::warn!(%error, "a row that nobody waits for wasn't written");
    }
}

/// Refuses publishes that never reach the queue.
pub fn refuse(outlet: &Outlet, events: Vec<Publishing>, fault: &Fault) {
    let answers = events
        .into_iter()
        .map(|Publishing { req, permit, .. }| Answered {
            req,
            result: Err(fault.clone()),
            permit: Some(permit),
        })
        .collect();
    outlet.send(Frame::Answers(answers));
}

/// A publish whose time and place come with its transaction.
pub fn publish(event: NewEvent, publisher: Uid, hub: Uid) -> Write {
    let NewEvent { id, domain, name, pid, rid, data } = event;
    Write::Publish { event: Event { id, timestamp: 0, domain, name, pid, rid, data }, seq: 0, publisher, hub }
}

/// The outcome of a claim.
pub fn finish(finish: Finish, at: i64) -> Write {
    let Finish { event_id, outcome, consumer, attempt, .. } = finish;
    let attempt = attempt.map(|ended| attempt_row(event_id.clone(), ended));
    Write::Finish { event_id, outcome, consumer, at, attempt }
}

/// A delivery of the default group that ended, as a row.
pub fn attempt_row(event_id: EventId, attempt: Attempt) -> AttemptRow {
    let Attempt { number, group, consumer, started, ended, reason, error } = attempt;
    let group = group.map(|group| group.to_string()).unwrap_or_default();
    AttemptRow { event_id, group, round: 1, number, consumer, started, ended, reason, error }
}

/// The store answered another question: a fault of ours, which must not pass for success.
fn mismatch(written: &Written) -> Fault {
    Fault::refused(
        code::INTERNAL,
        format!("the store answered {written:?}: report this fault, with the hub's log"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::outlet::Outflow,
        event::{Data, Domain, Name, Pid},
        metrics::Metrics,
        wire::Published,
    };

    fn job(outlet: &Outlet, req: Req) -> Job {
        let event = NewEvent {
            id: EventId::parse(format!("e{req}")).unwrap(),
            domain: Domain::parse("d").unwrap(),
            name: Name::parse("n").unwrap(),
            pid: Pid::parse("p").unwrap(),
            rid: None,
            data: Data::parse("{}").unwrap(),
        };
        let uid = Uid::parse("A.SPOKE").unwrap();
        let permit = outlet.window(1, 10, 10).unwrap();
        let reply = ReplyTo::Publisher { outlet: outlet.clone(), req, permit };
        Job { write: publish(event, uid.clone(), uid), weight: 1, reply }
    }

    fn answered(out: &mut Outflow) -> Vec<(Req, bool)> {
        let Frame::Answers(answers) = out.frames.try_recv().unwrap().frame else { panic!("answers") };
        answers.iter().map(|answer| (answer.req, answer.result.is_ok())).collect()
    }

    #[test]
    fn each_link_gets_its_answers_in_one_frame_and_only_what_is_new_is_dispatched() {
        let ((one, mut out_one), (two, mut out_two)) =
            (Outlet::new(LinkId(1), 9_999), Outlet::new(LinkId(2), 9_999));
        let mut batch = Batch::default();
        let mut sequence = Sequence::after(0);
        for job in [job(&one, 1), job(&two, 2), job(&one, 3), job(&one, 4)] {
            batch.push(job, &mut sequence, 5_000_000);
        }
        let (writes, replies) = batch.split();
        assert_eq!((writes.len(), one.is_cut()), (4, false));
        let fresh = |fresh, timestamp, seq| Ok(Written::Published(Published { fresh, timestamp, seq }));
        let conflict = StoreError::EventConflict { id: EventId::parse("e3").unwrap(), field: "data" };
        let results =
            vec![fresh(true, 5_000, 5_000_000), fresh(false, 9, 9), Err(conflict), fresh(true, 7, 5_000_003)];
        let told = tell(replies, results, Metrics::new().hub());
        assert_eq!(answered(&mut out_one), [(1, true), (3, false), (4, true)]);
        assert_eq!(answered(&mut out_two), [(2, true)]);
        let dispatched: Vec<_> =
            told.committed.iter().map(|event| (event.seq, event.event.timestamp)).collect();
        assert_eq!(dispatched, [(5_000_000, 5_000), (5_000_003, 7)], "with the time that it was stored with");
        assert!(told.recorded.is_empty());
    }

    #[test]
    fn outcomes_and_attempts_are_told_to_deliveries_written_or_not() {
        let refused = || StoreError::ClaimLost { id: EventId::parse("e1").unwrap() };
        let claim =
            |token| Reply { to: ReplyTo::Claim { token, outcome: Outcome::Success }, seq: 0, event: None };
        let attempt = || Reply { to: ReplyTo::Attempt, seq: 0, event: None };
        let replies = vec![claim(1), attempt(), claim(2), attempt()];
        let results = vec![Ok(Written::Finished), Ok(Written::Done), Err(refused()), Err(refused())];
        let told = tell(replies, results, Metrics::new().hub());
        let settled: Vec<_> =
            told.recorded.settled.iter().map(|settled| (settled.token, settled.result.is_ok())).collect();
        assert_eq!(settled, [(1, true), (2, false)]);
        assert_eq!(told.recorded.attempts, 2);
    }
}
