use bytes::BufMut;

use super::*;
use crate::wire::{Limits, Reader};

/// `text` with `,` for the unit separator.
fn record(text: &str) -> Record {
    raw(&text.replace(',', "\u{1F}"))
}

fn raw(text: &str) -> Record {
    let mut reader = Reader::new(Limits::default());
    reader.spare().put_slice(text.as_bytes());
    reader.spare().put_u8(super::super::RECORD_SEPARATOR);
    reader.next().unwrap().unwrap()
}

fn refusal(record: &Record) -> (u64, String) {
    let Refusal { req, fault } = Request::parse(record, &ParseLimits { data_bytes: 100 }).unwrap_err();
    assert!(!fault.is_retryable(), "{fault}");
    assert!(fault.message.len() < 400, "{fault}");
    (req, fault.code)
}

#[track_caller]
fn refused(text: &str, req: u64, code: &str) {
    assert_eq!(refusal(&record(text)), (req, code.to_owned()), "{text:?}");
}

#[test]
fn an_empty_record_is_refused() {
    refused("", 0, code::INVALID_RECORD);
}

#[test]
fn an_unknown_verb_is_refused_with_its_number() {
    refused("dance,7,x", 7, code::UNKNOWN_VERB);
    refused("dance", 0, code::UNKNOWN_VERB);
    refused("PUBLISH,7", 7, code::UNKNOWN_VERB);
    refused(&"x".repeat(5000), 0, code::UNKNOWN_VERB);
    refused("ok,7", 7, code::UNKNOWN_VERB);
}

#[test]
fn a_wrong_number_of_units_is_refused() {
    for (verb, form) in FORMS.iter().filter(|(verb, _)| !["hello", "ping", "pong", "nudge"].contains(verb)) {
        let takes = form.split(", ").count();
        let units = vec!["1"; takes];
        refused(&format!("{verb},{}", units[1..].join(",")), u64::from(takes > 1), code::INVALID_RECORD);
        refused(&format!("{verb},{},1", units.join(",")), 1, code::INVALID_RECORD);
        refused(verb, 0, code::INVALID_RECORD);
    }
    refused(&format!("publish,5{}", ",1".repeat(60)), 5, code::INVALID_RECORD);
    refused("hello", 0, code::INVALID_RECORD);
    refused("ping", 0, code::INVALID_RECORD);
    refused("pong,1,2", 0, code::INVALID_RECORD);
}

#[test]
fn a_bad_number_is_refused() {
    for number in ["", "x", "+1", "-1", " 1", "1 ", "01", "0x1", "1.0", "18446744073709551616", "١"] {
        refused(&format!("ack,{number},1"), 0, code::INVALID_RECORD);
        refused(&format!("ack,3,{number}"), 3, code::INVALID_RECORD);
        refused(&format!("stop,3,{number}"), 3, code::INVALID_RECORD);
        refused(&format!("pids,3,d,,{number}"), 3, code::INVALID_RECORD);
        refused(&format!("ping,{number}"), 0, code::INVALID_RECORD);
    }
    refused("stop,3,4294967296", 3, code::INVALID_RECORD);
    refused("pids,3,d,,0", 3, code::INVALID_RECORD);
    assert!(Request::parse(&record("ack,18446744073709551615,0"), &ParseLimits::default()).is_ok());
}

#[test]
fn the_number_0_is_kept_for_records_that_have_none() {
    refused("ack,0,1", 0, code::INVALID_RECORD);
    refused("publish,0,i,d,n,p,,1", 0, code::INVALID_RECORD);
}

