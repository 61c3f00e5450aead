//! Events that a program has put into the hub's database itself, published at once.

use super::{ChangeError, Spoke, query::Query, write::surprising};
use crate::{
    event::{EventId, Fault, code},
    wire::{Answer, MOST_EVENTS, Nudged},
};

impl Spoke {
    /// Has the hub publish events now that this program has put into its database, in a transaction of its own: those of
    /// these ids, at most 1,000, which must be committed. Says how each of them stands, in the order of the ids. Without a
    /// nudge the hub finds them by itself, some 15 s after their commit; so a program that ends between its commit and
    /// the nudge loses nothing. `docs/transactions.md` has the rows.
    ///
    /// After a lost link it is asked again: what is `published` then was most likely taken the first time.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// // After the application's own `COMMIT`:
    /// for event in spoke.nudge(["order-1-created"]).await? {
    ///     println!("{}: {}", event.id, event.state);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ChangeError`] if an id breaks the rules, there are too many, or the hub refuses or doesn't answer in time.
    pub async fn nudge<I>(&self, ids: I) -> Result<Vec<Nudged>, ChangeError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let parse = |id: I::Item| EventId::parse(id.as_ref().to_owned());
        let ids: Vec<EventId> = ids.into_iter().map(parse).collect::<Result<_, _>>()?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        if ids.len() > MOST_EVENTS {
            let text = format!("the nudge names {} events, at most {MOST_EVENTS} may be", ids.len());
            return Err(ChangeError::Refused(Fault::refused(code::INVALID_BATCH, text)));
        }
        let count = ids.len();
        match self.inner.fleet.change(Query::Nudge(ids)).await? {
            Answer::Nudged { events, .. } if events.len() == count => Ok(events),
            other => Err(ChangeError::Refused(surprising(&other))),
        }
    }

    /// The same for all that programs have put there and that is old enough (the hub's `collect.age`, 10 s): the hub
    /// looks now, and says how many it has published.
    ///
    /// # Errors
    /// [`ChangeError`] if the hub refuses or doesn't answer in time.
    pub async fn nudge_all(&self) -> Result<u64, ChangeError> {
        match self.inner.fleet.change(Query::Nudge(Vec::new())).await? {
            Answer::Nudged { taken, .. } => Ok(taken),
            other => Err(ChangeError::Refused(surprising(&other))),
        }
    }
}
