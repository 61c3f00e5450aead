//! Several events, published together or not at all.

use super::{
    Publish, PublishError, Spoke,
    command::closed,
    write::{Write, surprising},
};
use crate::{
    event::{Append, Fault, code},
    wire::{Answer, MOST_EVENTS, Published},
};

/// The verb, the number and the separators of a batch's record, at most.
const FRAME: u64 = 32;

/// Events that are stored together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Batch {
    events: Vec<Append>,
    /// The bytes of their JSON.
    json: u64,
}

impl Batch {
    pub(super) fn new(events: Vec<Append>) -> Self {
        let mut counter = Counter(0);
        // A counter takes everything, and checked data is JSON; if one ever weren't, the hub would refuse it.
        if let Err(error) = serde_json::to_writer(&mut counter, &events) {
            tracing::error!(%error, "a batch can't be written as JSON");
        }
        Self { events, json: counter.0 }
    }

    pub(super) fn events(&self) -> &[Append] {
        &self.events
    }

    pub(super) fn into_events(self) -> Vec<Append> {
        self.events
    }

    /// The bytes of its record, at most.
    pub(super) fn record_bytes(&self) -> u64 {
        self.json.saturating_add(FRAME)
    }
}

/// Counts the bytes that are written to it.
struct Counter(u64);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Spoke {
    /// Publishes up to 1,000 events together: all of them or, if one is refused, none. The answers stand in the order
    /// of the events; no events, no answers. Each event keeps the id that it was given or that is made for it, and
    /// what a lost link leaves in doubt is sent again under the same ids, until the shortest of their deadlines.
    ///
    /// ```no_run
    /// use eventflow::spoke::{Publish, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let order = Publish::new("orders", "created", "order-1").id("order-1-created");
    /// let bill = Publish::new("bills", "drawn", "bill-1").rid("order-1-created");
    /// let published = spoke.publish_all(vec![order, bill]).await?;
    /// assert!(published[0].seq < published[1].seq);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An event may [expect](Publish::expecting) how its log ends; those before it in the batch count. So several events
    /// are appended to one log under the expectation of the first:
    ///
    /// ```no_run
    /// use eventflow::{event::Expect, spoke::{Publish, Spoke}};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let log = spoke.log("orders", "order-1").collect(1_000).await?;
    /// let paid = Publish::new("orders", "paid", "order-1").expecting(Expect::last_of(&log));
    /// spoke.publish_all(vec![paid, Publish::new("orders", "closed", "order-1")]).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`PublishError`] of the event that is refused, whose text names it, or of the batch: nothing is sent if there
    /// are more than 1,000 events or if the hub's limits on one event or one record don't allow them.
    pub async fn publish_all(&self, batch: Vec<Publish>) -> Result<Vec<Published>, PublishError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        if batch.len() > MOST_EVENTS {
            let text = format!("the batch has {} events, at most {MOST_EVENTS} may be", batch.len());
            return Err(PublishError::Refused(Fault::refused(code::INVALID_BATCH, text)));
        }
        let deadline = batch.iter().filter_map(|publish| publish.deadline).min();
        let checked = batch.into_iter().map(|publish| Ok(publish.check(|| self.new_id())?.0));
        let events = checked.collect::<Result<Vec<_>, PublishError>>()?;
        let count = events.len();
        match self.write(Write::Batch(Batch::new(events)), deadline).await?.await {
            Ok(Ok(Answer::Batch(published))) if published.len() == count => Ok(published),
            Ok(Ok(other)) => Err(PublishError::Refused(surprising(&other))),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(PublishError::Closed(closed())),
        }
    }
}
