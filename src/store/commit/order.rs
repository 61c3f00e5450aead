//! Where a batch must be cut for the order of its writes to hold.

use std::{collections::HashSet, ops::Range};

use super::super::Write;

/// Parts of the batch, from the back to the front, each of which may take its publishes before the rest: a publish that
/// names what an earlier write schedules or cancels begins a part of its own.
pub(super) fn parts(writes: &[Write]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut named = HashSet::new();
    let mut start = 0;
    for (at, write) in writes.iter().enumerate() {
        match write {
            Write::Schedule { event, replaces, .. } => {
                named.insert(&event.id);
                named.extend(replaces.as_ref().map(|old| &old.event_id));
            }
            Write::Cancel { event_id, .. } => _ = named.insert(event_id),
            _ => {
                let names = |id| named.contains(id);
                let mut events = write.stores();
                if events.any(|event| names(&event.id) || event.rid.as_ref().is_some_and(names)) {
                    parts.push(start..at);
                    start = at;
                    named.clear();
                }
            }
        }
    }
    parts.push(start..writes.len());
    parts.reverse();
    parts
}