#[test]
fn a_control_character_in_a_unit_is_refused() {
    for at in 0..0x20u8 {
        let control = char::from(at);
        if matches!(at, 0x1E | 0x1F) {
            continue;
        }
        let text = format!("publish\u{1F}4\u{1F}i{control}\u{1F}d\u{1F}n\u{1F}p\u{1F}\u{1F}1");
        assert_eq!(refusal(&raw(&text)), (4, code::CONTROL_CHARACTER.to_owned()));
        let text = format!("publish\u{1F}4\u{1F}i\u{1F}d\u{1F}n\u{1F}p\u{1F}\u{1F}[1,{control}2]");
        assert_eq!(refusal(&raw(&text)), (4, code::CONTROL_CHARACTER.to_owned()));
    }
}

#[test]
fn a_separator_in_a_unit_is_a_unit_more() {
    refused("publish,4,i,d,n,p,,\"a,b\"", 4, code::INVALID_RECORD);
}

#[test]
fn the_short_texts_have_their_rules() {
    let long = "x".repeat(65);
    let cases = [
        ("id", code::INVALID_ID),
        ("domain", code::INVALID_DOMAIN),
        ("name", code::INVALID_NAME),
        ("pid", code::INVALID_PID),
        ("rid", code::INVALID_ID),
    ];
    for (at, (field, expected)) in cases.into_iter().enumerate() {
        for bad in [&*long, "x ", " x", "é", "\u{7F}"] {
            let mut units = ["i", "d", "n", "p", ""];
            units[at] = bad;
            refused(&format!("publish,2,{},1", units.join(",")), 2, expected);
        }
        if field != "rid" {
            let mut units = ["i", "d", "n", "p", ""];
            units[at] = "";
            refused(&format!("publish,2,{},1", units.join(",")), 2, expected);
        }
    }
    refused("publish,2,i,*,n,p,,1", 2, code::INVALID_DOMAIN);
    refused("publish,2,i,d,a.>,p,,1", 2, code::INVALID_NAME);
    refused("subscribe,2,1,a.>.b,*", 2, code::INVALID_PATTERN);
    refused("subscribe,2,1,a,", 2, code::INVALID_PATTERN);
    for options in [
        "",
        "[]",
        "all",
        r#"{"from":"al"}"#,
        r#"{"from":{"time":"1"}}"#,
        r#"{"From":"all"}"#,
        r#"{"from":{}}"#,
    ] {
        refused(&format!("subscribe,2,1,a,b,{options}"), 2, code::INVALID_RECORD);
    }
    refused(r#"subscribe,2,1,a,b,{"from":{"position":"pos-00"}}"#, 2, code::INVALID_RECORD);
    refused(r#"subscribe,2,1,a,b,{"from":"all"},x"#, 2, code::INVALID_RECORD);
    refused("consume,2,1,g ,a,*,{\"credit\":1}", 2, code::INVALID_GROUP);
    refused("read,2,", 2, code::INVALID_ID);
    refused(&format!("show,2,{long}"), 2, code::INVALID_ID);
}

#[test]
fn data_that_is_no_json_or_too_deep_is_refused() {
    for bad in ["", "{", "nul", "1 2", "'a'", "[1}"] {
        refused(&format!("publish,9,i,d,n,p,,{bad}"), 9, code::INVALID_DATA);
    }
    let deep = format!("{}{}", "[".repeat(32), "]".repeat(32));
    refused(&format!("publish,9,i,d,n,p,,{deep}"), 9, code::DATA_TOO_DEEP);
}

#[test]
fn an_event_over_the_data_limit_is_refused_by_name() {
    let fits = format!("publish,9,big,d,n,p,,\"{}\"", "x".repeat(98));
    assert!(Request::parse(&record(&fits), &ParseLimits { data_bytes: 100 }).is_ok());
    let over = format!("publish,9,big,d,n,p,,\"{}\"", "x".repeat(99));
    refused(&over, 9, code::EVENT_TOO_LARGE);
    let Refusal { fault, .. } = Request::parse(&record(&over), &ParseLimits { data_bytes: 100 }).unwrap_err();
    assert_eq!(
        fault.message,
        "the event \"big\" has 101 bytes of data and this hub takes at most 100: send less, or a reference"
    );
}

#[test]
fn a_hello_of_another_version_is_refused() {
    refused("hello,2,{}", 0, code::UNKNOWN_VERSION);
    refused("hello,2", 0, code::UNKNOWN_VERSION);
    refused("hello,,{}", 0, code::UNKNOWN_VERSION);
    refused("hello,1,{", 0, code::INVALID_RECORD);
    refused("hello,1,[]x", 0, code::INVALID_RECORD);
}

#[test]
fn options_that_are_no_json_object_are_refused() {
    for bad in ["", "1", "{}", "{\"credit\":-1}", "{\"credit\":\"1\"}", "{\"credit\":1"] {
        refused(&format!("consume,6,1,,d,n,{bad}"), 6, code::INVALID_RECORD);
    }
    refused("nack,6,1,", 6, code::INVALID_RECORD);
}

#[test]
fn options_that_we_do_not_know_are_skipped_and_free_text_is_cut() {
    let Ok(Request::Hello(hello)) = Request::parse(
        &raw(&format!("hello\u{1F}1\u{1F}{{\"client\":\"{}\",\"x\":[1]}}", "é".repeat(99))),
        &ParseLimits::default(),
    ) else {
        panic!("a hello");
    };
    assert_eq!(hello.client, "é".repeat(64));
    let reason = "é".repeat(5000);
    let Ok(Request::Nack { options, .. }) = Request::parse(
        &raw(&format!("nack\u{1F}1\u{1F}1\u{1F}{{\"reason\":\"x{reason}\"}}")),
        &ParseLimits::default(),
    ) else {
        panic!("a nack");
    };
    assert_eq!(options.reason.len(), MAX_FREE_TEXT - 1);
}

#[test]
fn fields_are_slices_of_their_record() {
    let record = record("publish,9,the-id,d,n,p,,[1]");
    let Ok(Request::Publish { event, .. }) = Request::parse(&record, &ParseLimits::default()) else {
        panic!("a publish");
    };
    let bytes = record.as_str().as_bytes().as_ptr_range();
    for text in [event.id.as_str(), event.domain.as_str(), event.data.as_str()] {
        assert!(bytes.contains(&text.as_ptr()));
    }
}

#[test]
fn nothing_is_written_if_one_unit_cannot_be() {
    let mut out = BytesMut::from(&b"before"[..]);
    let request = Request::Pids {
        req: 1,
        domain: Domain::from_stored("a\u{1F}b"),
        page: "\u{1E}".to_owned(),
        limit: 1,
    };
    let error = request.encode(&mut out).unwrap_err();
    assert_eq!(error, ControlCharacter { unit: 2, byte: 0x1F });
    assert_eq!(Fault::from(error).code, code::CONTROL_CHARACTER);
    assert_eq!(&out[..], b"before");
}

/// A record of units, whose JSON may hold commas.
fn units(units: &[&str]) -> Record {
    raw(&units.join("\u{1F}"))
}

#[test]
fn a_batch_has_1_to_1000_events_and_each_is_looked_at() {
    let one = r#"{"id":"i","domain":"d","name":"n","pid":"p","data":{"a":1}}"#;
    let many = |count: usize| format!("[{}]", vec![one; count].join(","));
    let limits = ParseLimits::default();
    let Ok(Request::Batch { events, .. }) = Request::parse(&units(&["batch", "2", &many(1_000)]), &limits)
    else {
        panic!("a thousand events are a batch");
    };
    assert_eq!((events.len(), events[7].event.data.as_str()), (1_000, r#"{"a":1}"#));
    for (json, expected) in [
        ("[]", code::INVALID_BATCH),
        (&*many(1_001), code::INVALID_BATCH),
        ("{}", code::INVALID_RECORD),
        ("[{}]", code::INVALID_RECORD),
        (r#"[{"id":"i","domain":"d","name":"n","pid":"p"}]"#, code::INVALID_RECORD),
        (r#"[{"id":" i","domain":"d","name":"n","pid":"p","data":1}]"#, code::INVALID_RECORD),
        (r#"[{"id":"i","domain":"*","name":"n","pid":"p","data":1}]"#, code::INVALID_RECORD),
        (
            &format!(r#"[{{"id":"i","domain":"d","name":"n","pid":"p","data":"{}"}}]"#, "x".repeat(100)),
            code::EVENT_TOO_LARGE,
        ),
        (
            &format!(
                r#"[{{"id":"i","domain":"d","name":"n","pid":"p","data":{}1{}}}]"#,
                "[".repeat(32),
                "]".repeat(32)
            ),
            code::DATA_TOO_DEEP,
        ),
    ] {
        assert_eq!(refusal(&units(&["batch", "2", json])), (2, expected.to_owned()), "{json}");
    }
}

#[test]
fn the_data_of_a_batch_are_slices_of_its_record() {
    let record = units(&["batch", "2", r#"[{"id":"i","domain":"d","name":"n","pid":"p","data":[1,2]}]"#]);
    let Ok(Request::Batch { events, .. }) = Request::parse(&record, &ParseLimits::default()) else {
        panic!("a batch");
    };
    assert!(record.as_str().as_bytes().as_ptr_range().contains(&events[0].event.data.as_str().as_ptr()));
}

#[test]
fn an_expectation_is_none_or_an_id_and_nothing_else_is_said_beside_it() {
    let expect = |json: &str| {
        let record = units(&["publish", "2", "i", "d", "n", "p", "", "1", json]);
        match Request::parse(&record, &ParseLimits::default()) {
            Ok(Request::Publish { expect, .. }) => Ok(expect),
            other => Err(other.unwrap_err().fault.code),
        }
    };
    assert_eq!(expect("{}"), Ok(None));
    assert_eq!(expect(r#"{"expect":"none"}"#), Ok(Some(Expect::None)));
    assert_eq!(expect(r#"{"expect":"e1"}"#), Ok(Some(Expect::After(EventId::from_stored("e1")))));
    for odd in
        ["", "[]", r#"{"expect":""}"#, r#"{"expect":1}"#, r#"{"expected":"e1"}"#, r#"{"expect":"e1","x":1}"#]
    {
        assert_eq!(expect(odd), Err(code::INVALID_RECORD.to_owned()), "{odd}");
    }
    refused("persist,2,i,d,n,p,,1,{},{}", 2, code::INVALID_RECORD);
}

#[test]
fn a_nudge_names_1_to_1000_events_or_has_no_list() {
    let limits = ParseLimits::default();
    let many = |count: usize| format!("[{}]", vec![r#""e""#; count].join(","));
    let named = Request::parse(&units(&["nudge", "2", &many(1_000)]), &limits);
    assert!(matches!(named, Ok(Request::Nudge { req: 2, ids }) if ids.len() == 1_000));
    assert_eq!(
        Request::parse(&units(&["nudge", "2"]), &limits),
        Ok(Request::Nudge { req: 2, ids: Vec::new() })
    );
    for list in ["[]", &*many(1_001)] {
        assert_eq!(refusal(&units(&["nudge", "2", list])), (2, code::INVALID_BATCH.to_owned()));
    }
    for odd in ["", "e", "{}", "[1]", r#"[" "]"#] {
        assert_eq!(refusal(&units(&["nudge", "2", odd])), (2, code::INVALID_RECORD.to_owned()), "{odd}");
    }
}

#[test]
fn a_date_is_a_whole_number() {
    for due in ["", "x", "1.5", "+1", "tomorrow", "9223372036854775808"] {
        refused(&format!("schedule,2,{due},i,d,n,p,,1"), 2, code::INVALID_RECORD);
    }
    let before = Request::parse(&record("schedule,2,-5,i,d,n,p,,1"), &ParseLimits::default());
    assert!(matches!(before, Ok(Request::Schedule { due: -5, .. })), "{before:?}");
}
