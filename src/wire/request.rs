//! Requests to records and back.

mod batch;
mod recur;

use bytes::BytesMut;
use serde::{Deserialize, Serialize};

use super::{
    ControlCharacter, Hello, MAX_FREE_TEXT, MOST_EVENTS, NackOptions, Record, RecordFault, Refusal, Req,
    Request, SubscribeOptions,
    encode::{Writer, cut, cut_client},
    fields::{Fields, json, json_list, number, positive, short, time},
};
use crate::event::{Data, Domain, EventId, Expect, Fault, Group, Name, NewEvent, Pattern, Pid, code};

/// The units that each verb takes.
const FORMS: &[(&str, &str)] = &[
    ("hello", "version, json"),
    ("ping", "n"),
    ("pong", "n"),
    ("publish", "req, id, domain, name, pid, rid, data"),
    ("subscribe", "req, sub, domain, name (and json)"),
    ("unsubscribe", "req, sub"),
    ("consume", "req, sub, group, domain, name, json"),
    ("stop", "req, sub"),
    ("ack", "req, token"),
    ("nack", "req, token, json"),
    ("extend", "req, token, json"),
    ("release", "req, token"),
    ("group", "req, group, json"),
    ("backlog", "req, json"),
    ("dead", "req, json, page, limit"),
    ("redrive", "req, json"),
    ("read", "req, id"),
    ("log", "req, json, page, limit"),
    ("show", "req, id"),
    ("renew", "req, key"),
    ("batch", "req, json"),
    ("persist", "req, id, domain, name, pid, rid, data"),
    ("schedule", "req, due, id, domain, name, pid, rid, data"),
    ("cancel", "req, id"),
    ("schedules", "req, json, page, limit"),
    ("recur", "req, name, mode, json, data"),
    ("recur-pause", "req, name"),
    ("recur-resume", "req, name"),
    ("recur-remove", "req, name"),
    ("recur-run", "req, name, id"),
    ("recur-list", "req, page, limit"),
    ("recur-show", "req, name, runs"),
    ("pids", "req, domain, page, limit"),
    ("wait", "req, json"),
    ("outcome", "req, id, json"),
    ("associate", "req, id, json"),
    ("dissociate", "req, id, json"),
    ("delete", "req, json"),
    ("nudge", "req, ids"),
];

/// What a hub takes besides the limits of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseLimits {
    /// The data of one event, in bytes.
    pub data_bytes: usize,
}

impl Default for ParseLimits {
    /// 1 MiB.
    fn default() -> Self {
        Self { data_bytes: 1024 * 1024 }
    }
}

