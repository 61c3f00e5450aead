//! What a group is told of claims, and what it wants done, as data.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    binding::PageWanted,
    groups::GroupNo,
    order::{HeldWanted, LaneWanted},
    retries::RetriesWanted,
};
use crate::{
    actors::{
        dispatched::Dispatched,
        outlet::{ClaimPush, LinkId, Outlet},
    },
    event::{EventId, Fault, Group, NewEvent, Outcome, Pid, Uid, code},
    wire::{Attempt, NackOptions, Req, Sub, Token},
};

/// What a consumer says of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Done.
    Ack,
    /// Failed.
    Nack(NackOptions),
    /// Held for longer: so many milliseconds from now on; none: as long as the consumer asked for when it came.
    Extend(Option<u64>),
    /// Handed back unstarted.
    Release,
}

/// An outcome to be recorded; the group is told the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// The claim that ends.
    pub token: Token,
    /// In which group; none is the default one.
    pub group: Option<Group>,
    /// The round that it ends.
    pub round: u32,
    /// The event.
    pub event_id: EventId,
    /// Its sequence number on the hub that dispatched it.
    pub seq: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Who brought it to its end.
    pub consumer: Uid,
    /// What to keep of the attempt, if it failed.
    pub attempt: Option<Attempt>,
    /// It has a row that said when it was due for a retry.
    pub retried: bool,
    /// What to publish with it.
    pub letter: Option<Box<NewEvent>>,
}

/// A delivery that ended without an outcome, after which the event waits for a time; the group is told the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The claim that ends.
    pub token: Token,
    /// The event.
    pub event_id: EventId,
    /// Its sequence number.
    pub seq: u64,
    /// Its sequence number on the hub that dispatched it.
    pub original: u64,
    /// Its process.
    pub pid: Pid,
    /// What to keep of the attempt.
    pub attempt: Attempt,
    /// When the next attempt is due, in milliseconds since 1970.
    pub due: i64,
}

/// A delivery that ended without an outcome and counts as an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// In which group.
    pub of: GroupNo,
    /// The event.
    pub event_id: EventId,
    /// What to keep of it.
    pub attempt: Attempt,
}

/// A claim to be made in the database, since npm spokes may make it too; the group is told the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The claim.
    pub token: Token,
    /// The event.
    pub event_id: EventId,
    /// For whom.
    pub consumer: Uid,
}

/// What the state wants done.
#[derive(Debug, Default)]
pub struct Effects {
    /// Claims to send, by link.
    pub claims: BTreeMap<LinkId, (Outlet, Vec<ClaimPush>)>,
    /// Outcomes to record.
    pub finishes: Vec<Finish>,
    /// Attempts to record after which their events wait for a time.
    pub retries: Vec<Retry>,
    /// Attempts to record.
    pub ended: Vec<Ended>,
    /// Claims to make in the database before they are handed out.
    pub reserves: Vec<Reserve>,
    /// Events to tell npm links of.
    pub npm: Vec<(Arc<Dispatched>, Vec<Outlet>)>,
    /// Requests to answer at once: done (`None`), or refused since the claim isn't held.
    pub answers: Vec<(Outlet, Req, bool)>,
    /// Pages to read, by binding.
    pub pages: Vec<(i64, PageWanted)>,
    /// Pages to read of what is due for a retry, by group.
    pub due: Vec<(GroupNo, RetriesWanted)>,
    /// Pages to read of what holds back others of its process, by group.
    pub held_back: Vec<(GroupNo, HeldWanted)>,
    /// Pages to read of the events of one process, by group.
    pub lanes: Vec<(GroupNo, LaneWanted)>,
    /// Claims of named groups that began.
    pub named: Vec<(Token, GroupNo)>,
    /// Links that had all that they may hold and now have less: consumers of other groups than this one may have waited
    /// for that.
    pub unblocked: Vec<(LinkId, GroupNo)>,
    /// Consumers that end since their binding or their group does.
    pub ended_consumers: Vec<(Outlet, Sub)>,
    /// Events that matched no binding of the default group.
    pub orphans: u64,
    /// Claims that came back from lost links.
    pub returned: u64,
    /// Claims that ended by their leases.
    pub over: u64,
}

impl Effects {
    /// A claim goes to its consumer.
    pub fn hand(&mut self, link: LinkId, outlet: &Outlet, push: ClaimPush) {
        self.claims.entry(link).or_insert_with(|| (outlet.clone(), Vec::new())).1.push(push);
    }

    /// These npm links are told of an event; often there are none.
    pub fn tell(&mut self, event: Arc<Dispatched>, links: Vec<Outlet>) {
        if !links.is_empty() {
            self.npm.push((event, links));
        }
    }
}

/// The answer to who doesn't hold the claim that it names.
pub fn claim_lost() -> Fault {
    Fault::refused(
        code::CLAIM_LOST,
        "this link doesn't hold that claim: the event was offered to somebody else, or its outcome is recorded; \
         drop the result",
    )
}
