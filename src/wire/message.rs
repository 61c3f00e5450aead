//! The messages of our own dialect ("v1") as types. The connection and the client convert at the door:
//! nothing behind it sees a unit.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Association, Backlog, BacklogQuery, Dead, DeadQuery, Deletion, Ended, ExtendOptions, GroupAction,
    GroupChanged, Hello, HubAddress, LogQuery, Made, Nudged, OutcomeOptions, Published, Recur, RecurChange,
    RecurringShown, RecurringState, Redrive, RemovedEvents, Renewed, ScheduledEvent, SchedulesQuery, StartAt,
    SubscribeOptions, Trace, Wait, Welcome, bounds,
};
use crate::event::{
    Append, Data, Domain, Event, EventId, Expect, Fault, Group, NewEvent, Pattern, Pid, RecurringName,
};

/// The number of a request, chosen by the client, echoed by the answer.
pub type Req = u64;
/// The number of a subscription or a consumer, chosen by the client, unique on its link.
pub type Sub = u32;
/// Names one claim on one hub start; never used twice.
pub type Token = u64;

/// How a consumer wants its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumeOptions {
    /// Events handed out un-acked at most, 1 or more; the hub's own limit holds too.
    #[serde(deserialize_with = "bounds::read_credit")]
    pub credit: u32,
    /// How many handlers run at once: of what a lost link returns, so many count as attempts.
    #[serde(default = "one")]
    pub concurrency: u32,
    /// How long a claim is held without a word of its holder, in milliseconds, within 1 second and 1 hour; none: the
    /// hub's `lease`.
    #[serde(default, deserialize_with = "bounds::read_lease", skip_serializing_if = "Option::is_none")]
    pub lease: Option<u64>,
    /// Named groups only: where a binding starts that is made by this `consume`; none: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<StartAt>,
}

impl ConsumeOptions {
    /// So much credit and so many handlers, with what else is usual.
    #[must_use]
    pub fn new(credit: u32, concurrency: u32) -> Self {
        Self { credit, concurrency, lease: None, from: None }
    }
}

fn one() -> u32 {
    1
}

/// Why a consumer refuses an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NackOptions {
    /// Error text, cut at 8 KiB.
    #[serde(default)]
    pub reason: String,
    /// How long the next attempt waits at least, in milliseconds; none: as the group's back-off says.
    /// At most [`LONGEST_DELAY_MS`](super::LONGEST_DELAY_MS).
    #[serde(default, deserialize_with = "bounds::read_delay", skip_serializing_if = "Option::is_none")]
    pub delay: Option<u64>,
    /// No further attempt: the event is dead now.
    #[serde(default, rename = "final", skip_serializing_if = "std::ops::Not::not")]
    pub is_final: bool,
}