impl Request {
    /// Its verb.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Ping(_) => "ping",
            Self::Pong(_) => "pong",
            Self::Publish { .. } => "publish",
            Self::Subscribe { .. } => "subscribe",
            Self::Unsubscribe { .. } => "unsubscribe",
            Self::Consume { .. } => "consume",
            Self::Stop { .. } => "stop",
            Self::Ack { .. } => "ack",
            Self::Nack { .. } => "nack",
            Self::Extend { .. } => "extend",
            Self::Release { .. } => "release",
            Self::Group { .. } => "group",
            Self::Backlog { .. } => "backlog",
            Self::Dead { .. } => "dead",
            Self::Redrive { .. } => "redrive",
            Self::Read { .. } => "read",
            Self::Log { .. } => "log",
            Self::Show { .. } => "show",
            Self::Renew { .. } => "renew",
            Self::Batch { .. } => "batch",
            Self::Persist { .. } => "persist",
            Self::Schedule { .. } => "schedule",
            Self::Cancel { .. } => "cancel",
            Self::Recur { .. } => "recur",
            Self::RecurChange { change, .. } => change.verb(),
            Self::RecurRun { .. } => "recur-run",
            Self::Schedules { .. } => "schedules",
            Self::RecurList { .. } => "recur-list",
            Self::RecurShow { .. } => "recur-show",
            Self::Pids { .. } => "pids",
            Self::Wait { .. } => "wait",
            Self::Outcome { .. } => "outcome",
            Self::Associate { .. } => "associate",
            Self::Dissociate { .. } => "dissociate",
            Self::Delete { .. } => "delete",
            Self::Nudge { .. } => "nudge",
        }
    }

    /// The number that its answer will bear, if it is answered by `ok` or `err`.
    #[must_use]
    pub fn req(&self) -> Option<Req> {
        match self {
            Self::Hello(_) | Self::Ping(_) | Self::Pong(_) => None,
            Self::Publish { req, .. }
            | Self::Subscribe { req, .. }
            | Self::Unsubscribe { req, .. }
            | Self::Consume { req, .. }
            | Self::Stop { req, .. }
            | Self::Ack { req, .. }
            | Self::Nack { req, .. }
            | Self::Extend { req, .. }
            | Self::Release { req, .. }
            | Self::Group { req, .. }
            | Self::Backlog { req, .. }
            | Self::Dead { req, .. }
            | Self::Redrive { req, .. }
            | Self::Read { req, .. }
            | Self::Log { req, .. }
            | Self::Show { req, .. }
            | Self::Renew { req, .. }
            | Self::Batch { req, .. }
            | Self::Persist { req, .. }
            | Self::Schedule { req, .. }
            | Self::Cancel { req, .. }
            | Self::Recur { req, .. }
            | Self::RecurChange { req, .. }
            | Self::RecurRun { req, .. }
            | Self::Schedules { req, .. }
            | Self::RecurList { req, .. }
            | Self::RecurShow { req, .. }
            | Self::Pids { req, .. }
            | Self::Wait { req, .. }
            | Self::Outcome { req, .. }
            | Self::Associate { req, .. }
            | Self::Dissociate { req, .. }
            | Self::Delete { req, .. }
            | Self::Nudge { req, .. } => Some(*req),
        }
    }

    /// Appends the record of this request. On an error `out` is as before.
    ///
    /// # Errors
    /// [`ControlCharacter`] if a unit holds one.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), ControlCharacter> {
        let record = Writer::new(out, self.verb());
        match self {
            Self::Hello(hello) => {
                let client = cut_client(&hello.client).to_owned();
                record.number(super::VERSION.into()).json(&Hello { client })
            }
            Self::Ping(n) | Self::Pong(n) => record.number(*n),
            Self::Publish { req, event, expect } | Self::Persist { req, event, expect } => {
                let record = new_event(record.number(*req), event);
                match expect {
                    Some(_) => record.json(&PublishOptions { expect: expect.clone() }),
                    None => record,
                }
            }
            Self::Nudge { req, ids } if ids.is_empty() => record.number(*req),
            Self::Nudge { req, ids } => record.number(*req).json(ids),
            Self::Schedule { req, due, event, replaces } => {
                let record = new_event(record.number(*req).time(*due), event);
                match replaces {
                    Some(_) => record.json(&ScheduleOptions { replaces: replaces.clone() }),
                    None => record,
                }
            }
            Self::Batch { req, events } => record.number(*req).json(events),
            Self::Subscribe { req, sub, domain, name, options } => {
                let record =
                    record.number(*req).number((*sub).into()).text(domain.as_str()).text(name.as_str());
                if *options == SubscribeOptions::default() { record } else { record.json(options) }
            }
            Self::Unsubscribe { req, sub } | Self::Stop { req, sub } => {
                record.number(*req).number((*sub).into())
            }
            Self::Consume { req, sub, group, domain, name, options } => record
                .number(*req)
                .number((*sub).into())
                .text(group.as_deref().unwrap_or_default())
                .text(domain.as_str())
                .text(name.as_str())
                .json(options),
            Self::Ack { req, token } | Self::Release { req, token } => record.number(*req).number(*token),
            Self::Nack { req, token, options } => {
                let reason = cut(&options.reason, MAX_FREE_TEXT).to_owned();
                record.number(*req).number(*token).json(&NackOptions { reason, ..*options })
            }
            Self::Extend { req, token, options } => record.number(*req).number(*token).json(options),
            Self::Group { req, group, action } => {
                record.number(*req).text(group.as_deref().unwrap_or_default()).json(action)
            }
            Self::Backlog { req, query } => record.number(*req).json(query),
            Self::Dead { req, query, page, limit } => {
                record.number(*req).json(query).text(page).number((*limit).into())
            }
            Self::Redrive { req, what } => record.number(*req).json(what),
            Self::Renew { req, key } => record.number(*req).text(key),
            Self::Read { req, id } | Self::Show { req, id } | Self::Cancel { req, id } => {
                record.number(*req).text(id)
            }
            Self::Log { req, query, page, limit } => {
                record.number(*req).json(query).text(page).number((*limit).into())
            }
            Self::Recur { req, recur } => recur::put(record.number(*req), recur),
            Self::RecurChange { req, name, .. } => record.number(*req).text(name),
            Self::RecurRun { req, name, id } => record.number(*req).text(name).text(id),
            Self::Schedules { req, query, page, limit } => {
                record.number(*req).json(query).text(page).number((*limit).into())
            }
            Self::RecurList { req, page, limit } => record.number(*req).text(page).number((*limit).into()),
            Self::RecurShow { req, name, runs } => record.number(*req).text(name).number((*runs).into()),
            Self::Pids { req, domain, page, limit } => {
                record.number(*req).text(domain).text(page).number((*limit).into())
            }
            Self::Wait { req, wait } => record.number(*req).json(wait),
            Self::Outcome { req, id, options } => record.number(*req).text(id).json(options),
            Self::Associate { req, id, with } | Self::Dissociate { req, id, with } => {
                record.number(*req).text(id).json(with)
            }
            Self::Delete { req, what } => record.number(*req).json(what),
        }
        .end()
    }

    /// Reads a record of a v1 client. What the request holds are slices of the record.
    ///
    /// # Errors
    /// [`Refusal`]: the link stays, and `err` with its number is the answer.
    pub fn parse(record: &Record, limits: &ParseLimits) -> Result<Self, Refusal> {
        let fields = Fields::of(record);
        read(&fields, limits).map_err(|fault| Refusal { req: fields.req(), fault })
    }
}

