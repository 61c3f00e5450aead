use bytes::BufMut;
use proptest::{collection::vec, prelude::*};

use super::*;

const SMALL: Limits = Limits { record_bytes: 40, units: 4 };

/// Feeds `bytes` in pieces of the given sizes, over and over, and takes all records after each.
fn feed(reader: &mut Reader, bytes: &[u8], pieces: &[usize]) -> Result<Vec<String>, RecordError> {
    let mut records = Vec::new();
    let mut rest = bytes;
    for size in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let room = reader.spare();
        let (piece, more) = rest.split_at((*size).min(rest.len()).min(room.capacity() - room.len()));
        room.put_slice(piece);
        rest = more;
        while let Some(record) = reader.next()? {
            records.push(record.as_str().to_owned());
        }
    }
    Ok(records)
}

fn once(limits: Limits, bytes: &[u8]) -> Result<Vec<String>, RecordError> {
    feed(&mut Reader::new(limits), bytes, &[usize::MAX])
}

#[test]
fn records_are_cut_at_their_ends() {
    assert_eq!(once(SMALL, b"a\x1Fb\x1Ec\x1E\x1Ed").unwrap(), ["a\u{1F}b", "c", ""]);
    let record = Record(ByteString::from_static("a\u{1F}\u{1F}b"));
    assert_eq!(record.units().collect::<Vec<_>>(), ["a", "", "b"]);
    assert_eq!(Record(ByteString::new()).units().collect::<Vec<_>>(), [""]);
}

#[test]
fn a_record_may_be_as_long_as_the_limit() {
    let mut bytes = vec![b'a'; 40];
    bytes.push(RECORD_SEPARATOR);
    assert_eq!(once(SMALL, &bytes).unwrap().len(), 1);
    bytes.insert(0, b'a');
    assert_eq!(once(SMALL, &bytes), Err(RecordError::TooLong { limit: 40 }));
}

#[test]
fn an_endless_record_is_refused_before_its_end() {
    let mut reader = Reader::new(Limits { record_bytes: 100_000, units: 4 });
    let mut sent = 0;
    let error = loop {
        reader.spare().put_slice(&[b'a'; 1000]);
        sent += 1000;
        if let Err(error) = reader.next() {
            break error;
        }
    };
    assert_eq!(error, RecordError::TooLong { limit: 100_000 });
    assert_eq!(error.code(), "E_EVENTFLOW_RECORD_TOO_LONG");
    assert_eq!(sent, 101_000);
}

#[test]
fn too_many_units_are_refused_before_the_end_of_the_record() {
    assert!(once(SMALL, b"\x1F\x1F\x1F\x1E\x1F\x1F\x1F\x1E").is_ok());
    let error = once(SMALL, b"\x1F\x1F\x1F\x1F").unwrap_err();
    assert_eq!(error, RecordError::TooManyUnits { limit: 4 });
    assert_eq!(error.code(), "E_EVENTFLOW_TOO_MANY_UNITS");
}

#[test]
fn what_is_not_utf8_is_refused() {
    for bytes in [&b"\xFF\x1E"[..], b"a\xC3\x1E", b"\xED\xA0\x80\x1E", b"\xC3\x1F\xA9\x1E"] {
        assert_eq!(once(SMALL, bytes), Err(RecordError::InvalidUtf8));
    }
    assert_eq!(RecordError::InvalidUtf8.code(), "E_EVENTFLOW_INVALID_UTF8");
    assert_eq!(feed(&mut Reader::new(SMALL), "é😀\u{1E}".as_bytes(), &[1]).unwrap(), ["é😀"]);
}

#[test]
fn a_reader_that_refused_stays_refused_and_keeps_nothing() {
    let mut reader = Reader::new(SMALL);
    reader.spare().put_slice(b"\xFF\x1Egood\x1E");
    for _ in 0..3 {
        assert_eq!(reader.next(), Err(RecordError::InvalidUtf8));
        assert!(reader.buffer.is_empty());
        reader.set_limits(Limits::default());
        reader.spare().put_slice(b"good\x1E");
    }
}