/// Client to hub.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// `hello, 1, {json}`: always first.
    Hello(Hello),
    /// `ping, n`: answered by `pong, n`.
    Ping(u64),
    /// `pong, n`.
    Pong(u64),
    /// `publish, req, id, domain, name, pid, rid, data`, and `{json}` if there is something to say in it.
    Publish {
        /// Request number.
        req: Req,
        /// The event.
        event: NewEvent,
        /// How the log of its process must end.
        expect: Option<Expect>,
    },
    /// `subscribe, req, sub, domain, name` or `subscribe, req, sub, domain, name, {json}`.
    Subscribe {
        /// Request number.
        req: Req,
        /// The new subscription's number.
        sub: Sub,
        /// Of which domains.
        domain: Pattern,
        /// Of which names.
        name: Pattern,
        /// From where on; without the unit it is live.
        options: SubscribeOptions,
    },
    /// `unsubscribe, req, sub`.
    Unsubscribe {
        /// Request number.
        req: Req,
        /// Which subscription.
        sub: Sub,
    },
    /// `consume, req, sub, group, domain, name, {json}`; an empty group is the default one.
    Consume {
        /// Request number.
        req: Req,
        /// The new consumer's number.
        sub: Sub,
        /// The group, or the default one.
        group: Option<Group>,
        /// Of which domains.
        domain: Pattern,
        /// Of which names.
        name: Pattern,
        /// Credit and concurrency.
        options: ConsumeOptions,
    },
    /// `stop, req, sub`: no more events for this consumer; what it holds stays claimed until acked, nacked,
    /// released, or the link ends.
    Stop {
        /// Request number.
        req: Req,
        /// Which consumer.
        sub: Sub,
    },
    /// `ack, req, token`: done.
    Ack {
        /// Request number.
        req: Req,
        /// Which claim.
        token: Token,
    },
    /// `nack, req, token, {json}`: failed.
    Nack {
        /// Request number.
        req: Req,
        /// Which claim.
        token: Token,
        /// Why.
        options: NackOptions,
    },
    /// `extend, req, token, {json}`: the claim is held for longer.
    Extend {
        /// Request number.
        req: Req,
        /// Which claim.
        token: Token,
        /// For how long.
        options: ExtendOptions,
    },
    /// `group, req, group, {json}`: changes a group; an empty one is the default group.
    Group {
        /// Request number.
        req: Req,
        /// Which group, or the default one.
        group: Option<Group>,
        /// What to do with it.
        action: GroupAction,
    },
    /// `backlog, req, {json}`: how groups stand.
    Backlog {
        /// Request number.
        req: Req,
        /// Which groups.
        query: BacklogQuery,
    },
    /// `dead, req, {json}, page, limit`: a page of dead events, in the order of the events; `page` is empty at first.
    Dead {
        /// Request number.
        req: Req,
        /// Which of them.
        query: DeadQuery,
        /// Where to go on: what the page before said; empty: from the start.
        page: String,
        /// At most so many; the hub's own limits hold too.
        limit: u32,
    },
    /// `redrive, req, {json}`: dead events are tried again, in a new round.
    Redrive {
        /// Request number.
        req: Req,
        /// Which.
        what: Redrive,
    },
    /// `release, req, token`: handed back unstarted; counts as no attempt.
    Release {
        /// Request number.
        req: Req,
        /// Which claim.
        token: Token,
    },
    /// `read, req, id`.
    Read {
        /// Request number.
        req: Req,
        /// Which event.
        id: EventId,
    },
    /// `log, req, {json}, page, limit`: a page of events; `page` is empty at first.
    Log {
        /// Request number.
        req: Req,
        /// Whose events, and which of them.
        query: LogQuery,
        /// Where to go on: what the page before said; empty: from the start.
        page: String,
        /// At most so many events; the hub's own limits hold too.
        limit: u32,
    },
    /// `renew, req, key`: a new leaf for this link's own UID, on a key pair that the client made.
    Renew {
        /// Request number.
        req: Req,
        /// The public key: a SubjectPublicKeyInfo, DER in base64.
        key: String,
    },
    /// `show, req, id`: the event and what became of it.
    Show {
        /// Request number.
        req: Req,
        /// Which event.
        id: EventId,
    },
    /// `batch, req, [json, …]`: several events, published together or not at all.
    Batch {
        /// Request number.
        req: Req,
        /// The events, at least one and at most [`MOST_EVENTS`](super::MOST_EVENTS), each with what is expected of its
        /// log, where those before it in the batch count.
        events: Vec<Append>,
    },
    /// `persist, req, id, domain, name, pid, rid, data`, and `{json}` as for publish: stored, not published.
    Persist {
        /// Request number.
        req: Req,
        /// The event.
        event: NewEvent,
        /// How the log of its process must end.
        expect: Option<Expect>,
    },
    /// `schedule, req, due, id, domain, name, pid, rid, data`: published at its time.
    Schedule {
        /// Request number.
        req: Req,
        /// When, in milliseconds since 1970.
        due: i64,
        /// The event.
        event: NewEvent,
    },
    /// `cancel, req, id`: a schedule that hasn't run, and its event with it.
    Cancel {
        /// Request number.
        req: Req,
        /// The scheduled event.
        id: EventId,
    },
    /// `recur, req, name, create|replace, {json}, data`: a recurring schedule.
    Recur {
        /// Request number.
        req: Req,
        /// What to make.
        recur: Box<Recur>,
    },
    /// `recur-pause, req, name`, `recur-resume, req, name` or `recur-remove, req, name`.
    RecurChange {
        /// Request number.
        req: Req,
        /// Which recurring schedule.
        name: RecurringName,
        /// What to do with it.
        change: RecurChange,
    },
    /// `recur-run, req, name, id`: publishes its event now, besides its times.
    RecurRun {
        /// Request number.
        req: Req,
        /// Which recurring schedule.
        name: RecurringName,
        /// The event's id; the same again is the same run.
        id: EventId,
    },
    /// `schedules, req, {json}, page, limit`: what waits for its time, first what is due first; `page` is empty at first.
    Schedules {
        /// Request number.
        req: Req,
        /// Which of it.
        query: SchedulesQuery,
        /// Where to go on: what the page before said; empty: from the start.
        page: String,
        /// At most so many; the hub's own limits hold too.
        limit: u32,
    },
    /// `recur-list, req, page, limit`: recurring schedules by name; `page` is empty at first.
    RecurList {
        /// Request number.
        req: Req,
        /// Where to go on: what the page before said; empty: from the start.
        page: String,
        /// At most so many; the hub's own limits hold too.
        limit: u32,
    },
    /// `recur-show, req, name, runs`: a recurring schedule and its next runs.
    RecurShow {
        /// Request number.
        req: Req,
        /// Which one.
        name: RecurringName,
        /// So many runs to come; the hub's own limits hold too.
        runs: u32,
    },
    /// `pids, req, domain, page, limit`: the processes of a domain; `page` is empty at first.
    Pids {
        /// Request number.
        req: Req,
        /// The domain.
        domain: Domain,
        /// Where to go on: what the page before said; empty: from the start.
        page: String,
        /// At most so many; the hub's own limits hold too.
        limit: u32,
    },
    /// `wait, req, {json}`: for an event, stored or to come.
    Wait {
        /// Request number.
        req: Req,
        /// For what, and for how long.
        wait: Wait,
    },
    /// `outcome, req, id, {json}`: for the outcome of an event, recorded or to come.
    Outcome {
        /// Request number.
        req: Req,
        /// Which event.
        id: EventId,
        /// For which group, and for how long.
        options: OutcomeOptions,
    },
    /// `associate, req, id, {json}`: an event with something besides its process.
    Associate {
        /// Request number.
        req: Req,
        /// Which event.
        id: EventId,
        /// With what.
        with: Association,
    },
    /// `dissociate, req, id, {json}`: takes an association back.
    Dissociate {
        /// Request number.
        req: Req,
        /// Which event.
        id: EventId,
        /// From what.
        with: Association,
    },
    /// `delete, req, {json}`: an event, or a log.
    Delete {
        /// Request number.
        req: Req,
        /// What.
        what: Deletion,
    },
    /// `nudge, req`, or `nudge, req, [json, …]` with ids: what an application has put into the database itself is to be
    /// published now.
    Nudge {
        /// Request number.
        req: Req,
        /// The events, which are committed, at most [`MOST_EVENTS`](super::MOST_EVENTS); none: whatever is old enough.
        ids: Vec<EventId>,
    },
}