fn new_event<'a>(record: Writer<'a>, event: &NewEvent) -> Writer<'a> {
    record
        .text(&event.id)
        .text(&event.domain)
        .text(&event.name)
        .text(&event.pid)
        .text(event.rid.as_deref().unwrap_or_default())
        .text(event.data.as_str())
}

fn read(fields: &Fields<'_>, limits: &ParseLimits) -> Result<Request, Fault> {
    let (verb, units) = fields.checked()?;
    let req = |text| positive("req", text);
    let sub = |text| number("sub", text);
    let token = |text| number("token", text);
    Ok(match (verb, units) {
        ("hello", [version, ..]) if number("version", version) != Ok(super::VERSION) => {
            return Err(RecordFault::UnknownVersion { version: short(version) }.into());
        }
        ("hello", [_, options]) => {
            let Hello { client } = json("json", options)?;
            Request::Hello(Hello { client: cut_client(&client).to_owned() })
        }
        ("ping", [n]) => Request::Ping(number("n", n)?),
        ("pong", [n]) => Request::Pong(number("n", n)?),
        ("publish", &[number, id, domain, name, pid, rid, data, ref options @ ..]) if options.len() < 2 => {
            // First: a separator within the data is a unit too many, not half of them.
            let expect = read_expect(options)?;
            let event = read_event(fields, &[id, domain, name, pid, rid, data], limits)?;
            Request::Publish { req: req(number)?, event, expect }
        }
        ("persist", &[number, id, domain, name, pid, rid, data, ref options @ ..]) if options.len() < 2 => {
            // First: a separator within the data is a unit too many, not half of them.
            let expect = read_expect(options)?;
            let event = read_event(fields, &[id, domain, name, pid, rid, data], limits)?;
            Request::Persist { req: req(number)?, event, expect }
        }
        ("schedule", &[number, due, id, domain, name, pid, rid, data, ref options @ ..])
            if options.len() < 2 =>
        {
            // First: a separator within the data is a unit too many, not half of them.
            let replaces = read_replaces(options)?;
            let event = read_event(fields, &[id, domain, name, pid, rid, data], limits)?;
            Request::Schedule { req: req(number)?, due: time("due", due)?, event, replaces }
        }
        ("batch", [number, events]) => {
            Request::Batch { req: req(number)?, events: batch::read(fields, events, limits)? }
        }
        ("cancel", &[number, id]) => {
            Request::Cancel { req: req(number)?, id: EventId::parse(fields.shared(id))? }
        }
        ("schedules", &[n, query, page, limit]) => Request::Schedules {
            req: req(n)?,
            query: json("json", query)?,
            page: page.to_owned(),
            limit: positive("limit", limit)?,
        },
        ("subscribe", &[number, id, domain, name, ref options @ ..]) if options.len() < 2 => {
            Request::Subscribe {
                req: req(number)?,
                sub: sub(id)?,
                domain: Pattern::parse(fields.shared(domain))?,
                name: Pattern::parse(fields.shared(name))?,
                options: match options {
                    [options] => json("json", options)?,
                    _ => SubscribeOptions::default(),
                },
            }
        }
        ("unsubscribe", [number, id]) => Request::Unsubscribe { req: req(number)?, sub: sub(id)? },
        ("consume", &[number, id, group, domain, name, options]) => Request::Consume {
            req: req(number)?,
            sub: sub(id)?,
            group: read_group(fields, group)?,
            domain: Pattern::parse(fields.shared(domain))?,
            name: Pattern::parse(fields.shared(name))?,
            options: json("json", options)?,
        },
        ("stop", [number, id]) => Request::Stop { req: req(number)?, sub: sub(id)? },
        ("ack", [number, claim]) => Request::Ack { req: req(number)?, token: token(claim)? },
        ("nack", [number, claim, options]) => {
            let options: NackOptions = json("json", options)?;
            let reason = cut(&options.reason, MAX_FREE_TEXT).to_owned();
            Request::Nack {
                req: req(number)?,
                token: token(claim)?,
                options: NackOptions { reason, ..options },
            }
        }
        ("extend", [number, claim, options]) => {
            Request::Extend { req: req(number)?, token: token(claim)?, options: json("json", options)? }
        }
        ("group", &[number, group, action]) => Request::Group {
            req: req(number)?,
            group: read_group(fields, group)?,
            action: json("json", action)?,
        },
        ("backlog", [number, query]) => Request::Backlog { req: req(number)?, query: json("json", query)? },
        ("dead", &[n, query, page, limit]) => Request::Dead {
            req: req(n)?,
            query: json("json", query)?,
            page: page.to_owned(),
            limit: positive("limit", limit)?,
        },
        ("redrive", [number, what]) => Request::Redrive { req: req(number)?, what: json("json", what)? },
        ("release", [number, claim]) => Request::Release { req: req(number)?, token: token(claim)? },
        ("read", &[number, id]) => {
            Request::Read { req: req(number)?, id: EventId::parse(fields.shared(id))? }
        }
        ("log", &[n, query, page, limit]) => Request::Log {
            req: req(n)?,
            query: json("json", query)?,
            page: page.to_owned(),
            limit: positive("limit", limit)?,
        },
        ("renew", [number, key]) => Request::Renew { req: req(number)?, key: (*key).to_owned() },
        ("show", &[number, id]) => {
            Request::Show { req: req(number)?, id: EventId::parse(fields.shared(id))? }
        }
        (verb, [number, units @ ..]) if verb.starts_with("recur") => {
            let form = recur::read(fields, verb, req(number)?, units, limits)?;
            return form.ok_or_else(|| fields.misfit(FORMS).into());
        }
        ("pids", &[n, domain, page, limit]) => Request::Pids {
            req: req(n)?,
            domain: Domain::parse(fields.shared(domain))?,
            page: page.to_owned(),
            limit: positive("limit", limit)?,
        },
        ("wait", [number, wait]) => Request::Wait { req: req(number)?, wait: json("json", wait)? },
        ("outcome", &[number, id, options]) => Request::Outcome {
            req: req(number)?,
            id: EventId::parse(fields.shared(id))?,
            options: json("json", options)?,
        },
        ("associate", &[number, id, with]) => Request::Associate {
            req: req(number)?,
            id: EventId::parse(fields.shared(id))?,
            with: json("json", with)?,
        },
        ("dissociate", &[number, id, with]) => Request::Dissociate {
            req: req(number)?,
            id: EventId::parse(fields.shared(id))?,
            with: json("json", with)?,
        },
        ("nudge", [number]) => Request::Nudge { req: req(number)?, ids: Vec::new() },
        ("nudge", [number, ids]) => Request::Nudge { req: req(number)?, ids: read_ids(ids)? },
        ("delete", [number, what]) => Request::Delete { req: req(number)?, what: json("json", what)? },
        _ => return Err(fields.misfit(FORMS).into()),
    })
}

