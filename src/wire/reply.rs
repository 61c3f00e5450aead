//! Replies to records and back.

use std::time::Duration;

use bytes::BytesMut;

use super::{
    Answer, ControlCharacter, HubAddress, Made, PublishState, Published, Record, RecordFault, Reply,
    encode::{Writer, claim_head, event_head, event_tail},
    fields::{Fields, json, json_list, number, positive, short, time},
};
use crate::event::{Data, Domain, Event, EventId, Fault, Name, Pid, Retry};

/// The units that each verb takes.
const FORMS: &[(&str, &str)] = &[
    ("welcome", "version, json"),
    ("ping", "n"),
    ("pong", "n"),
    ("ok", "req"),
    ("item", "req, id, timestamp, domain, name, pid, rid, data"),
    ("err", "req, code, message, retry"),
    ("event", "subs, seq, id, timestamp, domain, name, pid, rid, data"),
    ("gap", "sub, json"),
    ("claim", "sub, token, attempt, seq, id, timestamp, domain, name, pid, rid, data"),
    ("ended", "sub, code, message, retry"),
    ("online", "id, host, port"),
    ("drain", ""),
    ("bye", "code, message, retry"),
];

impl Reply {
    /// Appends the record of this reply. On an error `out` is as before.
    ///
    /// An event is written as [`event_tail`] writes it; the message of a fault with spaces for control
    /// characters, cut at [`MAX_FREE_TEXT`](super::MAX_FREE_TEXT).
    ///
    /// # Errors
    /// [`ControlCharacter`] if another unit holds one.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), ControlCharacter> {
        match self {
            Self::Welcome(welcome) => Writer::new(out, "welcome").number(super::VERSION.into()).json(welcome),
            Self::Ping(n) => Writer::new(out, "ping").number(*n),
            Self::Pong(n) => Writer::new(out, "pong").number(*n),
            Self::Ok { req, answer } => {
                let record = Writer::new(out, "ok").number(*req);
                match answer {
                    Answer::Done => record,
                    Answer::Published(Published { fresh, timestamp, seq, state }) => {
                        let record = record
                            .text(if *fresh { "committed" } else { "duplicate" })
                            .time(*timestamp)
                            .number(*seq);
                        match state {
                            Some(state) => record.text(state.as_str()),
                            None => record,
                        }
                    }
                    Answer::Nudged { taken, events } => record.text("nudged").number(*taken).json(events),
                    Answer::Position(seq) => record.text("position").number(*seq),
                    Answer::Page(next) => record.text("page").text(next),
                    Answer::Batch(published) => record.text("batch").json(published),
                    Answer::Scheduled { due, fresh } => {
                        record.text("scheduled").time(*due).text(if *fresh { "new" } else { "duplicate" })
                    }
                    Answer::Schedules { events, next } => record.text("schedules").json(events).text(next),
                    Answer::Recurring { next, made } => {
                        let record = record.text("recurring");
                        match next {
                            Some(due) => record.time(*due),
                            None => record.text(""),
                        }
                        .text(made.as_str())
                    }
                    Answer::Recurrings { states, next } => record.text("recurrings").json(states).text(next),
                    Answer::RecurringShown { shown, data } => {
                        record.text("recurrence").json(shown).text(data.as_str())
                    }
                    Answer::Pids { pids, next } => record.text("pids").json(pids).text(next),
                    Answer::Outcome(Some(ended)) => record.text("outcome").json(ended),
                    Answer::Outcome(None) => record.text("outcome").text("pending"),
                    Answer::Group(changed) => record.text("group").json(changed),
                    Answer::Backlog(groups) => record.text("backlog").json(groups),
                    Answer::Dead { dead, next } => record.text("dead").json(dead).text(next),
                    Answer::Redriven(count) => record.text("redriven").number(*count),
                    Answer::Deleted(count) => record.text("deleted").number(*count),
                    Answer::Trace(trace) => record.text("trace").json(trace),
                    Answer::Renewed(renewed) => record.text("renewed").json(renewed),
                }
            }
            Self::Item { req, event } => Writer::new(out, "item").number(*req).event(event),
            Self::Err { req, fault } => Writer::new(out, "err").number(*req).fault(fault),
            Self::Event { subs, seq, event } => {
                event_head(out, subs, *seq);
                out.extend_from_slice(&event_tail(event));
                return Ok(());
            }
            Self::Gap { sub, removed } => Writer::new(out, "gap").number((*sub).into()).json(removed),
            Self::Claim { sub, token, attempt, seq, event } => {
                claim_head(out, *sub, *token, *attempt, *seq);
                out.extend_from_slice(&event_tail(event));
                return Ok(());
            }
            Self::Ended { sub, fault } => Writer::new(out, "ended").number((*sub).into()).fault(fault),
            Self::Online(HubAddress { id, host, port }) => Writer::new(out, "online")
                .text(id.as_deref().unwrap_or_default())
                .text(host)
                .number((*port).into()),
            Self::Drain => Writer::new(out, "drain"),
            Self::Bye(fault) => Writer::new(out, "bye").fault(fault),
        }
        .end()
    }

    /// Reads a record of a hub. What the reply holds are slices of the record.
    ///
    /// Events are taken as the hub sends them: its database may hold some that are older than the rules.
    ///
    /// # Errors
    /// [`RecordFault`] if it is no message that this version knows.
    pub fn parse(record: &Record) -> Result<Self, RecordFault> {
        let fields = Fields::of(record);
        let (verb, units) = fields.checked()?;
        let req = |text| positive("req", text);
        Ok(match (verb, units) {
            ("welcome", [version, ..]) if number("version", version) != Ok(super::VERSION) => {
                return Err(RecordFault::UnknownVersion { version: short(version) });
            }
            ("welcome", [_, welcome]) => Self::Welcome(json("json", welcome)?),
            ("ping", [n]) => Self::Ping(number("n", n)?),
            ("pong", [n]) => Self::Pong(number("n", n)?),
            ("ok", [number, answer @ ..]) => Self::Ok { req: req(number)?, answer: read_answer(answer)? },
            ("item", [number, event @ ..]) if event.len() == 7 => {
                Self::Item { req: req(number)?, event: read_event(&fields, event)? }
            }
            ("err", [req, code, message, retry]) => {
                Self::Err { req: number("req", req)?, fault: read_fault(code, message, retry)? }
            }
            ("event", [subs, seq, event @ ..]) if event.len() == 7 => Self::Event {
                subs: subs.split(',').map(|sub| number("subs", sub)).collect::<Result<_, _>>()?,
                seq: number("seq", seq)?,
                event: read_event(&fields, event)?,
            },
            ("gap", [sub, removed]) => {
                Self::Gap { sub: number("sub", sub)?, removed: json("json", removed)? }
            }
            ("claim", [sub, token, attempt, seq, event @ ..]) if event.len() == 7 => Self::Claim {
                sub: number("sub", sub)?,
                token: number("token", token)?,
                attempt: number("attempt", attempt)?,
                seq: number("seq", seq)?,
                event: read_event(&fields, event)?,
            },
            ("ended", [sub, code, message, retry]) => {
                Self::Ended { sub: number("sub", sub)?, fault: read_fault(code, message, retry)? }
            }
            ("online", &[id, host, port]) => Self::Online(HubAddress {
                id: if id.is_empty() { None } else { Some(id.to_owned()) },
                host: host.to_owned(),
                port: number("port", port)?,
            }),
            ("drain", []) => Self::Drain,
            ("bye", [code, message, retry]) => Self::Bye(read_fault(code, message, retry)?),
            _ => return Err(fields.misfit(FORMS)),
        })
    }
}

