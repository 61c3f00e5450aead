//! Waiting for an event of a process, for an answer, or for the outcome of an event.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{
    ReadError, Spoke, Timestamp, WaitError,
    command::{Failure, Found, Wanted, deadline_in},
    fleet::Fleet,
    query::Query,
    write::surprising,
};
use crate::{
    event::{Domain, Event, EventId, InvalidText, Name, Pid, code},
    wire::{self, After, MOST_NAMES, WaitFor},
};

/// How long a wait lasts that says nothing else.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What to wait for, and for how long.
///
/// ```
/// use std::time::Duration;
/// use eventflow::spoke::Wait;
///
/// let paid = Wait::new("orders", "order-1").name("paid").timeout(Duration::from_secs(30));
/// let either = Wait::new("orders", "order-1").names(["paid", "cancelled"]).after_event("01K0EXAMPLE");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "waiting begins with `Spoke::wait`"]
pub struct Wait {
    of: Of,
    timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
enum Of {
    Process { domain: String, pid: String, names: Vec<String>, after: From },
    Answer { rid: String },
}

#[derive(Debug, Clone, PartialEq)]
enum From {
    Start,
    Event(String),
    Time(Timestamp),
}

impl Wait {
    /// The first event of the process `pid` in `domain`, of any name; stored ones count, from the log's start. The
    /// texts are checked when waiting begins.
    pub fn new(domain: impl Into<String>, pid: impl Into<String>) -> Self {
        let (domain, pid) = (domain.into(), pid.into());
        Self { of: Of::Process { domain, pid, names: Vec::new(), after: From::Start }, timeout: TIMEOUT }
    }

    /// The first event `success` or `failed` of a process: what npm's `wait` is for unless it is told otherwise.
    pub fn success_or_failed(domain: impl Into<String>, pid: impl Into<String>) -> Self {
        Self::new(domain, pid).names(["success", "failed"])
    }

    /// The first event that answers this one, that is, whose `rid` is this id.
    pub fn answer_to(id: impl Into<String>) -> Self {
        Self { of: Of::Answer { rid: id.into() }, timeout: TIMEOUT }
    }

    /// Only an event of this name; together with others, of one of them.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.names([name])
    }

    /// Only an event of one of these names, at most 64. An answer may have any name.
    pub fn names<N: Into<String>>(mut self, more: impl IntoIterator<Item = N>) -> Self {
        if let Of::Process { names, .. } = &mut self.of {
            names.extend(more.into_iter().map(Into::into));
        }
        self
    }

    /// Only what was published after this event, of which the id is given. For pids that are used again.
    pub fn after_event(mut self, id: impl Into<String>) -> Self {
        if let Of::Process { after, .. } = &mut self.of {
            *after = From::Event(id.into());
        }
        self
    }

    /// Only what was published after this moment: a `SystemTime`, or milliseconds since 1970.
    pub fn after(mut self, moment: impl Into<Timestamp>) -> Self {
        if let Of::Process { after, .. } = &mut self.of {
            *after = From::Time(moment.into());
        }
        self
    }

    /// For how long; 10 s by default. Zero: only a look at what is stored.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn check(self) -> Result<(WaitFor, Duration), WaitError> {
        let wanted = match self.of {
            Of::Answer { rid } => WaitFor::Answer { rid: EventId::parse(rid)? },
            Of::Process { names, .. } if names.len() > MOST_NAMES => {
                return Err(WaitError::Names { count: names.len() });
            }
            Of::Process { domain, pid, names, after } => WaitFor::Process {
                domain: Domain::parse(domain)?,
                pid: Pid::parse(pid)?,
                names: names.into_iter().map(Name::parse).collect::<Result<_, InvalidText>>()?,
                after: match after {
                    From::Start => After::Start,
                    From::Event(id) => After::Event(EventId::parse(id)?),
                    From::Time(moment) => After::Time(moment.as_millis()),
                },
            },
        };
        Ok((wanted, self.timeout))
    }
}

