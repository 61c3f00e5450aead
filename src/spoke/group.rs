//! Groups of consumers: how they stand, and changes to them.

use std::time::Duration;

use super::{
    DeadReader, GroupError, Publish, ReadError, RequestError, Spoke, WaitError, query::Query,
    write::surprising,
};
use crate::{
    event::{EventId, Group, InvalidText, Pattern, code},
    wire::{
        Answer, Backlog, BacklogQuery, Ended, GroupAction, GroupChanged, GroupSettings, Published, Redrive,
        StartAt, retry_ms,
    },
};

/// A handle to a group of consumers: the default one, or one with a name. To make one asks nothing of the hub; a group
/// itself is made by its first consumer, or by [`ConsumerGroup::set`].
///
/// ```no_run
/// use std::time::Duration;
/// use eventflow::spoke::{GroupChange, Spoke};
///
/// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
/// let billing = spoke.group("billing");
/// billing.set(GroupChange::new().max_attempts(8).delay(Duration::from_secs(5))).await?;
/// let stands = billing.backlog().await?;
/// println!("{:?} wait, {} are dead", stands.pending, stands.dead);
/// let again = billing.redrive_all("orders", "*").await?;
/// println!("{again} are tried again");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ConsumerGroup {
    spoke: Spoke,
    /// The default group has none. It is checked at each use.
    name: Option<String>,
}

/// A change of a group's settings; what isn't named stays as it is.
///
/// ```
/// use std::time::Duration;
/// use eventflow::spoke::GroupChange;
///
/// let change = GroupChange::new()
///     .max_attempts(8)
///     .delay(Duration::from_secs(5))
///     .max_delay(Duration::from_secs(600))
///     .dead_letter("failures");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "it is made by `ConsumerGroup::set`"]
pub struct GroupChange(GroupSettings);

impl GroupChange {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// After so many attempts, 1 to 1,000, an event is dead.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.0.max_attempts = Some(attempts);
        self
    }

    /// How long the first retry waits; each further one twice as long, give or take a fifth.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.0.delay = Some(retry_ms(delay));
        self
    }

    /// The longest such wait.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.0.max_delay = Some(retry_ms(delay));
        self
    }

    /// Named groups only: events of one process are handed out one at a time, in the order of the hub; one that waits
    /// for its retry holds back the later ones.
    pub fn key_order(mut self, in_order: bool) -> Self {
        self.0.key_order = Some(in_order);
        self
    }

    /// With `key_order`: a dead event too holds back the later ones of its process, until it is redriven or deleted.
    pub fn dead_blocks(mut self, blocks: bool) -> Self {
        self.0.dead_blocks = Some(blocks);
        self
    }

    /// A dead event is also published as an event of its own, in this domain.
    pub fn dead_letter(mut self, domain: impl Into<String>) -> Self {
        self.0.dead_letter = Some(domain.into());
        self
    }

    /// Dead events are no longer published.
    pub fn no_dead_letter(self) -> Self {
        self.dead_letter("")
    }
}

impl ConsumerGroup {
    /// Changes its settings, and gives those that hold from now on. A named group that isn't there yet is made.
    ///
    /// # Errors
    /// [`GroupError::Refused`] if one is out of range or the hub has too many groups.
    pub async fn set(&self, change: GroupChange) -> Result<GroupSettings, GroupError> {
        Ok(self.change(GroupAction::Set(change.0)).await?.settings.unwrap_or_default())
    }

    /// Named groups only: serves again what was dispatched from there on (all, a [`Timestamp`](super::Timestamp), or after an event), whatever became of it in this group; what is
    /// older and waits is passed over.
    ///
    /// *In doubt*: if the link is lost before the answer, the hub is asked again, and what was served in between is
    /// served once more.
    ///
    /// # Errors
    /// [`GroupError::NotFound`], or `E_EVENTFLOW_NOT_ALLOWED` if the hub's settings forbid it.
    pub async fn seek(&self, start: impl Into<StartAt>) -> Result<(), GroupError> {
        self.change(GroupAction::Seek(start.into())).await.map(drop)
    }

