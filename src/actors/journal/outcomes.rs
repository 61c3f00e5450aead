//! How claims end: outcomes, attempts that failed, and the letters about what is dead.

use std::sync::Arc;

use super::sequence::Sequence;
use crate::{
    actors::{
        deliveries::{Finish, Recorded, Retry, Settled},
        dispatched::Dispatched,
    },
    event::{Event, EventId, Fault, NewEvent, Outcome, Uid},
    metrics::HubMetrics,
    store::{AttemptRow, Letter, StoreError, Write, Written},
    wire::{Attempt, Token},
};

/// A claim that ends.
#[derive(Debug)]
pub struct Claimed {
    /// The event.
    pub event_id: EventId,
    /// The claim.
    pub token: Token,
    /// The outcome that is recorded; none: the event waits for a retry.
    pub outcome: Option<Outcome>,
}

/// The outcome of a claim, and what it counts for in bytes.
pub fn finish(finish: Finish, at: i64, hub: Uid) -> (Write, usize, Claimed) {
    let Finish { token, group, event_id, seq, outcome, consumer, attempt, round, retried, letter } = finish;
    let claimed = Claimed { event_id: event_id.clone(), token, outcome: Some(outcome) };
    let weight = letter.as_ref().map_or(0, |letter| letter.weight());
    let letter = letter.map(|letter| {
        let NewEvent { id, domain, name, pid, rid, data } = *letter;
        let event = Event { id, timestamp: 0, domain, name, pid, rid, data };
        Box::new(Letter { event, seq: 0, publisher: hub.clone() })
    });
    let attempt = attempt.map(|ended| attempt_row(event_id.clone(), ended));
    let group = group.map(|group| group.to_string()).unwrap_or_default();
    let write =
        Write::Finish { event_id, seq, outcome, consumer, at, attempt, hub, group, round, retried, letter };
    (write, weight, claimed)
}

/// An attempt that failed, after which the event waits.
pub fn retry(retry: Retry, hub: Uid) -> (Write, Claimed) {
    let Retry { token, event_id, seq, original, pid, attempt, due } = retry;
    let claimed = Claimed { event_id: event_id.clone(), token, outcome: None };
    (Write::Retry { attempt: attempt_row(event_id, attempt), hub, seq, original, pid, due }, claimed)
}

/// A delivery that ended, as a row.
pub fn attempt_row(event_id: EventId, attempt: Attempt) -> AttemptRow {
    let Attempt { number, round, group, consumer, started, ended, reason, error } = attempt;
    let group = group.map(|group| group.to_string()).unwrap_or_default();
    AttemptRow { event_id, group, round, number, consumer, started, ended, reason, error }
}

/// A letter gets its place in the sequence, as every publish does.
pub fn place(letter: &mut Letter, sequence: &mut Sequence, now: u64) {
    let place = sequence.next(now);
    letter.seq = place.seq;
    letter.event.timestamp = place.timestamp;
}

/// What the rest of the core hears of a claim that ends: `letter` with its number is to be dispatched, if it was published.
pub fn ended(
    claimed: Claimed,
    letter: Option<(Event, u64)>,
    result: Result<Written, StoreError>,
    recorded: &mut Recorded,
    committed: &mut Vec<Arc<Dispatched>>,
    metrics: &HubMetrics,
) {
    if let (Some((event, seq)), Ok(Written::Finished { letter: true })) = (letter, &result) {
        metrics.published.inc();
        metrics.letters.inc();
        committed.push(Arc::new(Dispatched::new(event, seq)));
    }
    let Claimed { event_id, token, outcome } = claimed;
    let result = result.map(|_| ()).map_err(Fault::from);
    recorded.settled.push(Settled { event_id, token, outcome, result });
}