impl Spoke {
    /// Waits for an event, stored or to come.
    ///
    /// A wait outlives lost links: it is asked again with the rest of its time, and nothing is missed, since what is
    /// stored counts. It ends at its time-out at the latest, by the clock of this machine, whatever the hub does.
    /// Dropping the future gives it up. A hub waits for 1,000 things at once per link, further ones wait for a place;
    /// reads and publishes go on beside them.
    ///
    /// ```no_run
    /// use eventflow::spoke::{Spoke, Wait};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let end = spoke.wait(Wait::new("orders", "order-1").names(["paid", "cancelled"])).await?;
    /// println!("{} is {}", end.pid, end.name);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WaitError::TimedOut`], whose code is `E_EVENTFLOW_WAIT_TIMEOUT`, if it didn't come in time, else why it can't
    /// be waited for.
    pub async fn wait(&self, wait: Wait) -> Result<Event, WaitError> {
        let (wanted, timeout) = wait.check()?;
        let named = match &wanted {
            WaitFor::Process { after: After::Event(id), .. } | WaitFor::Answer { rid: id } => {
                Some(id.to_string())
            }
            WaitFor::Process { .. } => None,
        };
        let fleet = &self.inner.fleet;
        let found = if timeout.is_zero() {
            let what = wanted.to_string();
            fleet
                .query(Query::Wait(wire::Wait { wanted, timeout }))
                .await
                .map_err(|error| looked(error, what, named))?
        } else {
            fleet.wait(Wanted::Event(wanted), timeout, named).await?
        };
        let Found { mut events, answer } = found;
        events.pop().ok_or_else(|| WaitError::Refused(surprising(&answer)))
    }
}

impl Fleet {
    /// Waits until there is an answer, but no longer than `timeout`; `named` is the event that it is about.
    pub(super) async fn wait(
        &self,
        wanted: Wanted,
        timeout: Duration,
        named: Option<String>,
    ) -> Result<Found, WaitError> {
        let deadline = deadline_in(timeout);
        let what = wanted.to_string();
        let waiting = self.wait_at_all(&wanted, deadline);
        self.in_time(waiting, deadline).await.map_err(|failure| match (failure, named) {
            (None, _) => WaitError::TimedOut { what, waited: timeout },
            (Some(Failure::Closed(fault)), _) => WaitError::Closed(fault),
            (Some(Failure::Refused(fault)), _) if fault.code == code::WAIT_TIMEOUT => {
                WaitError::TimedOut { what, waited: timeout }
            }
            (Some(Failure::Refused(fault)), Some(id)) if fault.code == code::EVENT_NOT_FOUND => {
                WaitError::NotFound { id }
            }
            (Some(Failure::Refused(fault) | Failure::LinkLost(fault)), _) => WaitError::Refused(fault),
        })
    }

    /// The error is none if the time is over.
    async fn in_time(
        &self,
        waiting: impl Future<Output = Option<Result<Found, Failure>>>,
        deadline: Instant,
    ) -> Result<Found, Option<Failure>> {
        match timeout_at(deadline, waiting).await {
            Ok(Some(answered)) => answered.map_err(Some),
            // The task answers everybody before it ends, unless its runtime ends first.
            Ok(None) if Instant::now() < deadline => Err(Some(Failure::Closed(self.closed()))),
            Ok(None) | Err(_) => Err(None),
        }
    }
}

/// The error of a look for `what`, as one of a wait.
pub(super) fn looked(error: ReadError, what: String, named: Option<String>) -> WaitError {
    match (error, named) {
        (ReadError::Text(error), _) => WaitError::Text(error),
        (ReadError::Names { count }, _) => WaitError::Names { count },
        (ReadError::NotFound { id }, _) => WaitError::NotFound { id },
        (ReadError::TimedOut { waited }, _) => WaitError::TimedOut { what, waited },
        (ReadError::Closed(fault), _) => WaitError::Closed(fault),
        (ReadError::Refused(fault), _) if fault.code == code::WAIT_TIMEOUT => {
            WaitError::TimedOut { what, waited: Duration::ZERO }
        }
        (ReadError::Refused(fault), Some(id)) if fault.code == code::EVENT_NOT_FOUND => {
            WaitError::NotFound { id }
        }
        (ReadError::Refused(fault), _) => WaitError::Refused(fault),
    }
}
