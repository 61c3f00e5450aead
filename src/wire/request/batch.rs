//! The events of a batch: one JSON array.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ParseLimits, read_data};
use crate::{
    event::{Append, Domain, EventId, Expect, Fault, Name, NewEvent, Pid, code},
    wire::{
        MOST_EVENTS,
        fields::{Fields, json_list},
    },
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item<'a> {
    id: EventId,
    domain: Domain,
    name: Name,
    pid: Pid,
    #[serde(default)]
    rid: Option<EventId>,
    #[serde(default)]
    expect: Option<Expect>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Reads the events; their data are slices of the record.
pub(super) fn read(fields: &Fields<'_>, text: &str, limits: &ParseLimits) -> Result<Vec<Append>, Fault> {
    let items: Vec<Item<'_>> = json_list("json", text)?;
    if items.is_empty() || items.len() > MOST_EVENTS {
        return Err(Fault::refused(
            code::INVALID_BATCH,
            format!("the batch has {} events: send 1 to {MOST_EVENTS} in one", items.len()),
        ));
    }
    let event = |Item { id, domain, name, pid, rid, expect, data }| {
        let data = read_data(fields, &id, data.get(), limits)?;
        Ok(Append { event: NewEvent { id, domain, name, pid, rid, data }, expect })
    };
    items.into_iter().map(event).collect()
}
