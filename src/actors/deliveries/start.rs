//! Where bindings and groups start, as a number of the hub's sequence.

use crate::{
    actors::clock::now_micros,
    event::{EventId, Fault, code},
    store::{Store, StoreError},
    wire::StartAt,
};

/// The first number that counts.
///
/// # Errors
/// There is no such event, it isn't published, or the store can't say.
pub async fn start_seq(store: &Store, at: StartAt) -> Result<u64, Fault> {
    match at {
        StartAt::All => Ok(1),
        // Numbers are microseconds. A time that lies ahead is now: else what comes until then would be kept for nobody.
        StartAt::Time(millis) => {
            let seq = u64::try_from(millis).unwrap_or(0).saturating_mul(1_000);
            Ok(seq.clamp(1, now_micros().saturating_add(1)))
        }
        StartAt::Id(id) => {
            let found = store.trace(&id).await?;
            let (_, trace) = found.ok_or_else(|| StoreError::EventNotFound { id: id.clone() })?;
            trace.seq.map(|seq| seq.saturating_add(1)).ok_or_else(|| unpublished(&id))
        }
    }
}

fn unpublished(id: &EventId) -> Fault {
    Fault::refused(
        code::INVALID_RECORD,
        format!(
            "the event {id:?} has no place to start after: it is stored, but no hub of ours has dispatched it; start by a \
             time, or after a published event"
        ),
    )
}
