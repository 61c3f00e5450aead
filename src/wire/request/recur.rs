//! The verbs of recurring schedules.

use super::{ParseLimits, read_data};
use crate::{
    event::{EventId, Fault, RecurringName},
    wire::{
        RecordFault, Recur, RecurChange, Req, Request,
        encode::Writer,
        fields::{Fields, json, positive},
    },
};

pub(super) fn put<'a>(record: Writer<'a>, recur: &Recur) -> Writer<'a> {
    let Recur { name, replace, what, data } = recur;
    let mode = if *replace { "replace" } else { "create" };
    record.text(name).text(mode).json(what).text(data.as_str())
}

/// None: no verb takes these units.
pub(super) fn read(
    fields: &Fields<'_>,
    verb: &str,
    req: Req,
    units: &[&str],
    limits: &ParseLimits,
) -> Result<Option<Request>, Fault> {
    let name = |text| RecurringName::parse(fields.shared(text));
    let change = |text, change| Ok(Some(Request::RecurChange { req, name: name(text)?, change }));
    Ok(Some(match (verb, units) {
        ("recur", &[text, mode, what, data]) => {
            let replace = match mode {
                "create" => false,
                "replace" => true,
                _ => return Err(RecordFault::unit("mode", mode, "neither `create` nor `replace`").into()),
            };
            let (name, what) = (name(text)?, json("json", what)?);
            let data = read_data(fields, &name, data, limits)?;
            Request::Recur { req, recur: Box::new(Recur { name, replace, what, data }) }
        }
        ("recur-pause", &[text]) => return change(text, RecurChange::Pause),
        ("recur-resume", &[text]) => return change(text, RecurChange::Resume),
        ("recur-remove", &[text]) => return change(text, RecurChange::Remove),
        ("recur-run", &[text, id]) => {
            Request::RecurRun { req, name: name(text)?, id: EventId::parse(fields.shared(id))? }
        }
        ("recur-list", &[page, limit]) => {
            Request::RecurList { req, page: page.to_owned(), limit: positive("limit", limit)? }
        }
        ("recur-show", &[text, runs]) => {
            Request::RecurShow { req, name: name(text)?, runs: positive("runs", runs)? }
        }
        _ => return Ok(None),
    }))
}