#[test]
fn limits_can_be_raised_for_the_record_under_way() {
    let mut reader = Reader::new(SMALL);
    reader.spare().put_slice(&[b'a'; 40]);
    assert_eq!(reader.next(), Ok(None));
    reader.set_limits(Limits { record_bytes: 50, units: 4 });
    reader.spare().put_slice(&[b'a'; 10]);
    assert_eq!(reader.next(), Ok(None));
    reader.spare().put_u8(RECORD_SEPARATOR);
    assert_eq!(reader.next().unwrap().unwrap().as_str().len(), 50);
}

#[test]
fn a_long_record_does_not_cost_its_link_the_room_for_ever() {
    let mut reader = Reader::new(Limits::default());
    let mut bytes = vec![b'a'; 1024 * 1024];
    bytes.extend_from_slice(b"\x1Esmall\x1E");
    let records = feed(&mut reader, &bytes, &[16 * 1024]).unwrap();
    assert_eq!((records[0].len(), &*records[1]), (1024 * 1024, "small"));
    assert!(reader.spare().capacity() <= CHUNK);
}

#[test]
fn a_kept_record_never_holds_much_more_than_itself() {
    let mut reader = Reader::new(Limits::default());
    reader.spare().put_slice(b"small\x1E");
    let small = reader.next().unwrap().unwrap();
    let buffer = reader.buffer.as_ptr_range();
    assert!(!buffer.contains(&small.as_str().as_ptr()), "a small record must not pin the buffer");

    let mut reader = Reader::new(Limits::default());
    let mut bytes = vec![b'a'; 20 * 1024];
    bytes.extend_from_slice(b"\x1Enext");
    reader.spare().put_slice(&bytes);
    let before = reader.buffer.as_ptr();
    let large = reader.next().unwrap().unwrap();
    assert_eq!(large.as_str().as_ptr(), before, "a large record takes the buffer over, uncopied");
    reader.spare().put_slice(b"\x1E");
    assert_eq!(reader.next().unwrap().unwrap().as_str(), "next");
}

#[test]
fn a_shared_unit_is_no_copy() {
    let record = Record(ByteString::from("verb\u{1F}unit".to_owned()));
    let unit = record.units().nth(1).unwrap();
    assert_eq!(record.shared(unit).as_ptr(), unit.as_ptr());
}

/// Bytes that are often separators and often text.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(RECORD_SEPARATOR), Just(UNIT_SEPARATOR), 0x61u8..0x7A, any::<u8>()], 0..400)
}

fn unit() -> impl Strategy<Value = String> {
    "[^\u{1E}\u{1F}]{0,300}"
}

proptest! {
    #[test]
    fn any_units_round_trip_at_any_split(
        records in vec(vec(unit(), 1..8), 0..20),
        pieces in vec(1usize..2000, 1..10),
    ) {
        let expected: Vec<String> = records.iter().map(|units| units.join("\u{1F}")).collect();
        let bytes: String = expected.iter().map(|record| format!("{record}\u{1E}")).collect();
        let found = feed(&mut Reader::new(Limits::default()), bytes.as_bytes(), &pieces).unwrap();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn the_split_changes_nothing(bytes in hostile(), pieces in vec(1usize..20, 1..10)) {
        prop_assert_eq!(feed(&mut Reader::new(SMALL), &bytes, &pieces), once(SMALL, &bytes));
    }

    #[test]
    fn arbitrary_bytes_never_grow_the_buffer(
        bytes in hostile(),
        repeat in 1usize..400,
        record_bytes in 1usize..100_000,
        piece in 1usize..40_000,
    ) {
        let limits = Limits { record_bytes, units: 64 };
        let mut reader = Reader::new(limits);
        let bytes = bytes.repeat(repeat);
        for piece in bytes.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let room = reader.spare();
                let free = room.capacity() - room.len();
                prop_assert!(free >= MIN_ROOM);
                prop_assert!(room.capacity() <= record_bytes + CHUNK);
                let (now, later) = rest.split_at(free.min(rest.len()));
                room.put_slice(now);
                rest = later;
                while let Ok(Some(record)) = reader.next() {
                    prop_assert!(record.as_str().len() <= record_bytes);
                    prop_assert!(record.units().count() <= 64);
                }
                prop_assert!(reader.buffer.len() - reader.start <= record_bytes);
            }
        }
    }
}
