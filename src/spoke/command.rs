//! What handles ask of the link's task.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{Claim, Drained, lane::Lane, query::Query, subscription::Arrival, write::WriteCommand};
use crate::{
    event::{Event, EventId, Fault, Group, Pattern, Position, code},
    wire::{Answer, ConsumeOptions, HubAddress, NackOptions, Since, Token, WaitFor},
};

/// Names a subscription or a consumer for its whole life, over all links.
pub(super) type Key = u64;
/// Counts the links to one hub: what belongs to an older one is void.
pub(super) type LinkNumber = u64;

pub(super) type Answering<T, E = Failure> = oneshot::Sender<Result<T, E>>;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Failure {
    /// The hub said no.
    Refused(Fault),
    /// The link that the request belongs to is gone.
    LinkLost(Fault),
    /// The spoke is closed.
    Closed(Fault),
}

#[derive(Debug)]
pub(super) enum Command {
    Write(WriteCommand),
    Subscribe {
        key: Key,
        subscribe: SubscribeCommand,
        /// None: nobody waits for its beginning.
        answer: Option<Answering<Position>>,
    },
    Unsubscribe {
        key: Key,
        answer: Answering<()>,
    },
    Consume {
        key: Key,
        consume: ConsumeCommand,
        /// None: nobody waits for its beginning.
        answer: Option<Answering<()>>,
    },
    Stop {
        key: Key,
        answer: Answering<()>,
    },
    Settle {
        claim: ClaimId,
        how: Settle,
        answer: Answering<()>,
    },
    /// For so many milliseconds from now on.
    Extend {
        claim: ClaimId,
        lease: u64,
        answer: Answering<()>,
    },
    Query(QueryCommand),
    Wait(WaitCommand),
    /// The hub of this link can be reached here too.
    Reach(HubAddress),
    /// All that is under way is brought to its end until then.
    Close {
        by: Instant,
        answer: oneshot::Sender<Drained>,
    },
    /// The spoke has ended, for this reason.
    End(Fault),
}

/// A read or a small change.
#[derive(Debug)]
pub(super) struct QueryCommand {
    pub(super) query: Query,
    /// It was asked on a link that is lost, and may have been done.
    pub(super) again: bool,
    /// It is for the hub of this link alone.
    pub(super) bound: bool,
    pub(super) answer: Answering<Found>,
}

/// A wait of any length. Its caller keeps the time itself: the deadline says how long the hub is to wait.
#[derive(Debug)]
pub(super) struct WaitCommand {
    pub(super) wanted: Wanted,
    pub(super) deadline: Instant,
    pub(super) answer: Answering<Found>,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    /// An event.
    Event(WaitFor),
    /// The outcome of this event, in this group or the default one.
    Outcome(EventId, Option<Group>),
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Event(wanted) => write!(f, "{wanted}"),
            Wanted::Outcome(id, None) => write!(f, "outcome of the event {id:?}"),
            Wanted::Outcome(id, Some(group)) => {
                write!(f, "outcome of the event {id:?} in the group {group:?}")
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct SubscribeCommand {
    pub(super) domain: Pattern,
    pub(super) name: Pattern,
    /// From where on; none: live.
    pub(super) since: Option<Since>,
    /// A position in it is one of this hub's database: if it says nothing of the hub, its reader has had nothing of that.
    pub(super) shared: bool,
    /// Where its readers stand, by hubs whose links were given up since.
    pub(super) left: Position,
    pub(super) lane: Arc<Lane<Arrival>>,
}

#[derive(Debug, Clone)]
pub(super) struct ConsumeCommand {
    pub(super) group: Option<Group>,
    pub(super) domain: Pattern,
    pub(super) name: Pattern,
    pub(super) options: ConsumeOptions,
    pub(super) lane: Arc<Lane<Claim>>,
}

/// One claim of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ClaimId {
    pub(super) link: LinkNumber,
    pub(super) token: Token,
}

/// How a claim ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Settle {
    Ack,
    Nack(NackOptions),
    Release,
}

/// The items of an answer, and what its `ok` carried.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) events: Vec<Event>,
    pub(super) answer: Answer,
}

/// What a handle says in passing, without waiting. The channel has no bound of its own: each claim,
/// subscription and consumer is dropped once, a lag is told once before the task acts on it, and their number
/// is bounded by credit and by the hub's limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Remark {
    /// A claim was dropped unsettled.
    Claim(ClaimId),
    /// A subscription was dropped.
    Subscription(Key),
    /// A consumer was dropped.
    Consumer(Key),
    /// The reader of a lagging subscription has read all that was there.
    Drained(Key),
}

/// The way from handles to the task of one link.
#[derive(Debug)]
pub(super) struct Port {
    /// What callers wait with until there is room.
    pub(super) commands: mpsc::Sender<Command>,
    /// What was asked by somebody who waits for its answer, or given by another link. It has no bound of its own: the task
    /// refuses what goes beyond the session's, and publishes are bounded by their buffer.
    pub(super) posted: mpsc::UnboundedSender<Command>,
    pub(super) remarks: mpsc::UnboundedSender<Remark>,
    /// How long a request other than a publish waits for its answer.
    pub(super) deadline: Duration,
    /// Why the spoke ended, once it has.
    pub(super) ended: Arc<OnceLock<Fault>>,
}

/// A request that was not answered in time, or a failure.
#[derive(Debug, PartialEq)]
pub(super) enum Unanswered {
    Failed(Failure),
    TimedOut(Duration),
}

impl Port {
    /// Sends a command and awaits its answer, until the request deadline. The command is made once there is
    /// room to send it.
    pub(super) async fn ask<T>(
        &self,
        command: impl FnOnce(Answering<T>) -> Command,
    ) -> Result<T, Unanswered> {
        let (answer, answered) = oneshot::channel();
        let asking = async {
            self.commands.reserve().await.ok()?.send(command(answer));
            answered.await.ok()
        };
        match tokio::time::timeout(self.deadline, asking).await {
            Ok(Some(Ok(value))) => Ok(value),
            Ok(Some(Err(failure))) => Err(Unanswered::Failed(failure)),
            Ok(None) => Err(Unanswered::Failed(self.gone())),
            Err(_) => Err(Unanswered::TimedOut(self.deadline)),
        }
    }

    /// Why its task doesn't answer: the spoke is closed, or this link was given up.
    fn gone(&self) -> Failure {
        match self.ended.get() {
            Some(fault) => Failure::Closed(fault.clone()),
            None => {
                let text = "the link was given up: its hub is gone";
                Failure::LinkLost(Fault::refused(code::LINK_LOST, text))
            }
        }
    }

    pub(super) fn post(&self, command: Command) {
        // Nobody there: whoever waits for an answer sees that.
        let _ = self.posted.send(command);
    }

    pub(super) fn remark(&self, remark: Remark) {
        // Nobody there: the link is gone, and with it all that the remark is about.
        let _ = self.remarks.send(remark);
    }
}

/// The longest time that is told from forever: a year. More can overflow clocks.
const FOREVER: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The moment that lies so far ahead.
pub(super) fn deadline_in(time: Duration) -> Instant {
    Instant::now() + time.min(FOREVER)
}

/// What callers of a closed spoke are told if nothing better is known.
pub(super) fn closed() -> Fault {
    Fault::refused(code::CLOSED, "the spoke was closed: connect a new one")
}
