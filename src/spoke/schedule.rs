//! One-shot schedules: an event that is stored now and published at its time.

use std::time::{Duration, SystemTime};

use super::{
    ChangeError, Publish, PublishError, ScheduleError, Spoke, Timestamp,
    command::closed,
    query::Query,
    write::{Write, surprising},
};
use crate::{
    event::{Append, EventId, Fault, code},
    wire::Answer,
};

/// The last millisecond of the year 9999: databases know no later date.
const LAST: i64 = 253_402_300_799_999;

/// When an event is to be published.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use eventflow::spoke::Schedule;
///
/// let soon = Schedule::after(Duration::from_secs(60));
/// let then = Schedule::at(SystemTime::now() + Duration::from_secs(60));
/// let that = Schedule::at(4_102_444_800_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule(When);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    At(Timestamp),
    After(Duration),
}

impl Schedule {
    /// At this moment: a `SystemTime`, or milliseconds since 1970.
    #[must_use]
    pub fn at(moment: impl Into<Timestamp>) -> Self {
        Self(When::At(moment.into()))
    }

    /// So long after the call, by the clock of this machine.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self(When::After(delay))
    }

    /// In milliseconds since 1970, if that is a date to come.
    fn due(self, now: Timestamp) -> Result<i64, ScheduleError> {
        let now = now.as_millis();
        let due = match self.0 {
            When::At(moment) => moment.as_millis(),
            When::After(delay) => {
                let delay = i64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
                now.saturating_add(delay)
            }
        };
        if due < now {
            return Err(ScheduleError::InvalidDate {
                reason: "is past: give one to come, or publish the event",
            });
        }
        if due > LAST {
            return Err(ScheduleError::InvalidDate { reason: "is after the year 9999: give one before" });
        }
        Ok(due)
    }
}

impl From<SystemTime> for Schedule {
    fn from(moment: SystemTime) -> Self {
        Self::at(moment)
    }
}

/// A schedule that the hub keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scheduled {
    /// The event's id, given or made: what [`Spoke::cancel`] takes.
    pub id: EventId,
    /// When it is published, or was, in milliseconds since 1970.
    pub due: i64,
    /// False: it was scheduled so already.
    pub fresh: bool,
}

impl Spoke {
    /// Stores an event now and has it published once at its time, or as soon after it as a hub is up, never before.
    /// Only then do subscribers, consumers and waits get it.
    ///
    /// Like a publish it is sent again, under the same id and for the same date, after a lost link or a refusal for
    /// now. Give an id to be able to repeat the call: the same id, content and date is the same schedule.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use eventflow::spoke::{Publish, Schedule, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let reminder = Publish::new("orders", "reminded", "order-1");
    /// let scheduled = spoke.schedule(reminder, Schedule::after(Duration::from_secs(3600))).await?;
    /// spoke.cancel(&scheduled.id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ScheduleError`]: a date that is past or after the year 9999 at once, else as [`Spoke::publish`].
    pub async fn schedule(
        &self,
        publish: Publish,
        when: impl Into<Schedule>,
    ) -> Result<Scheduled, ScheduleError> {
        self.schedule_in_place_of(None, publish, when.into()).await
    }

    /// Schedules an event in the place of another one that hasn't run: that one goes and this one comes in one transaction, or
    /// nothing is done. It may have the same id, to come at another time or with other content. Said again, as after a lost
    /// link, it changes nothing.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use eventflow::spoke::{Publish, Schedule, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let reminder = Publish::new("orders", "reminded", "order-1").id("reminder-1");
    /// spoke.reschedule("reminder-1", reminder, Schedule::after(Duration::from_secs(7200))).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Spoke::schedule`]; besides `E_EVENTFLOW_SCHEDULE_NOT_FOUND` and `E_EVENTFLOW_SCHEDULE_EXECUTED` as
    /// [`Spoke::cancel`], and then nothing is scheduled.
    pub async fn reschedule(
        &self,
        old: &str,
        publish: Publish,
        when: impl Into<Schedule>,
    ) -> Result<Scheduled, ScheduleError> {
        let old = EventId::parse(old).map_err(PublishError::from)?;
        self.schedule_in_place_of(Some(old), publish, when.into()).await
    }

    async fn schedule_in_place_of(
        &self,
        replaces: Option<EventId>,
        publish: Publish,
        when: Schedule,
    ) -> Result<Scheduled, ScheduleError> {
        let due = when.due(Timestamp::now())?;
        let (Append { event, expect }, deadline) = publish.check(|| self.new_id())?;
        if expect.is_some() {
            let text = "a schedule takes no `expecting`: how a log ends at its time nobody knows before";
            return Err(PublishError::Refused(Fault::refused(code::UNSUPPORTED, text)).into());
        }
        let id = event.id.clone();
        match self.write(Write::Schedule { due, event, replaces }, deadline).await?.await {
            Ok(Ok(Answer::Scheduled { due, fresh })) => Ok(Scheduled { id, due, fresh }),
            Ok(Ok(other)) => Err(PublishError::Refused(surprising(&other)).into()),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(PublishError::Closed(closed()).into()),
        }
    }

    /// Removes a schedule that hasn't run, and its event with it.
    ///
    /// After a lost link it is asked again. If the schedule isn't there any more then, it counts as cancelled: most
    /// likely the first request did it.
    ///
    /// # Errors
    /// [`ChangeError`]; its code is `E_EVENTFLOW_SCHEDULE_NOT_FOUND` if no such event is scheduled and
    /// `E_EVENTFLOW_SCHEDULE_EXECUTED` if it ran.
    pub async fn cancel(&self, id: &str) -> Result<(), ChangeError> {
        self.inner.fleet.change(Query::Cancel(EventId::parse(id)?)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::code;

    #[test]
    fn a_date_lies_between_now_and_the_year_9999() {
        let now = Timestamp::from(1_750_000_000_000);
        assert_eq!(Schedule::at(1_750_000_000_000).due(now), Ok(1_750_000_000_000));
        assert_eq!(Schedule::after(Duration::ZERO).due(now), Ok(1_750_000_000_000));
        assert_eq!(Schedule::after(Duration::from_micros(1)).due(now), Ok(1_750_000_000_001));
        assert_eq!(Schedule::at(LAST).due(now), Ok(LAST));
        for wrong in [
            Schedule::at(1_749_999_999_999),
            Schedule::at(0),
            Schedule::at(-1),
            Schedule::at(LAST + 1),
            Schedule::after(Duration::MAX),
            SystemTime::UNIX_EPOCH.into(),
        ] {
            assert_eq!(wrong.due(now).unwrap_err().code(), code::SCHEDULE_INVALID_DATE, "{wrong:?}");
        }
    }
}
