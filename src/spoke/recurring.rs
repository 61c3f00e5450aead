//! Recurring schedules: events that the hub publishes again and again.

use std::{fmt, sync::Arc, time::Duration};

use super::{ChangeError, ReadError, Spoke, Timestamp, fleet::Fleet, query::Query, write::surprising};
use crate::{
    event::{Data, Domain, EventId, InvalidData, Name, Pid, RecurringName},
    wire::{
        Answer, MOST_RECURRING, Made, Missed, Published, Recur, RecurChange, Recurring, RecurringShown,
        RecurringState,
    },
};

/// A recurring schedule that is to be made: what it publishes, and when.
///
/// ```
/// use std::time::Duration;
/// use eventflow::{spoke::Recurrence, wire::Missed};
///
/// # fn main() -> Result<(), eventflow::event::InvalidData> {
/// let nightly = Recurrence::new("nightly-report", "30 2 * * MON-FRI", "reports", "due")
///     .zone("Europe/Berlin")
///     .missed(Missed::All)
///     .window(Duration::from_secs(3 * 86_400))
///     .data(&serde_json::json!({ "kind": "sales" }))?;
/// let pulse = Recurrence::new("pulse", "@every 90s", "monitoring", "asked");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a recurring schedule is made by `Spoke::recur`"]
pub struct Recurrence {
    name: String,
    rule: String,
    domain: String,
    event: String,
    pid: Option<String>,
    data: Option<Data>,
    zone: Option<String>,
    missed: Missed,
    window: Option<Duration>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    paused: bool,
    replace: bool,
}

impl Recurrence {
    /// A schedule `name` that publishes `event` in `domain` by a rule: five fields of cron, six with the second before
    /// them, `@daily` and the like, or `@every` with a duration. The texts are checked when it is made.
    pub fn new(
        name: impl Into<String>,
        rule: impl Into<String>,
        domain: impl Into<String>,
        event: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            rule: rule.into(),
            domain: domain.into(),
            event: event.into(),
            pid: None,
            data: None,
            zone: None,
            missed: Missed::default(),
            window: None,
            start: None,
            end: None,
            paused: false,
            replace: false,
        }
    }

    /// All events are of this process; else each has one of its own, named as its id.
    pub fn pid(mut self, pid: impl Into<String>) -> Self {
        self.pid = Some(pid.into());
        self
    }

    /// The payload of each event, as any serializable value; without one it is `null`.
    ///
    /// # Errors
    /// [`InvalidData`] if the value can't be JSON or nests too deep.
    pub fn data<T: serde::Serialize + ?Sized>(mut self, value: &T) -> Result<Self, InvalidData> {
        self.data = Some(Data::from_value(value)?);
        Ok(self)
    }

    /// The time zone of the rule, by its IANA name, such as `Europe/Berlin`; by default `UTC`.
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// What becomes of runs that were missed since no hub was up; by default they run once.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// How old missed runs may be to run, if all do: from a second to 366 days, by default a day.
    pub fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// Not before this moment; an interval begins with it.
    pub fn start(mut self, start: impl Into<Timestamp>) -> Self {
        self.start = Some(start.into());
        self
    }

    /// Not after this moment.
    pub fn end(mut self, end: impl Into<Timestamp>) -> Self {
        self.end = Some(end.into());
        self
    }

    /// It doesn't run until it is resumed.
    pub fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// In place of a schedule of this name with other content, which is a conflict otherwise.
    pub fn replace(mut self) -> Self {
        self.replace = true;
        self
    }

    fn check(self) -> Result<Recur, ChangeError> {
        let what = Recurring::new(Domain::parse(self.domain)?, Name::parse(self.event)?, self.rule);
        let millis = |window: Duration| u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        Ok(Recur {
            name: RecurringName::parse(self.name)?,
            replace: self.replace,
            what: Recurring {
                pid: self.pid.map(Pid::parse).transpose()?,
                zone: self.zone.unwrap_or(what.zone),
                missed: self.missed,
                window_ms: self.window.map_or(what.window_ms, millis),
                start: self.start.map(Timestamp::as_millis),
                end: self.end.map(Timestamp::as_millis),
                paused: self.paused,
                ..what
            },
            data: self.data.unwrap_or_else(|| Data::from_stored("null")),
        })
    }
}

/// What became of a [`Recurrence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recurred {
    /// When it runs next, in milliseconds since 1970; none: it is paused, or has nothing to come.
    pub next: Option<i64>,
    /// Whether it is new, stood so already, or took another's place.
    pub made: Made,
}

/// A recurring schedule as the hub has it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecurringDetails {
    /// How it stands, and its runs to come.
    pub shown: RecurringShown,
    /// The payload of its events.
    pub data: Data,
}

/// An event that a recurring schedule published by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RanNow {
    /// The event's id.
    pub id: EventId,
    /// How it was published.
    pub published: Published,
}

/// Reads recurring schedules by their names, a page at a time.
#[must_use = "schedules are read by `next_page` or `collect`"]
pub struct RecurringReader {
    fleet: Arc<Fleet>,
    page: Option<String>,
    limit: u32,
}

impl RecurringReader {
    /// At most so many a page, 1 to 1,000 (default); the hub's own limits hold too.
    pub fn page_size(mut self, schedules: u32) -> Self {
        self.limit = schedules.clamp(1, MOST_RECURRING);
        self
    }

