//! Publishing: what to publish, and the answer that is awaited.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytestring::ByteString;

use super::{
    PublishError, Spoke,
    command::closed,
    write::{Answered, Write, surprising},
};
use crate::{
    event::{Append, Data, Domain, Event, EventId, Expect, InvalidData, Name, NewEvent, Pid},
    wire::{Answer, Published},
};

/// An event to publish.
///
/// ```
/// use eventflow::spoke::Publish;
///
/// # fn main() -> Result<(), eventflow::event::InvalidData> {
/// let publish = Publish::new("orders", "created", "order-1").data(&serde_json::json!({ "total": 12 }))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "an event is published by `Spoke::publish`"]
pub struct Publish {
    id: Option<ByteString>,
    domain: ByteString,
    name: ByteString,
    pid: ByteString,
    rid: Option<ByteString>,
    data: Option<Data>,
    expect: Option<Expect>,
    pub(super) deadline: Option<Duration>,
}

impl Publish {
    /// An event `name` of the process `pid` in `domain`. The texts are checked when it is published.
    pub fn new(
        domain: impl Into<ByteString>,
        name: impl Into<ByteString>,
        pid: impl Into<ByteString>,
    ) -> Self {
        Self {
            id: None,
            domain: domain.into(),
            name: name.into(),
            pid: pid.into(),
            rid: None,
            data: None,
            expect: None,
            deadline: None,
        }
    }

    /// An event `name` that answers `event`: its `rid` is that event's id, and it belongs to the same process,
    /// unless [`domain`](Publish::domain) and [`pid`](Publish::pid) say otherwise.
    ///
    /// ```no_run
    /// use eventflow::{event::Event, spoke::{Publish, Spoke}};
    ///
    /// # async fn example(spoke: Spoke, event: Event) -> Result<(), Box<dyn std::error::Error>> {
    /// let answer = serde_json::json!({ "carrier": "by sea" });
    /// spoke.publish(Publish::reply_to(&event, "shipped").data(&answer)?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn reply_to(event: &Event, name: impl Into<ByteString>) -> Self {
        let (domain, pid) = (event.domain.as_bytestring().clone(), event.pid.as_bytestring().clone());
        Self::new(domain, name, pid).rid(event.id.as_bytestring().clone())
    }

    /// In this domain instead.
    pub fn domain(mut self, domain: impl Into<ByteString>) -> Self {
        self.domain = domain.into();
        self
    }

    /// Of this process instead.
    pub fn pid(mut self, pid: impl Into<ByteString>) -> Self {
        self.pid = pid.into();
        self
    }

    /// The event's id; without it a ULID of 26 characters is made. Publishing the same id and content again
    /// is the same publish.
    pub fn id(mut self, id: impl Into<ByteString>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The id of the event that this one answers; it must be stored.
    pub fn rid(mut self, rid: impl Into<ByteString>) -> Self {
        self.rid = Some(rid.into());
        self
    }

    /// The payload, as any serializable value; without one it is `null`.
    ///
    /// # Errors
    /// [`InvalidData`] if the value can't be JSON or nests too deep.
    pub fn data<T: serde::Serialize + ?Sized>(mut self, value: &T) -> Result<Self, InvalidData> {
        self.data = Some(Data::from_value(value)?);
        Ok(self)
    }

    /// The payload, as JSON text.
    ///
    /// # Errors
    /// [`InvalidData`] if the text isn't compact JSON or nests too deep.
    pub fn data_text(mut self, json: impl Into<ByteString>) -> Result<Self, InvalidData> {
        self.data = Some(Data::parse(json)?);
        Ok(self)
    }

    /// Only if the log of its process ends so; else [`PublishError::LogConflict`], and nothing is stored. Of an event
    /// that is stored already nothing is expected: publishing it again is the same publish.
    ///
    /// ```no_run
    /// use eventflow::{event::Expect, spoke::{Publish, PublishError, Spoke}};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let log = spoke.log("accounts", "account-7").collect(1_000).await?;
    /// let withdrawn = Publish::new("accounts", "withdrawn", "account-7").expecting(Expect::last_of(&log));
    /// match spoke.publish(withdrawn).await {
    ///     Err(PublishError::LogConflict(conflict)) => println!("somebody was faster: {:?}", conflict.last),
    ///     done => println!("{}", done?.timestamp),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect = Some(expect);
        self
    }

    /// How long to go on trying; by default
    /// [`SpokeConfig::publish_deadline`](super::SpokeConfig::publish_deadline).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// With a deadline of at most `timeout`.
    pub(super) fn within(self, timeout: Duration) -> Self {
        let deadline = self.deadline.map_or(timeout, |deadline| deadline.min(timeout));
        self.deadline(deadline)
    }

    /// Checks everything; `id` makes an id if none was given.
    pub(super) fn check(
        self,
        id: impl FnOnce() -> String,
    ) -> Result<(Append, Option<Duration>), PublishError> {
        self.expect.as_ref().map_or(Ok(()), Expect::check)?;
        let event = NewEvent {
            id: EventId::parse(self.id.unwrap_or_else(|| id().into()))?,
            domain: Domain::parse(self.domain)?,
            name: Name::parse(self.name)?,
            pid: Pid::parse(self.pid)?,
            rid: self.rid.map(EventId::parse).transpose()?,
            data: self.data.unwrap_or_else(|| Data::from_stored("null")),
        };
        Ok((Append { event, expect: self.expect }, self.deadline))
    }
}

