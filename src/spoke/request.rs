//! Publishing to wait for what comes of it: an answer, or the outcome.

use std::time::Duration;

use tokio::time::Instant;

use super::{Publish, RequestError, Spoke, Wait};
use crate::{
    event::{Event, EventId, Group},
    wire::{Ended, Published},
};

/// What is left for a wait when its publish took all the time.
const LAST_LOOK: Duration = Duration::from_millis(1);

impl Spoke {
    /// Publishes an event and waits for the first answer to it: an event whose `rid` is its id, as
    /// [`Spoke::reply`] and [`Publish::reply_to`] make it. `timeout` is for both together.
    ///
    /// The answer can't be missed: it counts as well if it was there before the wait.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use eventflow::spoke::{Publish, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let question = Publish::new("stock", "asked", "article-3");
    /// let answer = spoke.request(question, Duration::from_secs(5)).await?;
    /// println!("{}", answer.data);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RequestError`] says whether the event was published.
    pub async fn request(&self, publish: Publish, timeout: Duration) -> Result<Event, RequestError> {
        let (id, published, rest) = self.publish_within(publish, timeout).await?;
        let answer = self.wait(Wait::answer_to(id.to_string()).timeout(rest)).await;
        answer.map_err(|error| RequestError::Unanswered { id, published, error })
    }

    /// Publishes an event and waits for its outcome: that a consumer acked it, that it failed for good, or that it
    /// expired. `timeout` is for both together.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use eventflow::spoke::{Publish, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let order = Publish::new("orders", "created", "order-1");
    /// let (published, ended) = spoke.publish_and_wait(order, Duration::from_secs(30)).await?;
    /// println!("number {} ended as {}", published.seq, ended.state);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RequestError`] says whether the event was published. That a consumer failed is no error but the outcome.
    pub async fn publish_and_wait(
        &self,
        publish: Publish,
        timeout: Duration,
    ) -> Result<(Published, Ended), RequestError> {
        self.publish_and_wait_in(None, publish, timeout).await
    }

    pub(super) async fn publish_and_wait_in(
        &self,
        group: Option<Group>,
        publish: Publish,
        timeout: Duration,
    ) -> Result<(Published, Ended), RequestError> {
        let (id, published, rest) = self.publish_within(publish, timeout).await?;
        match self.outcome_in(group, id.as_str(), rest).await {
            Ok(ended) => Ok((published, ended)),
            Err(error) => Err(RequestError::Unanswered { id, published, error }),
        }
    }

    /// Publishes; says how much of the time is left.
    async fn publish_within(
        &self,
        publish: Publish,
        timeout: Duration,
    ) -> Result<(EventId, Published, Duration), RequestError> {
        let began = Instant::now();
        let pending = self.publish_later(publish.within(timeout)).await?;
        let id = pending.id().clone();
        let published = pending.await?;
        Ok((id, published, timeout.saturating_sub(began.elapsed()).max(LAST_LOOK)))
    }
}
