//! Where a replay begins: what a client said, as a number of this hub.

use std::time::Duration;

use super::Around;
use crate::{
    actors::{connection::restart, registry::Head},
    event::{EventId, Fault, Position, code},
    store::EventPlace,
    wire::Since,
};

/// How long an event that is committed takes to be dispatched, at least.
const MOMENT: Duration = Duration::from_millis(1);

/// Two numbers of the hub's sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The reader has all up to here.
    pub after: u64,
    /// All up to here is dispatched, and in the store.
    pub head: u64,
}

impl Around {
    /// What there is to replay.
    ///
    /// # Errors
    /// There is no such event here, or no such position.
    pub(super) async fn span(&self, since: &Since) -> Result<Span, Fault> {
        let head = self.head().await?;
        let after = match since {
            Since::All => 0,
            Since::Time(ms) => before(*ms).min(head),
            Since::Position(position) => self.read_up_to(position, head)?,
            Since::Id(id) => return self.after_event(id, head).await,
        };
        Ok(Span { after, head })
    }

    /// The last number that was dispatched.
    pub(super) async fn head(&self) -> Result<u64, Fault> {
        self.registry.deliver(Head).await.map_err(|_| restart())
    }

    async fn after_event(&self, id: &EventId, mut head: u64) -> Result<Span, Fault> {
        match self.store.place(id).await? {
            EventPlace::Dispatched(hub, after) if hub == self.hub => {
                while head < after {
                    // Committed a moment ago: its dispatch is on its way.
                    tokio::time::sleep(MOMENT).await;
                    head = self.head().await?;
                }
                Ok(Span { after, head })
            }
            EventPlace::Dispatched(hub, _) => Err(Fault::refused(
                code::EVENT_NOT_FOUND,
                format!("the event {id:?} was published at the hub {hub:?}: subscribe there from it on"),
            )),
            EventPlace::Stored => Err(Fault::refused(
                code::EVENT_NOT_FOUND,
                format!(
                    "the event {id:?} is stored but not published yet: nothing comes after it until it is"
                ),
            )),
        }
    }

    fn read_up_to(&self, position: &Position, head: u64) -> Result<u64, Fault> {
        let refused = |text| Err(Fault::refused(code::INVALID_POSITION, text));
        match position.seq(&self.hub) {
            Some(seq) if seq <= head => Ok(seq),
            Some(_) => refused(format!(
                "the position lies beyond all that the hub {:?} has published: was its database set back? Subscribe \
                 from a time or an event",
                self.hub
            )),
            None => {
                let hubs: Vec<_> = position.hubs().map(|hub| hub.as_str()).collect();
                refused(format!(
                    "the position is one of {hubs:?} and says nothing of the hub {:?}: subscribe there, or from a \
                     time or an event",
                    self.hub
                ))
            }
        }
    }
}

/// The last number before a millisecond: numbers are microseconds since 1970.
fn before(ms: i64) -> u64 {
    u64::try_from(ms).map_or(0, |ms| ms.saturating_mul(1_000).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_begins_with_its_first_number() {
        assert_eq!((before(5), before(0), before(-1)), (4_999, 0, 0));
        assert_eq!(before(i64::MAX), u64::MAX - 1);
    }
}
