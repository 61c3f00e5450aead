//! One transaction's worth of writes, and who hears how each of them went.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::oneshot;

use super::{
    adoption::{self, Adopting, Part},
    amend::{self, Deleting},
    collect::{self, Fate},
    due,
    message::{Publishing, Storing},
    npm::{NpmPublish, taken},
    outcomes::{self, Claimed},
    recurring,
    redrive::{self, Redriving},
    sequence::Sequence,
    sweeps,
};
use crate::{
    actors::{
        deliveries::{GroupNo, Recorded, Reserved},
        dispatched::Dispatched,
        outlet::{AmendPermit, Answered, Frame, LinkId, Outlet, Owed, WindowPermit},
    },
    event::{Append, Event, EventId, Fault, Group, NewEvent, RecurringName, Uid, code},
    metrics::{HubMetrics, Refusal},
    store::{Binding, Due, Gone, Placed, Replaced, StoreError, Swept, Write, Written},
    wire::{Answer, Published, Req, Token},
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
    /// The link that asked for an association, for the end of a schedule, or for something about a recurring one.
    Amender {
        /// The link.
        outlet: Outlet,
        /// Its request.
        req: Req,
        /// Its place among the link's changes.
        permit: AmendPermit,
    },
    /// The scheduler, how many of what is due ran.
    Scheduler(oneshot::Sender<Result<usize, Fault>>),
    /// The collector, what became of each event that it found.
    Collector(oneshot::Sender<Result<Vec<(EventId, Fate)>, Fault>>),
    /// The scheduler, how many of the recurring schedules that are due ran.
    Recurring(oneshot::Sender<Result<usize, Fault>>),
    /// The keeper, what came of its sweep.
    Keeper(oneshot::Sender<Result<Swept, Fault>>),
    /// The link that asked for a deletion.
    Deleter(Deleting),
    /// Deliveries, about the end of a claim.
    Claim(Claimed),
    /// Deliveries, that an attempt of this group is no longer under way.
    Attempt(GroupNo),
    /// Deliveries, whether a claim is ours.
    Reserve(Token),
    /// The registry, of what an npm link has published.
    Npm(NpmPublish),
    /// The link that asked for a redrive.
    Redriver(Redriving),
    /// The journal itself, which goes on with the work of a dead hub.
    Adopter(Adopting),
    /// Whoever changes a group.
    Alterer(oneshot::Sender<Result<Written, Fault>>),
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
    /// The events, if the write publishes some.
    events: Events,
}

/// The events of a write, with their numbers.
#[derive(Debug)]
enum Events {
    None,
    One(Event, u64),
    Several(Vec<Placed>),
    /// One that stands in the database, by its number.
    Known(u64),
    /// Not to be dispatched yet.
    Later(Due),
}

/// The writes of one transaction.
#[derive(Debug, Default)]
pub struct Batch {
    writes: Vec<Write>,
    replies: Vec<Reply>,
    /// Writes, the events of a batch or of a run each counted by themselves.
    size: usize,
    bytes: usize,
    /// Nothing more may join it.
    closed: bool,
}

/// The bounds of a transaction.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Writes, the events of a batch or of a run each counted by themselves.
    pub writes: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Job {
    fn size(&self) -> usize {
        match &self.write {
            Write::Batch { events, .. } => events.len(),
            Write::RunDue { events, .. } => events.len(),
            Write::Collect { events, .. } => events.len(),
            Write::RunRecurring { names, .. } => names.len(),
            _ => 1,
        }
    }
}

impl Batch {
    /// How many writes it has.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether the job still fits; the first one always does. A deletion is long, as a sweep is, or a part of an adoption, and what comes after
    /// it is to find it done: it's alone.
    pub fn takes(&self, job: &Job, bounds: Bounds) -> bool {
        self.writes.is_empty()
            || (!self.closed
                && !matches!(job.write, Write::Delete(_) | Write::Sweep(_) | Write::Adopt { .. })
                && self.size + job.size() <= bounds.writes
                && self.bytes + job.weight <= bounds.bytes)
    }