/// Hub to client.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// `welcome, 1, {json}`.
    Welcome(Welcome),
    /// `ping, n`: answered by `pong, n`.
    Ping(u64),
    /// `pong, n`.
    Pong(u64),
    /// `ok, req, units…`: done.
    Ok {
        /// Request number.
        req: Req,
        /// See [`Answer`].
        answer: Answer,
    },
    /// `item, req, <event>`: one event of an answer; `ok` or `err` follows after the last.
    Item {
        /// Request number.
        req: Req,
        /// The event.
        event: Event,
    },
    /// `err, req, code, message, retry`; `req` 0: the record had none.
    Err {
        /// Request number.
        req: Req,
        /// The error.
        fault: Fault,
    },
    /// `event, subs, seq, <event>`: for a subscriber; `subs` are the numbers that match, joined by commas.
    Event {
        /// Which subscriptions matched.
        subs: Vec<Sub>,
        /// The hub's sequence number.
        seq: u64,
        /// The event.
        event: Event,
    },
    /// `gap, sub, {json}`: events that a subscription with a `from` asked for, and that retention has removed.
    Gap {
        /// Which subscription.
        sub: Sub,
        /// What is gone.
        removed: RemovedEvents,
    },
    /// `claim, sub, token, attempt, seq, <event>`: for a consumer.
    Claim {
        /// Which consumer.
        sub: Sub,
        /// Names the claim.
        token: Token,
        /// 1 at the first delivery.
        attempt: u32,
        /// The hub's sequence number.
        seq: u64,
        /// The event.
        event: Event,
    },
    /// `ended, sub, code, message, retry`: this consumer gets nothing more, and its number is free. What it holds stays
    /// its own unless the group is gone.
    Ended {
        /// Which consumer.
        sub: Sub,
        /// Why.
        fault: Fault,
    },
    /// `online, id, host, port`: another hub is there.
    Online(HubAddress),
    /// `drain`: the hub is stopping. What isn't begun is to be released, the rest to be finished; new work goes to
    /// another hub, or waits for the next link.
    Drain,
    /// `bye, code, message, retry`: the hub closes this link after it.
    Bye(Fault),
}

