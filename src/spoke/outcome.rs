//! How an event ended: waited for, or looked at.

use std::time::Duration;

use super::{ReadError, Spoke, WaitError, command::Wanted, query::Query, wait::looked, write::surprising};
use crate::{
    event::{EventId, Group},
    wire::{Answer, Ended},
};

impl Spoke {
    /// Waits for the outcome of an event: `success`, `dead` with its error, or `expired`. It waits as
    /// [`Spoke::wait`] does.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let ended = spoke.outcome("01K0EXAMPLE", Duration::from_secs(10)).await?;
    /// println!("{} {}", ended.state, ended.error);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] if there was none in time, [`WaitError::NotFound`] if there is no such event.
    pub async fn outcome(&self, id: &str, timeout: Duration) -> Result<Ended, WaitError> {
        self.outcome_in(None, id, timeout).await
    }

    /// The outcome of an event, if it has one by now.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// match spoke.outcome_now("01K0EXAMPLE").await? {
    ///     Some(ended) => println!("{}", ended.state),
    ///     None => println!("it is still to be done"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ReadError::NotFound`] if there is no such event, else why it couldn't be read.
    pub async fn outcome_now(&self, id: &str) -> Result<Option<Ended>, ReadError> {
        self.outcome_now_in(None, id).await
    }

    pub(super) async fn outcome_in(
        &self,
        group: Option<Group>,
        id: &str,
        timeout: Duration,
    ) -> Result<Ended, WaitError> {
        let wanted = Wanted::Outcome(EventId::parse(id)?, group.clone());
        if timeout.is_zero() {
            let (what, named) = (wanted.to_string(), Some(id.to_owned()));
            let now = self.outcome_now_in(group, id).await;
            let now = now.map_err(|error| looked(error, what.clone(), named))?;
            return now.ok_or(WaitError::TimedOut { what, waited: timeout });
        }
        match self.inner.fleet.wait(wanted, timeout, Some(id.to_owned())).await?.answer {
            Answer::Outcome(Some(ended)) => Ok(*ended),
            other => Err(WaitError::Refused(surprising(&other))),
        }
    }

    pub(super) async fn outcome_now_in(
        &self,
        group: Option<Group>,
        id: &str,
    ) -> Result<Option<Ended>, ReadError> {
        match self.inner.fleet.query(Query::Outcome(EventId::parse(id)?, group)).await?.answer {
            Answer::Outcome(ended) => Ok(ended.map(|ended| *ended)),
            other => Err(ReadError::Refused(surprising(&other))),
        }
    }
}