impl From<NewEvent> for Publish {
    /// An event that is checked already.
    fn from(event: NewEvent) -> Self {
        Self {
            id: Some(event.id.as_bytestring().clone()),
            domain: event.domain.as_bytestring().clone(),
            name: event.name.as_bytestring().clone(),
            pid: event.pid.as_bytestring().clone(),
            rid: event.rid.map(|rid| rid.as_bytestring().clone()),
            data: Some(event.data),
            expect: None,
            deadline: None,
        }
    }
}

/// A publish on its way: a future of its answer. Dropping it doesn't take the publish back.
#[derive(Debug)]
#[must_use = "the answer says whether the event is stored"]
pub struct Pending {
    pub(super) id: EventId,
    pub(super) answer: Answered,
}

impl Pending {
    /// The event's id, given or made.
    #[must_use]
    pub fn id(&self) -> &EventId {
        &self.id
    }
}

impl Future for Pending {
    type Output = Result<Published, PublishError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(context).map(|answered| match answered {
            Ok(Ok(Answer::Published(published))) => Ok(published),
            Ok(Ok(other)) => Err(PublishError::Refused(surprising(&other))),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(PublishError::Closed(closed())),
        })
    }
}

impl Spoke {
    /// Publishes an event and waits until the hub has committed it.
    ///
    /// Call it many times at once to keep the link busy: publishes are pipelined within the hub's window, in
    /// the order of the calls. What the hub refuses for now, and what a lost link leaves in doubt, is sent
    /// again under the same id until the publish's deadline.
    ///
    /// # Errors
    /// [`PublishError`]: final refusals at once, else the last fault at the deadline.
    pub async fn publish(&self, publish: Publish) -> Result<Published, PublishError> {
        self.publish_later(publish).await?.await
    }

    /// Hands an event over and returns its answer as a future: to have many in flight in a known order.
    /// Waits while the publish buffer is full.
    ///
    /// # Errors
    /// [`PublishError`] if the event breaks a rule, there is no room until its deadline or the spoke is
    /// closed.
    pub async fn publish_later(&self, publish: Publish) -> Result<Pending, PublishError> {
        let (event, deadline) = publish.check(|| self.new_id())?;
        let id = event.event.id.clone();
        Ok(Pending { id, answer: self.write(Write::Publish(event), deadline).await? })
    }

    /// Publishes an event that answers `event`, that is, with its id as `rid`; see [`Publish::reply_to`] for one
    /// of the same process.
    ///
    /// ```no_run
    /// use eventflow::{event::Event, spoke::{Publish, Spoke}};
    ///
    /// # async fn example(spoke: Spoke, event: Event) -> Result<(), Box<dyn std::error::Error>> {
    /// spoke.reply(&event, Publish::new("parcels", "packed", "parcel-7")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Spoke::publish`].
    pub async fn reply(&self, event: &Event, publish: Publish) -> Result<Published, PublishError> {
        self.publish(publish.rid(event.id.as_bytestring().clone())).await
    }

    /// Stores an event without publishing it: it stands in its log, and nobody is told. Publishing the same id and
    /// content later publishes it. In the answer `seq` is 0.
    ///
    /// ```no_run
    /// use eventflow::spoke::{Publish, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let draft = Publish::new("orders", "created", "order-1").id("draft-1");
    /// spoke.persist(draft.clone()).await?;
    /// spoke.publish(draft).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Spoke::publish`]; it is sent again in the same way.
    pub async fn persist(&self, publish: Publish) -> Result<Published, PublishError> {
        let (event, deadline) = publish.check(|| self.new_id())?;
        let id = event.event.id.clone();
        Pending { id, answer: self.write(Write::Persist(event), deadline).await? }.await
    }
}