/// What an `ok` carries besides its number; its first unit, if there is one, names the form.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Nothing: unsubscribe, stop, ack, nack, extend, release, cancel, associate, dissociate, recur-pause, recur-resume,
    /// recur-remove, and read and wait after their `item`.
    Done,
    /// `committed, timestamp, seq` or `duplicate, timestamp, seq, state`: publish, recur-run, and persist with 0 for `seq`.
    Published(Published),
    /// `batch, [json, …]`: what became of each event of a batch, in its order.
    Batch(Vec<Published>),
    /// `scheduled, due, new` or `scheduled, due, duplicate`: schedule.
    Scheduled {
        /// When it runs or ran, in milliseconds since 1970.
        due: i64,
        /// False: it was scheduled so already.
        fresh: bool,
    },
    /// `schedules, [json, …], next`: schedules, first what is due first. An empty `next`: that was the last page.
    Schedules {
        /// What waits.
        events: Vec<ScheduledEvent>,
        /// Where to go on.
        next: String,
    },
    /// `recurring, due, new`, `recurring, due, duplicate` or `recurring, due, replaced`: recur.
    Recurring {
        /// When it runs next, in milliseconds since 1970; none (empty): it is paused, or nothing is to come.
        next: Option<i64>,
        /// What became of it.
        made: Made,
    },
    /// `recurrings, [json, …], next`: recur-list, by name. An empty `next`: that was the last page.
    Recurrings {
        /// How they stand.
        states: Vec<RecurringState>,
        /// Where to go on.
        next: String,
    },
    /// `recurrence, {json}, data`: recur-show.
    RecurringShown {
        /// How it stands, and what is to come.
        shown: Box<RecurringShown>,
        /// The data of its events.
        data: Data,
    },
    /// `pids, [json, …], next`: pids, rising. An empty `next`: that was the last page.
    Pids {
        /// The processes.
        pids: Vec<Pid>,
        /// Where to go on.
        next: String,
    },
    /// `outcome, {json}`: outcome. `pending` in place of the JSON, if nothing was to be waited for.
    Outcome(Option<Box<Ended>>),
    /// `group, {json}`: group.
    Group(Box<GroupChanged>),
    /// `backlog, [json, …]`: backlog; the default group first, then the others by name.
    Backlog(Vec<Backlog>),
    /// `dead, [json, …], next`: dead. An empty `next`: that was the last page.
    Dead {
        /// The events.
        dead: Vec<Dead>,
        /// Where to go on.
        next: String,
    },
    /// `redriven, count`: redrive, with the number of events that are tried again.
    Redriven(u64),
    /// `deleted, count`: delete, with the number of events that are gone.
    Deleted(u64),
    /// `nudged, taken, [json, …]`: nudge, with how many were taken, and how each of those stands that were named.
    Nudged {
        /// How many are published by it.
        taken: u64,
        /// Those that were named, in their order.
        events: Vec<Nudged>,
    },
    /// `position, seq`: subscribe and consume. Events above it are delivered from here on.
    Position(u64),
    /// `page, next`: log. Empty: that was the last page.
    Page(String),
    /// `renewed, {json}`: renew.
    Renewed(Box<Renewed>),
    /// `trace, {json}`: show, after the `item` with the event.
    Trace(Box<Trace>),
}

/// A request that can't be taken: answered by `err` with its number (0 if it had none); the link stays.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Its number, if it could be read.
    pub req: Req,
    /// Why.
    pub fault: Fault,
}

/// What `retry` says of a wait, in milliseconds; empty = final.
#[must_use]
pub fn retry_ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}
