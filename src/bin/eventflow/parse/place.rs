//! Places in what is stored: where events begin that are wanted.

use eventflow::{
    event::{EventId, InvalidText},
    spoke::{Position, Since, StartAt},
};

use super::moment;

/// How a position begins.
const POSITION: &str = "pos-";

/// Units that people write behind a number.
const UNITS: [&str; 22] = [
    "ms", "s", "sec", "secs", "m", "min", "mins", "h", "hr", "hrs", "hour", "hours", "d", "day", "days", "w",
    "week", "weeks", "mo", "months", "y", "years",
];

/// From where on stored events count: `all`, a moment, or the id of an event; `id:…` is an id in any case.
pub(crate) fn start(text: &str) -> Result<StartAt, String> {
    if text == "all" {
        return Ok(StartAt::All);
    }
    if let Ok(moment) = moment(text) {
        return Ok(moment.into());
    }
    if text.starts_with(POSITION) {
        return Err(
            "must be `all`, a time, or the id of an event, and a position is none; an id that begins so is \
                    id:ID"
                .to_owned(),
        );
    }
    id(text)?
        .map(StartAt::Id)
        .map_err(|error| format!("must be `all`, a time, or the id of an event, and {error}"))
}

/// From where on events are wanted: `all`, a position, a moment as [`moment`] takes it, or else the id of an event;
/// `id:ID` is one whatever it looks like.
pub(crate) fn since(text: &str) -> Result<Since, String> {
    if text == "all" {
        return Ok(Since::All);
    }
    if let Ok(position) = text.parse::<Position>() {
        return Ok(position.into());
    }
    if let Ok(moment) = moment(text) {
        return Ok(moment.into());
    }
    if text.starts_with(POSITION) {
        return Err("must be a position as JSON lines of `eventflow subscribe` have it; an id that begins so is id:ID"
            .to_owned());
    }
    id(text)?
        .map(Since::Id)
        .map_err(|error| format!("must be `all`, a time, a position, or the id of an event, and {error}"))
}

/// An id, unless it is meant as a moment and isn't one: what was wrong with that helps more than that no such event is
/// there.
fn id(text: &str) -> Result<Result<EventId, InvalidText>, String> {
    let id = match text.strip_prefix("id:") {
        Some(id) => id,
        None => match moment(text) {
            Err(wrong) if is_meant_as_moment(text) => {
                return Err(format!("{wrong}; an id that looks like one is id:ID"));
            }
            _ => text,
        },
    };
    Ok(EventId::parse(id.to_owned()))
}

/// A blank or a colon, a year with its dash, or a number with a unit. Ids made of the time, ULIDs, have none of these.
fn is_meant_as_moment(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    text.contains([' ', ':'])
        || digits == 4 && text.as_bytes().get(digits) == Some(&b'-')
        || digits > 0 && UNITS.contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_all_a_moment_or_an_id() {
        let id = |text: &'static str| Ok(StartAt::Id(EventId::parse(text).unwrap()));
        assert_eq!(start("all"), Ok(StartAt::All));
        assert_eq!(start("1896091200000"), Ok(StartAt::Time(1_896_091_200_000)));
        assert!(matches!(start("24h"), Ok(StartAt::Time(_))));
        assert_eq!(start("01J8Z3N0Q4X5V6W7Y8Z9A0B1C2"), id("01J8Z3N0Q4X5V6W7Y8Z9A0B1C2"));
        assert_eq!(start("id:24h"), id("24h"));
        assert!(start("").is_err() && start("é").is_err());
    }

    #[test]
    fn a_beginning_is_all_a_position_a_moment_or_an_id() {
        let position = Position::of(eventflow::event::Uid::parse("HUB").unwrap(), 5);
        let id = |text: &'static str| Ok(Since::Id(EventId::parse(text).unwrap()));
        assert_eq!(since("all"), Ok(Since::All));
        assert_eq!(since(&position.to_string()), Ok(Since::Position(position)));
        assert_eq!(since("1896091200000"), Ok(Since::Time(1_896_091_200_000)));
        assert!(matches!(since("1h"), Ok(Since::Time(_))));
        assert_eq!(since("01K0EXAMPLE"), id("01K0EXAMPLE"));
        assert_eq!(since("id:all"), id("all"));
        assert!(since("").is_err() && since("é").is_err());
    }

    #[test]
    fn what_is_meant_as_a_moment_is_no_id() {
        for wrong in
            ["2030-01-31 12:00", "2030-01-31T12:00", "2030-02-30", "2030-1-31", "12:00", "1.5h", "1y", "10 m"]
        {
            for error in [start(wrong).unwrap_err(), since(wrong).unwrap_err()] {
                assert!(
                    error.contains("2030-01-31T12:00:00Z") && error.contains("id:ID"),
                    "{wrong}: {error}"
                );
            }
            assert!(
                start(&format!("id:{wrong}")).is_ok() && since(&format!("id:{wrong}")).is_ok(),
                "{wrong}"
            );
        }
        assert!(since("pos-x").unwrap_err().contains("a position"));
        assert!(start("pos-x").unwrap_err().contains("a position is none"));
        for id in ["01J8Z3N0Q4X5V6W7Y8Z9A0B1C2", "order-7-created", "7f", "5x", "20300-1", "a1h"] {
            assert!(matches!(start(id), Ok(StartAt::Id(_))) && matches!(since(id), Ok(Since::Id(_))), "{id}");
        }
    }
}