    /// Named groups only: passes over all that waits, and says how many events that were. What consumers hold stays
    /// theirs.
    ///
    /// *In doubt*: if the link is lost before the answer, it may be done or not, and isn't asked again, since that would
    /// pass over what was published meanwhile too: [`GroupError::LinkLost`]. Look at [`ConsumerGroup::backlog`].
    ///
    /// # Errors
    /// As [`ConsumerGroup::seek`]; [`GroupError::LinkLost`].
    pub async fn purge(&self) -> Result<u64, GroupError> {
        Ok(self.change(GroupAction::Purge {}).await?.events)
    }

    /// Named groups only: removes it with its bindings and outcomes.
    ///
    /// *In doubt*: if the link is lost before the answer, it may be done or not, and isn't asked again, since by then
    /// somebody may have made a group of that name anew: [`GroupError::LinkLost`]. Look at [`ConsumerGroup::backlog`].
    ///
    /// # Errors
    /// As [`ConsumerGroup::seek`]; [`GroupError::LinkLost`].
    pub async fn remove(&self) -> Result<(), GroupError> {
        self.change(GroupAction::Remove {}).await.map(drop)
    }

    /// Removes one of its bindings, named by its patterns: nothing is kept for it any more.
    ///
    /// *In doubt*: if the link is lost before the answer, it may be done or not, and isn't asked again, since by then a
    /// consumer that came back may have made it anew: [`GroupError::LinkLost`]. Look at [`ConsumerGroup::backlog`].
    ///
    /// # Errors
    /// As [`ConsumerGroup::seek`]; [`GroupError::LinkLost`]; [`GroupError::Pattern`] if a pattern breaks the rules.
    pub async fn unbind(&self, domain: &str, name: &str) -> Result<(), GroupError> {
        let (domain, name) = (Pattern::parse(domain)?, Pattern::parse(name)?);
        self.change(GroupAction::Unbind { domain, name }).await.map(drop)
    }

    /// How it stands, with its bindings and its connected consumers.
    ///
    /// # Errors
    /// [`GroupError::NotFound`], or why it couldn't be looked at.
    pub async fn backlog(&self) -> Result<Backlog, GroupError> {
        let name = self.name()?;
        let query = BacklogQuery { group: Some(name.map(|name| name.to_string()).unwrap_or_default()) };
        let one = self.spoke.backlogs(self.called(), query).await?.into_iter().next();
        one.ok_or_else(|| GroupError::NotFound { group: self.called().to_owned() })
    }

