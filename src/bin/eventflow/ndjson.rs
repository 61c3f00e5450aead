//! Events as text: one JSON object a line, and payloads that people wrote.

use std::io::{self, BufRead};

use eventflow::{
    event::{Data, Domain, EventId, Expect, Fault, InvalidData, Name, NewEvent, Pid, code},
    spoke,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

/// The longest line that is read: above what any hub takes as one event.
pub(crate) const MAX_LINE: usize = 66 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    domain: String,
    name: String,
    pid: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    id: Option<String>,
    rid: Option<String>,
    expect: Option<String>,
}

/// Reads one line as an event; `new_id` makes an id if it names none.
///
/// # Errors
/// The named fault, as the hub would say it.
pub(crate) fn parse(line: &str, new_id: impl FnOnce() -> String) -> Result<spoke::Publish, Fault> {
    let line: Line<'_> = serde_json::from_str(line).map_err(|error| {
        Fault::refused(code::INVALID_RECORD, format!("the line is no event: {}", why(line, &error)))
    })?;
    let data = line.data.map_or(Ok(None), |data| payload(data.get()).map(Some))?;
    let expect = line.expect.map(Expect::parse).transpose()?;
    let event = event(&line.domain, &line.name, line.pid, line.id, line.rid, data, new_id)?;
    Ok(expecting(event, expect))
}

/// What is wrong with a line, where, and what to do.
fn why(line: &str, error: &serde_json::Error) -> String {
    let text = error.to_string();
    // Its line is always the first: the caller knows which one it is.
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    let at = match error.column() {
        0 => String::new(),
        column => format!(", column {column}"),
    };
    let advice = if !line.trim_start().starts_with('{') {
        return r#"it must be one JSON object, such as {"domain":"orders","name":"created"}"#.to_owned();
    } else if what.starts_with("missing field") {
        "domain and name must be there"
    } else if what.starts_with("unknown field `timestamp`") {
        return format!("unknown field `timestamp`{at}: the hub gives it, leave it out");
    } else if what.starts_with("unknown field") {
        "what is the event's own goes into data"
    } else if error.is_data() {
        "all but data are texts"
    } else {
        "write one JSON object on one line"
    };
    format!("{what}{at}: {advice}")
}

/// Checks the parts of an event. Without a pid the event is a process of its own, named by its id.
pub(crate) fn event(
    domain: &str,
    name: &str,
    pid: Option<String>,
    id: Option<String>,
    rid: Option<String>,
    data: Option<Data>,
    new_id: impl FnOnce() -> String,
) -> Result<spoke::Publish, Fault> {
    let id = EventId::parse(id.unwrap_or_else(new_id))?;
    Ok(spoke::Publish::from(NewEvent {
        domain: Domain::parse(domain.to_owned())?,
        name: Name::parse(name.to_owned())?,
        pid: Pid::parse(pid.unwrap_or_else(|| id.to_string()))?,
        rid: rid.map(EventId::parse).transpose()?,
        data: data.map_or_else(|| Data::parse("null"), Ok)?,
        id,
    }))
}

/// With what is expected of its log, if something is.
pub(crate) fn expecting(event: spoke::Publish, expect: Option<Expect>) -> spoke::Publish {
    match expect {
        Some(expect) => event.expecting(expect),
        None => event,
    }
}

/// Takes JSON as people write it, with line breaks and indentation.
///
/// # Errors
/// [`InvalidData`], with line and column of what the person wrote.
pub(crate) fn payload(text: &str) -> Result<Data, InvalidData> {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(InvalidData::Syntax { reason: error.to_string() });
    }
    Data::parse(compact(text))
}

/// Takes out the white space between the tokens of valid JSON.
fn compact(text: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let keep = |c: &char| {
        let is_space = !inside && matches!(c, ' ' | '\t' | '\n' | '\r');
        if inside && *c == '"' && !escaped {
            inside = false;
        } else if !inside && *c == '"' {
            inside = true;
        }
        escaped = inside && *c == '\\' && !escaped;
        !is_space
    };
    text.chars().filter(keep).collect()
}

/// A line of input, or what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Its text, without its end.
    Line(String),
    /// It can't be one.
    Bad(Fault),
}

/// What some editors put before a text to mark it as UTF-8.
pub(crate) fn without_mark(line: &str) -> &str {
    line.strip_prefix('\u{feff}').unwrap_or(line)
}

