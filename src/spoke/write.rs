//! What a handle has the hub store: one event or several, now or later; sent until it is answered.

use std::time::Duration;

use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    time::Instant,
};

use super::{
    PublishError, Spoke,
    batch::Batch,
    command::{Answering, deadline_in},
};
use crate::{
    event::{Append, EventId, Fault, NewEvent, code},
    wire::{Answer, LinkLimits, Req, Request},
};

/// What an event counts in the publish buffer besides its own bytes.
const OVERHEAD: usize = 512;

/// A request that stores something. Under the same ids it may be sent again at any time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    Publish(Append),
    Persist(Append),
    Schedule { due: i64, event: NewEvent, replaces: Option<EventId> },
    Batch(Batch),
}

impl Write {
    fn events(&self) -> impl Iterator<Item = &NewEvent> {
        let (one, several) = match self {
            Write::Publish(append) | Write::Persist(append) => (Some(&append.event), &[][..]),
            Write::Schedule { event, .. } => (Some(event), &[][..]),
            Write::Batch(batch) => (None, batch.events()),
        };
        one.into_iter().chain(several.iter().map(|append| &append.event))
    }

    /// The process that it belongs to; of a batch that of its first event.
    pub(super) fn pid(&self) -> &str {
        self.events().next().map_or("", |event| event.pid.as_str())
    }

    /// The bytes that it counts for in the hub's window.
    pub(super) fn weight(&self) -> usize {
        self.events().map(NewEvent::weight).sum()
    }

    /// Why a hub with these limits wouldn't take it, or would cut the link of who sends it.
    pub(super) fn beyond(&self, limits: &LinkLimits) -> Option<Fault> {
        let most = limits.data_bytes;
        if let Some(event) = self.events().find(|event| event.data.len() as u64 > most) {
            let (id, len) = (&event.id, event.data.len());
            let text = format!(
                "the data of event {id} has {len} bytes, the hub takes {most}: store it elsewhere and publish where"
            );
            return Some(Fault::refused(code::EVENT_TOO_LARGE, text));
        }
        let Write::Batch(batch) = self else { return None };
        let (bytes, most) = (batch.record_bytes(), limits.record_bytes);
        (bytes > most).then(|| {
            let text =
                format!("the batch takes {bytes} bytes, the hub takes {most}: publish fewer events at once");
            Fault::refused(code::RECORD_TOO_LONG, text)
        })
    }

    pub(super) fn request(&self, req: Req) -> Request {
        match self.clone() {
            Write::Publish(Append { event, expect }) => Request::Publish { req, event, expect },
            Write::Persist(Append { event, expect }) => Request::Persist { req, event, expect },
            Write::Schedule { due, event, replaces } => Request::Schedule { req, due, event, replaces },
            Write::Batch(batch) => Request::Batch { req, events: batch.into_events() },
        }
    }
}

#[derive(Debug)]
pub(super) struct WriteCommand {
    pub(super) write: Write,
    pub(super) deadline: Instant,
    /// The time from the call to the deadline, for the error.
    pub(super) waited: Duration,
    /// Its part of the publish buffer, given back by its drop when it is answered.
    #[expect(dead_code, reason = "held for its drop")]
    pub(super) room: Option<OwnedSemaphorePermit>,
    /// Why it isn't the first try, if it isn't.
    pub(super) last: Option<Fault>,
    pub(super) answer: Answering<Answer, PublishError>,
}

/// The answer of a write, to come.
pub(super) type Answered = oneshot::Receiver<Result<Answer, PublishError>>;

impl Spoke {
    /// Hands it over to the link's task, once the publish buffer has room.
    pub(super) async fn write(
        &self,
        write: Write,
        deadline: Option<Duration>,
    ) -> Result<Answered, PublishError> {
        let waited = deadline.unwrap_or(self.inner.config.publish_deadline);
        let deadline = deadline_in(waited);
        let bytes = write.weight() + OVERHEAD * write.events().count();
        let cost = u32::try_from(bytes.min(self.inner.config.publish_buffer.max(1))).unwrap_or(u32::MAX);
        let (answer, answered) = oneshot::channel();
        let handing_over = async {
            let room = self.inner.room.clone().acquire_many_owned(cost).await.ok();
            let command = WriteCommand { write, deadline, waited, room, last: None, answer };
            self.inner.fleet.write(command).await
        };
        match tokio::time::timeout_at(deadline, handing_over).await {
            Ok(Ok(())) => Ok(answered),
            Ok(Err(_)) => Err(PublishError::Closed(self.inner.fleet.closed())),
            Err(_) => Err(PublishError::TimedOut { waited, last: None }),
        }
    }
}

/// What is said of an answer of another form than its request has.
pub(super) fn surprising(answer: &Answer) -> Fault {
    let text = format!("the hub's answer has an unexpected form, {answer:?}: update the hub or this client");
    Fault::refused(code::INVALID_RECORD, text)
}
