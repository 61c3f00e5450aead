//! What [`Deliveries`](super::Deliveries) receives.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use tokio::sync::oneshot;

use super::{effects::Verdict, groups::GroupNo};
use crate::{
    actors::{
        dispatched::Dispatched,
        mail::mail,
        outlet::{LinkId, Outlet, Owed},
        waiters::WaitKey,
    },
    event::{EventId, Fault, Outcome, Pattern, Uid},
    store::Gone,
    wire::{ConsumeOptions, Req, Sub, Token},
};

/// A link wants to consume for the default group. Answered through its outlet.
#[derive(Debug)]
pub struct Consume {
    /// The link.
    pub outlet: Outlet,
    /// Who it is, by its certificate.
    pub uid: Uid,
    /// Its request.
    pub req: Req,
    /// The number that it chose, unused on this link.
    pub sub: Sub,
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
    /// Credit and concurrency.
    pub options: ConsumeOptions,
}
mail!(Consume => ());

/// A consumer wants no more events. Answered through the link's outlet.
#[derive(Debug)]
pub struct Stop {
    /// The link.
    pub outlet: Outlet,
    /// Its request.
    pub req: Req,
    /// Which consumer.
    pub sub: Sub,
}
mail!(Stop => ());

/// What a link says of its claims, in order. Each is answered through the outlet.
#[derive(Debug)]
pub struct Settle {
    /// The link.
    pub outlet: Outlet,
    /// Request, claim and verdict.
    pub verdicts: Vec<(Req, Token, Verdict)>,
}
mail!(Settle => ());

/// A link ended: what it holds is offered again.
#[derive(Debug)]
pub struct LinkGone(pub LinkId);
mail!(LinkGone => ());

/// Events were committed, in sequence.
#[derive(Debug)]
pub struct Dispatch {
    /// The events.
    pub events: Vec<Arc<Dispatched>>,
    /// The npm links that are to be told, by sequence number.
    pub npm: BTreeMap<u64, Vec<Outlet>>,
}
mail!(Dispatch => ());

/// A link waits for the outcome of an event: for the next word of it, once.
#[derive(Debug)]
pub struct AwaitOutcome {
    /// Which wait of which link.
    pub who: WaitKey,
    /// Of which event.
    pub event_id: EventId,
    /// Hears that the outcome stands in the store, or that the event is gone.
    pub told: oneshot::Sender<()>,
    /// Hears that deliveries look out for it: what is recorded later is told, what was recorded before is in the store.
    pub seated: oneshot::Sender<()>,
}
mail!(AwaitOutcome => ());

/// A wait is over, whether it was met or not.
#[derive(Debug)]
pub struct ForgetOutcome {
    /// Which wait of which link.
    pub who: WaitKey,
    /// Of which event.
    pub event_id: EventId,
}
mail!(ForgetOutcome => ());

/// Events were deleted, all of them told of by an earlier [`Dispatch`] if at all.
#[derive(Debug)]
pub struct Deleted {
    /// The events.
    pub gone: Vec<Gone>,
    /// To be answered once none of them is handed out any more.
    pub owed: Vec<Owed>,
}
mail!(Deleted => ());

/// How the recording of one outcome went.
#[derive(Debug)]
pub struct Settled {
    /// The event.
    pub event_id: EventId,
    /// The claim.
    pub token: Token,
    /// What was to be recorded.
    pub outcome: Outcome,
    /// Whether it was.
    pub result: Result<(), Fault>,
}

/// An npm link subscribes: it is told of what it missed, as far as nobody of ours is to have that.
#[derive(Debug)]
pub struct NpmCame {
    /// The link.
    pub outlet: Outlet,
    /// The domain, literally.
    pub domain: Pattern,
    /// The name, literally, or every name.
    pub name: Pattern,
    /// What nobody saw in the last moments.
    pub late: Vec<Arc<Dispatched>>,
}
mail!(NpmCame => ());

/// An npm link takes a subscription back.
#[derive(Debug)]
pub struct NpmLeft {
    /// The link.
    pub link: LinkId,
    /// As it was subscribed.
    pub domain: Pattern,
    /// As it was subscribed.
    pub name: Pattern,
}
mail!(NpmLeft => ());

/// How a claim in the database went.
#[derive(Debug)]
pub struct Reserved {
    /// The claim.
    pub token: Token,
    /// Whether it is ours; none: the database couldn't say.
    pub won: Option<bool>,
}

/// A transaction with outcomes or attempts ended.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Outcomes, in the order of the verdicts.
    pub settled: Vec<Settled>,
    /// The groups of the attempts without an outcome that it had, written or not.
    pub attempts: Vec<GroupNo>,
    /// Claims, in the order in which they were asked for.
    pub reserved: Vec<Reserved>,
}

impl Recorded {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.settled.is_empty() && self.attempts.is_empty() && self.reserved.is_empty()
    }
}
mail!(Recorded => ());

/// Asks who holds the event of this sequence number.
#[derive(Debug)]
pub struct Holder(pub u64);
mail!(Holder => Option<Uid>);

/// Asks which of the events of these sequence numbers are somebody's claim.
#[derive(Debug)]
pub struct HeldOf(pub Vec<u64>);
mail!(HeldOf => HeldSeqs);

/// The answer.
#[derive(Debug, actix::MessageResponse)]
pub struct HeldSeqs(pub HashSet<u64>);

/// Events have expired, and the store says so.
#[derive(Debug)]
pub struct Expired(pub Vec<EventId>);
mail!(Expired => ());

/// Asks how many events the consumers of each of these links hold.
#[derive(Debug)]
pub struct Holding(pub Arc<[LinkId]>);
mail!(Holding => Held);

/// The answer, by link.
#[derive(Debug, actix::MessageResponse)]
pub struct Held(pub HashMap<LinkId, usize>);

/// Nothing is handed out from here on.
#[derive(Debug)]
pub struct Drain;
mail!(Drain => ());

/// Asks for the number of claims in somebody's hands or on their way to the database.
#[derive(Debug)]
pub struct InFlight;
mail!(InFlight => usize);

/// Asks up to where everything has an outcome.
#[derive(Debug)]
pub struct Floor;
mail!(Floor => Option<u64>);

/// Ends the actor by a panic, to show that nothing is lost by one.
#[derive(Debug)]
pub struct Panic;
mail!(Panic => ());