fn read_answer(units: &[&str]) -> Result<Answer, RecordFault> {
    Ok(match units {
        [] => Answer::Done,
        [form @ ("committed" | "duplicate"), timestamp, seq, state @ ..] if state.len() < 2 => {
            Answer::Published(Published {
                fresh: *form == "committed",
                timestamp: time("timestamp", timestamp)?,
                seq: number("seq", seq)?,
                // A word that is newer than this client says nothing to it.
                state: state.first().and_then(|word| PublishState::of(word)),
            })
        }
        ["nudged", taken, events] => {
            Answer::Nudged { taken: number("taken", taken)?, events: json_list("nudged", events)? }
        }
        ["position", seq] => Answer::Position(number("seq", seq)?),
        ["page", next] => Answer::Page((*next).to_owned()),
        ["batch", published] => Answer::Batch(json_list("batch", published)?),
        ["scheduled", due, form @ ("new" | "duplicate")] => {
            Answer::Scheduled { due: time("due", due)?, fresh: *form == "new" }
        }
        ["schedules", events, next] => {
            Answer::Schedules { events: json_list("schedules", events)?, next: (*next).to_owned() }
        }
        ["recurring", due, made @ ("new" | "duplicate" | "replaced")] => Answer::Recurring {
            next: if due.is_empty() { None } else { Some(time("due", due)?) },
            made: match *made {
                "new" => Made::New,
                "duplicate" => Made::Duplicate,
                _ => Made::Replaced,
            },
        },
        ["recurrings", states, next] => {
            Answer::Recurrings { states: json_list("recurrings", states)?, next: (*next).to_owned() }
        }
        ["recurrence", shown, data] => Answer::RecurringShown {
            shown: Box::new(json("recurrence", shown)?),
            data: Data::from_stored((*data).to_owned()),
        },
        // As the hub sends them: its database may hold some that are older than the rules.
        ["pids", pids, next] => Answer::Pids {
            pids: json_list::<String>("pids", pids)?.into_iter().map(Pid::from_stored).collect(),
            next: (*next).to_owned(),
        },
        ["outcome", "pending"] => Answer::Outcome(None),
        ["outcome", ended] => Answer::Outcome(Some(Box::new(json("outcome", ended)?))),
        ["group", changed] => Answer::Group(Box::new(json("group", changed)?)),
        ["backlog", groups] => Answer::Backlog(json_list("backlog", groups)?),
        ["dead", dead, next] => Answer::Dead { dead: json_list("dead", dead)?, next: (*next).to_owned() },
        ["redriven", count] => Answer::Redriven(number("redriven", count)?),
        ["deleted", count] => Answer::Deleted(number("deleted", count)?),
        ["renewed", renewed] => Answer::Renewed(Box::new(json("renewed", renewed)?)),
        ["trace", trace] => Answer::Trace(Box::new(json("trace", trace)?)),
        [form, ..] => return Err(RecordFault::unit("answer", form, "no form of answer that we know")),
    })
}

fn read_fault(code: &str, message: &str, retry: &str) -> Result<Fault, RecordFault> {
    let retry = match retry {
        "" => Retry::Never,
        wait => Retry::After(Duration::from_millis(number("retry", wait)?)),
    };
    Ok(Fault { code: code.to_owned(), message: message.to_owned(), retry })
}

fn read_event(fields: &Fields<'_>, units: &[&str]) -> Result<Event, RecordFault> {
    let &[id, timestamp, domain, name, pid, rid, data] = units else {
        return Err(fields.misfit(FORMS));
    };
    Ok(Event {
        id: EventId::from_stored(fields.shared(id)),
        timestamp: time("timestamp", timestamp)?,
        domain: Domain::from_stored(fields.shared(domain)),
        name: Name::from_stored(fields.shared(name)),
        pid: Pid::from_stored(fields.shared(pid)),
        rid: if rid.is_empty() { None } else { Some(EventId::from_stored(fields.shared(rid))) },
        data: Data::from_stored(fields.shared(data)),
    })
}
