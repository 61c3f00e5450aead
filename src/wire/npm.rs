//! The npm dialect: what `@superhero/eventflow-spoke` and `-hub` say and hear (versions 4.0 to 4.8).
//!
//! `data` never crosses it, nothing is answered, and a record that isn't understood is logged and ignored.

use bytes::{BufMut, Bytes, BytesMut};

use super::{
    RECORD_SEPARATOR, Record, RecordFault, UNIT_SEPARATOR,
    encode::put_spaced,
    fields::{Fields, number, short},
};
use crate::event::{Domain, Event, EventId, MAX_TEXT, Name, Pattern, Pid, Uid};

/// The units that each verb takes.
const FORMS: &[(&str, &str)] = &[
    ("subscribe", "domain, name"),
    ("unsubscribe", "domain, name"),
    ("publish", "domain, id, name, pid"),
    ("online", "hub, ip, port"),
];

/// What an npm peer says.
#[derive(Debug, Clone, PartialEq)]
pub enum FromNpm {
    /// `subscribe, domain, name`: for subscribers and consumers alike.
    Subscribe {
        /// The domain, literally.
        domain: Pattern,
        /// The name, literally, or every name if it is a lone `*`.
        name: Pattern,
    },
    /// `unsubscribe, domain, name`.
    Unsubscribe {
        /// As it was subscribed.
        domain: Pattern,
        /// As it was subscribed.
        name: Pattern,
    },
    /// `publish, domain, id, name, pid`: the event is in the database and a hub must dispatch it.
    Publish {
        /// The domain.
        domain: Domain,
        /// The event's id.
        id: EventId,
        /// The name.
        name: Name,
        /// The process; npm hubs leave it empty for a scheduled event.
        pid: Pid,
    },
    /// `online, hub, ip, port`: another hub is there.
    Online {
        /// That hub's id.
        hub: Uid,
        /// Where it listens.
        ip: String,
        /// TCP port.
        port: u16,
    },
    /// A verb that isn't part of the dialect.
    Unknown {
        /// The verb, cut to 80 bytes.
        verb: String,
    },
    /// A known verb with units that can't be what they should be, or an empty record.
    Malformed(RecordFault),
}

/// Reads a record of an npm peer.
#[must_use]
pub fn parse(record: &Record) -> FromNpm {
    match read(&Fields::of(record)) {
        Ok(message) => message,
        Err(RecordFault::UnknownVerb { verb }) => FromNpm::Unknown { verb },
        Err(fault) => FromNpm::Malformed(fault),
    }
}

fn read(fields: &Fields<'_>) -> Result<FromNpm, RecordFault> {
    let (verb, units) = fields.checked()?;
    Ok(match (verb, units) {
        ("subscribe", &[domain, name]) => {
            let (domain, name) = patterns(fields, domain, name)?;
            FromNpm::Subscribe { domain, name }
        }
        ("unsubscribe", &[domain, name]) => {
            let (domain, name) = patterns(fields, domain, name)?;
            FromNpm::Unsubscribe { domain, name }
        }
        ("publish", &[domain, id, name, pid]) => FromNpm::Publish {
            domain: Domain::from_stored(fields.shared(text("domain", domain)?)),
            id: EventId::from_stored(fields.shared(text("id", id)?)),
            name: Name::from_stored(fields.shared(text("name", name)?)),
            pid: Pid::from_stored(fields.shared(if pid.is_empty() { pid } else { text("pid", pid)? })),
        },
        ("online", &[hub, ip, port]) => FromNpm::Online {
            hub: Uid::from_stored(fields.shared(text("hub", hub)?)),
            ip: text("ip", ip)?.to_owned(),
            port: number("port", port)?,
        },
        _ => return Err(fields.misfit(FORMS)),
    })
}

/// npm matches domains literally, and names too but for a lone `*`.
fn patterns(fields: &Fields<'_>, domain: &str, name: &str) -> Result<(Pattern, Pattern), RecordFault> {
    let domain = Pattern::exact(fields.shared(text("domain", domain)?));
    let name = match text("name", name)? {
        "*" => Pattern::any(),
        name => Pattern::exact(fields.shared(name)),
    };
    Ok((domain, name))
}

/// npm's columns hold 64 characters: what is longer is never the name of anything.
fn text<'a>(unit: &'static str, value: &'a str) -> Result<&'a str, RecordFault> {
    match value.len() {
        0 => Err(RecordFault::unit(unit, value, "empty: give 1 to 64 characters")),
        1..=MAX_TEXT => Ok(value),
        _ => Err(RecordFault::unit(unit, &short(value), "longer than 64 characters: shorten it")),
    }
}

/// `publish, domain, id, name, pid`: tells npm spokes of an event. They read its data from the database.
#[must_use]
pub fn publish(event: &Event) -> Bytes {
    record("publish", &[&event.domain, &event.id, &event.name, &event.pid])
}

/// `online, hub, ip, port`: tells npm peers of a hub.
#[must_use]
pub fn online(hub: &Uid, ip: &str, port: u16) -> Bytes {
    record("online", &[hub, ip, &port.to_string()])
}

fn record(verb: &str, units: &[&str]) -> Bytes {
    let length = units.iter().map(|unit| unit.len() + 1).sum::<usize>();
    let mut out = BytesMut::with_capacity(verb.len() + length + 1);
    out.put_slice(verb.as_bytes());
    for unit in units {
        out.put_u8(UNIT_SEPARATOR);
        put_spaced(&mut out, unit);
    }
    out.put_u8(RECORD_SEPARATOR);
    out.freeze()
}