/// Reads the next line into memory, at most `limit` bytes of it; what is longer is passed over to its end.
/// `None`: that was all.
pub(crate) fn next_line(input: &mut impl BufRead, limit: usize) -> io::Result<Option<Input>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            if line.is_empty() && !too_long {
                return Ok(None);
            }
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        too_long |= line.len() + part.len() > limit;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    let bad = |code, sentence: String| Ok(Some(Input::Bad(Fault::refused(code, sentence))));
    if too_long {
        return bad(code::EVENT_TOO_LARGE, format!("the line is longer than {limit} bytes: send less data"));
    }
    match String::from_utf8(line) {
        Ok(line) => Ok(Some(Input::Line(line))),
        Err(_) => bad(code::INVALID_UTF8, "the line is not UTF-8: encode it so".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        parse(line, || "made".to_owned()).unwrap_err().code
    }

    fn debug(line: &str) -> String {
        format!("{:?}", parse(line, || "made".to_owned()).unwrap())
    }

    #[test]
    fn a_line_is_an_event() {
        let all = r#"{"domain":"d","name":"n","pid":"p","data":{"a": [1, "x y"]},"id":"i","rid":"r"}"#;
        let expected = ndjson_publish("d", "n", "p", "i", Some("r"), r#"{"a":[1,"x y"]}"#);
        assert_eq!(debug(all), expected);
        let least = r#"{"domain":"d","name":"n"}"#;
        assert_eq!(debug(least), ndjson_publish("d", "n", "made", "made", None, "null"));
        let own = r#"{"domain":"d","name":"n","id":"mine"}"#;
        assert_eq!(debug(own), ndjson_publish("d", "n", "mine", "mine", None, "null"));
    }

    fn ndjson_publish(
        domain: &str,
        name: &str,
        pid: &str,
        id: &str,
        rid: Option<&str>,
        data: &str,
    ) -> String {
        let event = NewEvent {
            id: EventId::parse(id.to_owned()).unwrap(),
            domain: Domain::parse(domain.to_owned()).unwrap(),
            name: Name::parse(name.to_owned()).unwrap(),
            pid: Pid::parse(pid.to_owned()).unwrap(),
            rid: rid.map(|rid| EventId::parse(rid.to_owned()).unwrap()),
            data: Data::parse(data.to_owned()).unwrap(),
        };
        format!("{:?}", spoke::Publish::from(event))
    }

    #[test]
    fn bad_lines_are_refused_by_name() {
        let deep = format!(r#"{{"domain":"d","name":"n","data":{}{}}}"#, "[".repeat(40), "]".repeat(40));
        for (line, expected) in [
            ("", code::INVALID_RECORD),
            ("not json", code::INVALID_RECORD),
            ("[]", code::INVALID_RECORD),
            (r#"{"domain":"d"}"#, code::INVALID_RECORD),
            (r#"{"domain":"d","name":"n","nmae":"x"}"#, code::INVALID_RECORD),
            (r#"{"domain":1,"name":"n"}"#, code::INVALID_RECORD),
            (r#"{"domain":"d","name":"n"} {}"#, code::INVALID_RECORD),
            (r#"{"domain":" d","name":"n"}"#, code::INVALID_DOMAIN),
            (r#"{"domain":"d","name":"*"}"#, code::INVALID_NAME),
            (r#"{"domain":"d","name":"n","pid":""}"#, code::INVALID_PID),
            (r#"{"domain":"d","name":"n","id":"a\u001fb"}"#, code::INVALID_ID),
            (&deep, code::DATA_TOO_DEEP),
        ] {
            assert_eq!(refusal(line), expected, "{line}");
        }
    }

    #[test]
    fn a_refusal_says_where_and_what_to_do() {
        for (line, expected) in [
            ("not json", r#"it must be one JSON object, such as {"domain":"orders","name":"created"}"#),
            ("[]", r#"it must be one JSON object, such as {"domain":"orders","name":"created"}"#),
            (r#"{"domain":"d"}"#, "missing field `name`, column 14: domain and name must be there"),
            (
                r#"{"domain":"d","name":"n","timestamp":1}"#,
                "unknown field `timestamp`, column 36: the hub gives it, leave it out",
            ),
            (
                r#"{"domain":"d","name":"n","nmae":"x"}"#,
                "unknown field `nmae`, expected one of `domain`, `name`, `pid`, `data`, `id`, `rid`, `expect`, column 31: \
                 what is the event's own goes into data",
            ),
            (
                r#"{"domain":1,"name":"n"}"#,
                "invalid type: integer `1`, expected a string, column 11: all but data are texts",
            ),
            (r#"{"domain":"d","#, "EOF while parsing a value, column 14: write one JSON object on one line"),
        ] {
            let fault = parse(line, || "made".to_owned()).unwrap_err();
            assert_eq!(fault.message, format!("the line is no event: {expected}"));
        }
    }

    #[test]
    fn payloads_may_be_written_by_people() {
        let text = "{\n\t\"a b\" : [ 1,\r\n 2 ],\n \"q\\\" x\\\\\" : \"tab\\t \"\n}\n";
        assert_eq!(payload(text).unwrap().as_str(), r#"{"a b":[1,2],"q\" x\\":"tab\t "}"#);
        assert!(payload("1 2").is_err());
        assert!(payload("1\n2").is_err());
        assert!(payload("tr ue").is_err());
        assert!(payload("").is_err());
        assert_eq!(payload("123456789012345678901234567890.10").unwrap().as_str().len(), 33);
    }

    #[test]
    fn lines_are_read_within_their_limit() {
        let text = b"one\n\nthree is long\nf\xff\nlast".as_slice();
        // A tiny buffer, so that lines come in pieces.
        let mut input = io::BufReader::with_capacity(2, text);
        let mut read = Vec::new();
        while let Some(line) = next_line(&mut input, 8).unwrap() {
            read.push(match line {
                Input::Line(line) => line,
                Input::Bad(fault) => fault.code,
            });
        }
        assert_eq!(read, ["one", "", code::EVENT_TOO_LARGE, code::INVALID_UTF8, "last"]);
    }
}