/// An empty group is the default one.
fn read_group(fields: &Fields<'_>, group: &str) -> Result<Option<Group>, Fault> {
    Ok(if group.is_empty() { None } else { Some(Group::parse(fields.shared(group))?) })
}

/// What a publish or a persist may say besides its event.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<Expect>,
}

fn read_expect(options: &[&str]) -> Result<Option<Expect>, Fault> {
    match options {
        [] => Ok(None),
        [options, ..] => Ok(json::<PublishOptions>("json", options)?.expect),
    }
}

/// What a schedule may say besides its event.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaces: Option<EventId>,
}

fn read_replaces(options: &[&str]) -> Result<Option<EventId>, Fault> {
    match options {
        [] => Ok(None),
        [options, ..] => Ok(json::<ScheduleOptions>("json", options)?.replaces),
    }
}

/// The ids of a nudge: some, each once.
fn read_ids(text: &str) -> Result<Vec<EventId>, Fault> {
    let ids: Vec<EventId> = json_list("ids", text)?;
    if ids.is_empty() || ids.len() > MOST_EVENTS {
        return Err(Fault::refused(
            code::INVALID_BATCH,
            format!("the nudge names {} events: name 1 to {MOST_EVENTS} in one, or send no list", ids.len()),
        ));
    }
    Ok(ids)
}

fn read_event(fields: &Fields<'_>, units: &[&str], limits: &ParseLimits) -> Result<NewEvent, Fault> {
    let &[id, domain, name, pid, rid, data] = units else {
        return Err(fields.misfit(FORMS).into());
    };
    Ok(NewEvent {
        id: EventId::parse(fields.shared(id))?,
        domain: Domain::parse(fields.shared(domain))?,
        name: Name::parse(fields.shared(name))?,
        pid: Pid::parse(fields.shared(pid))?,
        rid: if rid.is_empty() { None } else { Some(EventId::parse(fields.shared(rid))?) },
        data: read_data(fields, id, data, limits)?,
    })
}

fn read_data(fields: &Fields<'_>, id: &str, data: &str, limits: &ParseLimits) -> Result<Data, Fault> {
    if data.len() > limits.data_bytes {
        return Err(Fault::refused(
            code::EVENT_TOO_LARGE,
            format!(
                "the event {:?} has {} bytes of data and this hub takes at most {}: send less, or a reference",
                short(id),
                data.len(),
                limits.data_bytes
            ),
        ));
    }
    Ok(Data::parse(fields.shared(data))?)
}

#[cfg(test)]
mod tests;