    /// The next schedules. None: that was all. A page that fails can be asked for again.
    ///
    /// # Errors
    /// [`ReadError`] if the hub refuses or doesn't answer in time.
    pub async fn next_page(&mut self) -> Result<Option<Vec<RecurringState>>, ReadError> {
        let Some(page) = self.page.clone() else { return Ok(None) };
        match self.fleet.query(Query::RecurList { page, limit: self.limit }).await?.answer {
            Answer::Recurrings { states, next } => {
                self.page = Some(next).filter(|next| !next.is_empty());
                Ok((self.page.is_some() || !states.is_empty()).then_some(states))
            }
            other => Err(ReadError::Refused(surprising(&other))),
        }
    }

    /// All that are left; a hub keeps 10,000 at most.
    ///
    /// # Errors
    /// As [`RecurringReader::next_page`]; what was read before is dropped.
    pub async fn collect(&mut self) -> Result<Vec<RecurringState>, ReadError> {
        let mut all = Vec::new();
        while let Some(page) = self.next_page().await? {
            all.extend(page);
        }
        Ok(all)
    }
}

impl fmt::Debug for RecurringReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecurringReader").field("page", &self.page).finish_non_exhaustive()
    }
}

impl Spoke {
    /// Makes a recurring schedule, or replaces one. To make the same again changes nothing; after a lost link it is asked
    /// again.
    ///
    /// ```no_run
    /// use eventflow::spoke::{Recurrence, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let nightly = Recurrence::new("nightly-report", "30 2 * * *", "reports", "due").zone("Europe/Berlin");
    /// spoke.recur(nightly).await?;
    /// for run in spoke.recurring("nightly-report", 3).await?.shown.runs {
    ///     println!("{} ({})", run.local, run.utc);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ChangeError`]; its code is `E_EVENTFLOW_INVALID_RULE` or `E_EVENTFLOW_INVALID_ZONE` for a rule that is none,
    /// `E_EVENTFLOW_RECURRING_CONFLICT` if one of this name stands with other content.
    pub async fn recur(&self, recurrence: Recurrence) -> Result<Recurred, ChangeError> {
        let recur = Box::new(recurrence.check()?);
        match self.inner.fleet.change(Query::Recur(recur)).await? {
            Answer::Recurring { next, made } => Ok(Recurred { next, made }),
            other => Err(ChangeError::Refused(surprising(&other))),
        }
    }

    /// A recurring schedule, with so many of its runs to come, at most 100: each in UTC and in the schedule's zone.
    ///
    /// # Errors
    /// [`ReadError`]; its code is `E_EVENTFLOW_RECURRING_NOT_FOUND` if there is none of this name.
    pub async fn recurring(&self, name: &str, runs: u32) -> Result<RecurringDetails, ReadError> {
        let query = Query::RecurShow { name: RecurringName::parse(name.to_owned())?, runs: runs.max(1) };
        match self.inner.fleet.query(query).await?.answer {
            Answer::RecurringShown { shown, data } => Ok(RecurringDetails { shown: *shown, data }),
            other => Err(ReadError::Refused(surprising(&other))),
        }
    }

    /// A reader of all recurring schedules, by name.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut reader = spoke.recurring_schedules();
    /// while let Some(page) = reader.next_page().await? {
    ///     page.iter().for_each(|schedule| println!("{} {}", schedule.name, schedule.what.rule));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn recurring_schedules(&self) -> RecurringReader {
        RecurringReader { fleet: self.inner.fleet.clone(), page: Some(String::new()), limit: MOST_RECURRING }
    }

    /// Lets a recurring schedule rest until it is resumed. Again changes nothing.
    ///
    /// # Errors
    /// [`ChangeError`]; its code is `E_EVENTFLOW_RECURRING_NOT_FOUND` if there is none of this name.
    pub async fn pause_recurring(&self, name: &str) -> Result<(), ChangeError> {
        self.change_recurring(name, RecurChange::Pause).await
    }

    /// Lets a paused schedule run again, from now on: what it missed meanwhile is skipped.
    ///
    /// # Errors
    /// As [`Spoke::pause_recurring`].
    pub async fn resume_recurring(&self, name: &str) -> Result<(), ChangeError> {
        self.change_recurring(name, RecurChange::Resume).await
    }

    /// Removes a recurring schedule; what it has published stays. After a lost link it is asked again, and counts as removed
    /// if there is none any more.
    ///
    /// # Errors
    /// As [`Spoke::pause_recurring`]; `E_EVENTFLOW_NOT_ALLOWED` if the hub's settings forbid it.
    pub async fn remove_recurring(&self, name: &str) -> Result<(), ChangeError> {
        self.change_recurring(name, RecurChange::Remove).await
    }

    async fn change_recurring(&self, name: &str, change: RecurChange) -> Result<(), ChangeError> {
        let name = RecurringName::parse(name.to_owned())?;
        self.inner.fleet.change(Query::RecurChange(name, change)).await.map(drop)
    }

    /// Has a recurring schedule, also a paused one, publish its event now, besides the times of its rule. After a lost link
    /// it is asked again, under the same id: it is published once.
    ///
    /// # Errors
    /// As [`Spoke::pause_recurring`].
    pub async fn run_recurring(&self, name: &str) -> Result<RanNow, ChangeError> {
        let name = RecurringName::parse(name.to_owned())?;
        let id = EventId::parse(self.new_id())?;
        match self.inner.fleet.change(Query::RecurRun(name, id.clone())).await? {
            Answer::Published(published) => Ok(RanNow { id, published }),
            other => Err(ChangeError::Refused(surprising(&other))),
        }
    }
}
