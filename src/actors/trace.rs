//! What became of an event: what the database knows, and who has it in hands, put together away from the hot path.

use std::time::Duration;

use super::{
    deliveries::{Deliveries, Holder, Holders},
    mail::Handle,
};
use crate::{
    event::{Event, EventId, Fault, code},
    store::{Store, StoreError},
    wire::{GroupTrace, Trace},
};

/// How long the holder of a claim is asked for.
const DEADLINE: Duration = Duration::from_secs(2);

/// The event of this id and its life.
///
/// # Errors
/// There is no such event, or the hub or its database can't answer now.
pub async fn look(
    store: &Store,
    deliveries: &Handle<Deliveries>,
    id: &EventId,
) -> Result<(Event, Trace), Fault> {
    let gone = || StoreError::EventNotFound { id: id.clone() };
    let (event, mut trace) = store.trace(id).await?.ok_or_else(gone)?;
    if let Some(seq) = trace.seq {
        let holders = deliveries.ask(Holders(seq), DEADLINE).await.map_err(|error| {
            let why = format!("who holds the event isn't known now: {error}");
            Fault::retryable(code::HUB_BUSY, why, DEADLINE)
        })?;
        // A claim may have ended between the two looks.
        (_, trace) = store.trace(id).await?.ok_or_else(gone)?;
        for holder in holders {
            hold(&mut trace, holder);
        }
    }
    Ok((event, trace))
}

/// Somebody holds the event in a group: the database doesn't know that.
fn hold(trace: &mut Trace, holder: Holder) {
    let Holder { group, consumer, round, attempts, since, until } = holder;
    if group.is_none() {
        if trace.ended.is_some() {
            // Recorded since.
            return;
        }
        "claimed".clone_into(&mut trace.state);
        trace.consumer = Some(consumer.clone());
    }
    let held = GroupTrace {
        group,
        state: "claimed".to_owned(),
        round,
        attempts,
        consumer: Some(consumer),
        since: Some(since),
        due: until,
        ended: None,
    };
    match trace.groups.iter_mut().find(|known| known.group == held.group) {
        Some(known) if known.ended.is_none() || known.round < held.round => *known = held,
        Some(_) => {}
        None => trace.groups.push(held),
    }
}