    /// A reader of its dead events, in the order of the events.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut dead = spoke.group("billing").dead().domain("orders");
    /// while let Some(page) = dead.next_page().await? {
    ///     page.iter().for_each(|dead| println!("{} after {} attempts: {}", dead.id, dead.attempts, dead.error));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn dead(&self) -> DeadReader {
        DeadReader::new(self.spoke.inner.fleet.clone(), self.name(), self.called().to_owned())
    }

    /// Tries a dead event again, in a new round with attempts of its own. An event that an npm spoke claimed and left
    /// is taken back too. False: it isn't dead in this group, so nothing was done; after a lost link also if it
    /// was redriven by the first request.
    ///
    /// # Errors
    /// [`GroupError::EventNotFound`] if there is no such event, else as [`ConsumerGroup::seek`].
    pub async fn redrive(&self, id: &str) -> Result<bool, GroupError> {
        let (group, id) = (self.name()?, Some(EventId::parse(id)?));
        match self.redriven(Redrive { group, id, domain: None, name: None }).await {
            Err(GroupError::Refused(fault)) if fault.code == code::NOT_DEAD => Ok(false),
            redriven => Ok(redriven? > 0),
        }
    }

    /// Tries all its dead events again whose domain and name match these patterns, and says how many they are.
    ///
    /// *In doubt*: if the link is lost before the answer, the hub is asked again, and the number is only of those that
    /// were left by then.
    ///
    /// # Errors
    /// As [`ConsumerGroup::seek`]; [`GroupError::Pattern`] if a pattern breaks the rules.
    pub async fn redrive_all(&self, domain: &str, name: &str) -> Result<u64, GroupError> {
        let (domain, name) = (Some(Pattern::parse(domain)?), Some(Pattern::parse(name)?));
        self.redriven(Redrive { group: self.name()?, id: None, domain, name }).await
    }

    /// Waits for the outcome of an event in this group, as [`Spoke::outcome`] does for the default one.
    ///
    /// # Errors
    /// As [`Spoke::outcome`].
    pub async fn outcome(&self, id: &str, timeout: Duration) -> Result<Ended, WaitError> {
        self.spoke.outcome_in(self.name()?, id, timeout).await
    }

    /// The outcome of an event in this group, if it has one by now.
    ///
    /// # Errors
    /// As [`Spoke::outcome_now`].
    pub async fn outcome_now(&self, id: &str) -> Result<Option<Ended>, ReadError> {
        self.spoke.outcome_now_in(self.name()?, id).await
    }

    /// Publishes an event and waits for its outcome in this group, as [`Spoke::publish_and_wait`] does for the default
    /// one. If no binding of the group matches the event, there will be none.
    ///
    /// # Errors
    /// As [`Spoke::publish_and_wait`]; the group's name is checked before anything is published.
    pub async fn publish_and_wait(
        &self,
        publish: Publish,
        timeout: Duration,
    ) -> Result<(Published, Ended), RequestError> {
        let group = self.name().map_err(|error| RequestError::Publish(error.into()))?;
        self.spoke.publish_and_wait_in(group, publish, timeout).await
    }

    async fn change(&self, action: GroupAction) -> Result<GroupChanged, GroupError> {
        let query = Query::Group(self.name()?, action);
        match self.spoke.inner.fleet.group(self.called(), query).await? {
            Answer::Group(changed) => Ok(*changed),
            other => Err(GroupError::Refused(surprising(&other))),
        }
    }

    async fn redriven(&self, what: Redrive) -> Result<u64, GroupError> {
        match self.spoke.inner.fleet.group(self.called(), Query::Redrive(what)).await? {
            Answer::Redriven(count) => Ok(count),
            other => Err(GroupError::Refused(surprising(&other))),
        }
    }

    fn name(&self) -> Result<Option<Group>, InvalidText> {
        self.name.clone().map(Group::parse).transpose()
    }

    fn called(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl Spoke {
    /// A handle to a named group.
    #[must_use]
    pub fn group(&self, name: impl Into<String>) -> ConsumerGroup {
        ConsumerGroup { spoke: self.clone(), name: Some(name.into()) }
    }

    /// A handle to the default group, whose outcomes npm peers see and make too.
    #[must_use]
    pub fn default_group(&self) -> ConsumerGroup {
        ConsumerGroup { spoke: self.clone(), name: None }
    }

    /// How all groups stand: the default one first, then the others by name. Bindings and consumers are told of one at a
    /// time, by [`ConsumerGroup::backlog`].
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// for stands in spoke.backlog().await? {
    ///     println!("{:?}: {:?} wait, {} are dead", stands.group, stands.pending, stands.dead);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GroupError`]: the hub refuses or doesn't answer in time.
    pub async fn backlog(&self) -> Result<Vec<Backlog>, GroupError> {
        self.backlogs("", BacklogQuery::default()).await
    }

    async fn backlogs(&self, called: &str, query: BacklogQuery) -> Result<Vec<Backlog>, GroupError> {
        match self.inner.fleet.group(called, Query::Backlog(query)).await? {
            Answer::Backlog(backlogs) => Ok(backlogs),
            other => Err(GroupError::Refused(surprising(&other))),
        }
    }
}