    /// Adds a job; a publish gets its place in the sequence now, in the order of the queue.
    pub fn push(&mut self, job: Job, sequence: &mut Sequence, now: u64) {
        self.size += job.size();
        self.bytes += job.weight;
        let Job { mut write, reply, .. } = job;
        let events = match &mut write {
            Write::Publish { event, seq, .. } => {
                let place = sequence.next(now);
                *seq = place.seq;
                event.timestamp = place.timestamp;
                Events::One(event.clone(), place.seq)
            }
            Write::Finish { letter: Some(letter), .. } => {
                outcomes::place(letter, sequence, now);
                Events::One(letter.event.clone(), letter.seq)
            }
            Write::Take { seq, .. } => {
                *seq = sequence.next(now).seq;
                Events::Known(*seq)
            }
            Write::Batch { events, .. } => {
                for placed in &mut *events {
                    let place = sequence.next(now);
                    placed.seq = place.seq;
                    placed.event.timestamp = place.timestamp;
                }
                Events::Several(events.clone())
            }
            Write::Persist(event, _) => {
                event.timestamp = sequence.next(now).timestamp;
                Events::None
            }
            Write::Delete(delete) => {
                amend::place(delete, sequence, now);
                self.closed = true;
                Events::None
            }
            Write::Sweep(_) => {
                self.closed = true;
                Events::None
            }
            Write::Adopt { most, first, .. } => {
                self.closed = true;
                *first = sequence.block(*most, now);
                Events::None
            }
            Write::Redrive { most, first, .. } => {
                *first = sequence.block(*most, now);
                Events::None
            }
            Write::Schedule { event, due, .. } => {
                event.timestamp = due::stored_at(now);
                Events::Later(due::of(event, *due))
            }
            Write::Collect { events, .. } => {
                collect::place(events, sequence, now);
                Events::None
            }
            Write::RunRecurring { names, places, .. } => {
                *places = recurring::places(names.len(), sequence, now);
                Events::None
            }
            Write::RunExtra { seq, timestamp, .. } => {
                let place = sequence.next(now);
                (*seq, *timestamp) = (place.seq, place.timestamp);
                Events::None
            }
            Write::RunDue { events, .. } => {
                due::place(events, sequence, now);
                Events::None
            }
            _ => Events::None,
        };
        self.writes.push(write);
        self.replies.push(Reply { to: reply, events });
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
    pub refused: Vec<NpmPublish>,
    /// What is to run at its time.
    pub scheduled: Vec<Due>,
    /// When recurring schedules are due next.
    pub advanced: Vec<Due<RecurringName>>,
    /// Outcomes, attempts and claims.
    pub recorded: Recorded,
    /// Deleted events.
    pub gone: Vec<Gone>,
    /// Events that have expired.
    pub expired: Vec<EventId>,
    /// Answers to deletions, to be given once nobody hands out what is gone.
    pub owed: Vec<Owed>,
    /// Deletions and redrives that aren't at their end.
    pub again: Vec<(Write, ReplyTo)>,
    /// Groups of which events are tried again.
    pub redriven: Vec<Option<Group>>,
    /// What came of a part of an adoption.
    pub adopted: Option<Part>,
}

/// Answers the publishers, and gathers what the rest of the core must hear.
pub fn tell(replies: Vec<Reply>, results: Vec<Result<Written, StoreError>>, metrics: &HubMetrics) -> Told {
    let mut told = Told::default();
    let mut answers: BTreeMap<LinkId, (Outlet, Vec<Answered>)> = BTreeMap::new();
    for (Reply { to, events }, result) in replies.into_iter().zip(results) {
        match to {
            ReplyTo::Publisher { outlet, req, permit } => {
                let result = match events {
                    Events::Later(due) => due::scheduled(due, result, &mut told.scheduled, metrics),
                    events => published(events, result, &mut told.committed, metrics),
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
            ReplyTo::Amender { outlet, req, permit } => {
                let done = match result {
                    Ok(Written::Done) => Ok(Answer::Done),
                    Ok(Written::Cancelled) => {
                        metrics.schedules_waiting.dec();
                        Ok(Answer::Done)
                    }
                    Ok(other) => recurring::changed(other, &mut told, metrics),
                    Err(error) => Err(Fault::from(error)),
                };
                outlet.answer(req, done);
                drop(permit);
            }
            ReplyTo::Scheduler(done) => {
                // A scheduler that is gone is part of a core that restarts.
                let _ = done.send(due::ran(result, &mut told.committed, metrics));
            }
            ReplyTo::Collector(done) => {
                // The same holds for a collector.
                let _ = done.send(collect::collected(result, &mut told, metrics));
            }
            ReplyTo::Recurring(done) => {
                // A scheduler that is gone is part of a core that restarts.
                let _ = done.send(recurring::ran(result, &mut told, metrics));
            }
            ReplyTo::Keeper(done) => sweeps::swept(done, result, &mut told),
            ReplyTo::Deleter(deleting) => amend::deleted(deleting, result, &mut told, metrics),
            ReplyTo::Redriver(redriving) => redrive::redriven(redriving, result, &mut told),
            ReplyTo::Adopter(adopting) => told.adopted = Some(adoption::part(adopting, result, metrics)),
            ReplyTo::Alterer(done) => {
                // Whoever asked may be gone: the change stays all the same.
                let _ = done.send(result.map_err(Fault::from));
            }
            ReplyTo::Claim(claimed) => {
                let letter = if let Events::One(event, seq) = events { Some((event, seq)) } else { None };
                let Told { recorded, committed, .. } = &mut told;
                outcomes::ended(claimed, letter, result, recorded, committed, metrics);
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
            ReplyTo::Attempt(of) => {
                told.recorded.attempts.push(of);
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
            ReplyTo::Npm(publish) => {
                let seq = if let Events::Known(seq) = events { seq } else { 0 };
                taken(publish, seq, result, metrics, &mut told);
            }
            ReplyTo::Nobody => warn_unwritten(result),
        }
    }
    for (outlet, answers) in answers.into_values() {
        outlet.send(Frame::Answers(answers));
    }
    told
}

/// The answer to a publish, a batch or a persist; what is fresh of it is to be dispatched.
fn published(
    events: Events,
    result: Result<Written, StoreError>,
    committed: &mut Vec<Arc<Dispatched>>,
    metrics: &HubMetrics,
) -> Result<Answer, Fault> {
    let mut dispatch = |mut event: Event, seq, published: &Published| {
        if published.fresh {
            metrics.published.inc();
            // One that was only persisted keeps the time that it was stored with.
            event.timestamp = published.timestamp;
            committed.push(Arc::new(Dispatched::new(event, seq)));
        } else {
            metrics.duplicates.inc();
        }
    };
    match (events, result) {
        (Events::One(event, seq), Ok(Written::Published(published))) => {
            dispatch(event, seq, &published);
            Ok(Answer::Published(published))
        }
        (Events::None, Ok(Written::Published(published))) => {
            if published.fresh {
                metrics.persisted.inc()
            } else {
                metrics.duplicates.inc()
            }
            Ok(Answer::Published(published))
        }
        (Events::Several(events), Ok(Written::Batch(all))) => {
            for (Placed { event, seq, .. }, published) in events.into_iter().zip(&all) {
                dispatch(event, seq, published);
            }
            Ok(Answer::Batch(all))
        }
        (Events::Several(_), Err(error)) => {
            let Fault { code, message, retry } = error.into();
            Err(Fault { code, message: format!("{message} (nothing of the batch was stored)"), retry })
        }
        (_, Err(error)) => Err(error.into()),
        (_, Ok(other)) => Err(mismatch(&other)),
    }
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

/// A publish whose time and place come with its transaction, and its weight in bytes.
pub fn store(what: Storing, publisher: Uid, hub: Uid) -> (Write, usize) {
    match what {
        Storing::Publish(Append { event, expect }) => {
            let weight = event.weight();
            (Write::Publish { event: untimed(event), seq: 0, publisher, hub, expect }, weight)
        }
        Storing::Persist(Append { event, expect }) => {
            let weight = event.weight();
            (Write::Persist(untimed(event), expect), weight)
        }
        Storing::Schedule { due, event, replaces } => {
            let weight = event.weight();
            let replaces = replaces.map(|event_id| Replaced { event_id, hub });
            (Write::Schedule { event: untimed(event), due, publisher, replaces }, weight)
        }
        Storing::Batch(events) => {
            let weight = events.iter().map(|append| append.event.weight()).sum();
            let place = |Append { event, expect }| Placed { event: untimed(event), seq: 0, expect };
            let events = events.into_iter().map(place).collect();
            (Write::Batch { events, publisher, hub }, weight)
        }
    }
}

fn untimed(event: NewEvent) -> Event {
    let NewEvent { id, domain, name, pid, rid, data } = event;
    Event { id, timestamp: 0, domain, name, pid, rid, data }
}

/// The store answered another question: a fault of ours, which must not pass for success.
pub(super) fn mismatch(written: &Written) -> Fault {
    Fault::refused(
        code::INTERNAL,
        format!("the store answered {written:?}: report this fault, with the hub's log"),
    )
}
