//! Changes to what is stored: associations and deletion.

use super::{ChangeError, Spoke, query::Query, write::surprising};
use crate::{
    event::{Domain, Eid, EventId, Pid},
    wire::{self, Answer, Deletion},
};

/// Something besides its process that an event belongs to, and by whose log it is then found.
///
/// ```
/// use eventflow::spoke::Association;
///
/// let parcel = Association::child_process("parcels", "parcel-7");
/// let customer = Association::entity("customer-4");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Association(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    ChildProcess { domain: String, cpid: String },
    Entity { eid: String },
}

impl Association {
    /// A child process, with its domain. The texts are checked when it is used.
    #[must_use]
    pub fn child_process(domain: impl Into<String>, cpid: impl Into<String>) -> Self {
        Self(Kind::ChildProcess { domain: domain.into(), cpid: cpid.into() })
    }

    /// An entity.
    #[must_use]
    pub fn entity(eid: impl Into<String>) -> Self {
        Self(Kind::Entity { eid: eid.into() })
    }

    fn check(self) -> Result<wire::Association, ChangeError> {
        Ok(match self.0 {
            Kind::ChildProcess { domain, cpid } => {
                wire::Association::ChildProcess { domain: Domain::parse(domain)?, cpid: Pid::parse(cpid)? }
            }
            Kind::Entity { eid } => wire::Association::Entity { eid: Eid::parse(eid)? },
        })
    }
}

impl Spoke {
    /// Associates an event with a child process or an entity, by which [`Spoke::child_log`] and
    /// [`Spoke::entity_log`] find it. To do it again changes nothing; after a lost link it is asked again.
    ///
    /// ```no_run
    /// use eventflow::spoke::{Association, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// spoke.associate("01K0EXAMPLE", Association::entity("customer-4")).await?;
    /// let of_customer = spoke.entity_log("customer-4").collect(100).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ChangeError::NotFound`] if there is no such event.
    pub async fn associate(&self, id: &str, with: Association) -> Result<(), ChangeError> {
        let query = Query::Associate(EventId::parse(id)?, with.check()?);
        self.inner.fleet.change(query).await.map(drop)
    }

    /// Takes an association back. If there is none, nothing changes; after a lost link it is asked again.
    ///
    /// ```no_run
    /// use eventflow::spoke::{Association, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// spoke.dissociate("01K0EXAMPLE", Association::entity("customer-4")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ChangeError::NotFound`] if there is no such event.
    pub async fn dissociate(&self, id: &str, from: Association) -> Result<(), ChangeError> {
        let query = Query::Dissociate(EventId::parse(id)?, from.check()?);
        self.inner.fleet.change(query).await.map(drop)
    }

    /// Deletes an event, with its outcome, attempts, schedule and associations; events that answered it lose their
    /// `rid`. What a consumer holds isn't recalled: its ack is then refused.
    ///
    /// *In doubt*: if the link is lost before the answer, the event may be deleted or not, so the hub is asked again
    /// on the next link. Is there no such event then, it counts as deleted, most likely by the first request. If there
    /// is no answer in time at all, [`ChangeError::TimedOut`] says so: delete it again, and read
    /// [`ChangeError::NotFound`] as done.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// spoke.delete("01K0EXAMPLE").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ChangeError::NotFound`] if there is no such event; `E_EVENTFLOW_NOT_ALLOWED` if the hub's settings forbid it.
    pub async fn delete(&self, id: &str) -> Result<(), ChangeError> {
        let what = Deletion::Event { id: EventId::parse(id)? };
        self.inner.fleet.change(Query::Delete(what)).await.map(drop)
    }

    /// Deletes the log of a process, as it stands when the deletion begins, and says how many events that were. A log
    /// without events counts 0.
    ///
    /// What is scheduled and hasn't run stands in no log and stays: [`Spoke::cancel`] removes it.
    ///
    /// *In doubt*: if the link is lost before the answer, it may be done, or in part, or not, and isn't asked again, since
    /// that would take what was published meanwhile too: [`ChangeError::LinkLost`].
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let deleted = spoke.delete_log("orders", "order-1").await?;
    /// println!("{deleted} events are gone");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `E_EVENTFLOW_NOT_ALLOWED` if the hub's settings forbid it; [`ChangeError::LinkLost`].
    pub async fn delete_log(&self, domain: &str, pid: &str) -> Result<u64, ChangeError> {
        let what = Deletion::Log { domain: Domain::parse(domain)?, pid: Pid::parse(pid)? };
        match self.inner.fleet.change(Query::Delete(what)).await? {
            Answer::Deleted(count) => Ok(count),
            other => Err(ChangeError::Refused(surprising(&other))),
        }
    }
}
