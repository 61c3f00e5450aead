//! Publishing: what to publish, and the answer that is awaited.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytestring::ByteString;
use tokio::sync::oneshot;

use super::{PublishError, command::closed};
use crate::{
    event::{Data, Domain, EventId, InvalidData, Name, NewEvent, Pid},
    wire::Published,
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
    deadline: Option<Duration>,
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
            deadline: None,
        }
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

    /// How long to go on trying; by default
    /// [`SpokeConfig::publish_deadline`](super::SpokeConfig::publish_deadline).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Checks everything; `id` makes an id if none was given.
    pub(super) fn check(
        self,
        id: impl FnOnce() -> String,
    ) -> Result<(NewEvent, Option<Duration>), PublishError> {
        let event = NewEvent {
            id: EventId::parse(self.id.unwrap_or_else(|| id().into()))?,
            domain: Domain::parse(self.domain)?,
            name: Name::parse(self.name)?,
            pid: Pid::parse(self.pid)?,
            rid: self.rid.map(EventId::parse).transpose()?,
            data: self.data.unwrap_or_else(|| Data::from_stored("null")),
        };
        Ok((event, self.deadline))
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
            deadline: None,
        }
    }
}

/// A publish on its way: a future of its answer. Dropping it doesn't take the publish back.
#[derive(Debug)]
#[must_use = "the answer says whether the event is stored"]
pub struct Pending {
    pub(super) id: EventId,
    pub(super) answer: oneshot::Receiver<Result<Published, PublishError>>,
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
        Pin::new(&mut self.answer)
            .poll(context)
            .map(|answer| answer.unwrap_or_else(|_| Err(PublishError::Closed(closed()))))
    }
}
