//! Bytes as a stranger may send them, split anywhere: no panic, no growth beyond the limits, and whatever
//! is read as a message is written and read again as the same.

#![no_main]

use bytes::{BufMut, BytesMut};
use eventflow::{
    event::{Data, Event},
    wire::{Limits, ParseLimits, Reader, Record, Reply, Request, is_hello, npm},
};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { record_bytes: 512, units: 16 };
const DATA: ParseLimits = ParseLimits { data_bytes: 256 };
/// The first room of a reader, which one record of these limits never outgrows.
const CHUNK: usize = 32 * 1024;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let whole = read(bytes, usize::MAX);
    let split = read(bytes, usize::from(piece) + 1);
    assert_eq!(whole, split, "how bytes are split changed what was read");
    whole.0.iter().for_each(understand);
});

/// The records, and whether the reader refused after them.
fn read(bytes: &[u8], piece: usize) -> (Vec<Record>, bool) {
    let mut reader = Reader::new(LIMITS);
    let mut records = Vec::new();
    for piece in bytes.chunks(piece.min(16 * 1024)) {
        let room = reader.spare();
        assert!(room.len() <= LIMITS.record_bytes, "more is held than one record may have");
        room.put_slice(piece);
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    assert!(record.as_str().len() <= LIMITS.record_bytes);
                    assert!(record.units().count() <= LIMITS.units);
                    records.push(record);
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(reader.next(), Err(error), "a reader that refused stays refused");
                    return (records, true);
                }
            }
        }
        assert!(reader.spare().capacity() <= LIMITS.record_bytes + CHUNK);
    }
    (records, false)
}

fn understand(record: &Record) {
    assert_eq!(is_hello(record), record.units().next() == Some("hello"));
    let mut out = BytesMut::new();
    match Request::parse(record, &DATA) {
        Ok(request) => {
            assert!(request.req() != Some(0));
            request.encode(&mut out).expect("what was read can be written");
            assert_eq!(Request::parse(&again(&out), &DATA), Ok(request));
        }
        Err(refusal) => {
            Reply::Err { req: refusal.req, fault: refusal.fault }
                .encode(&mut out)
                .expect("a refusal can be told");
            assert!(matches!(Reply::parse(&again(&out)), Ok(Reply::Err { .. })));
        }
    }
    out.clear();
    if let Ok(reply) = Reply::parse(record) {
        reply.encode(&mut out).expect("what was read can be written");
        assert_eq!(Reply::parse(&again(&out)), Ok(reply));
    }
    let message = npm::parse(record);
    let bytes = match message.clone() {
        npm::FromNpm::Online { hub, ip, port } => npm::online(&hub, &ip, port),
        npm::FromNpm::Publish { domain, id, name, pid } => {
            let data = Data::from_stored("null");
            npm::publish(&Event { id, timestamp: 0, domain, name, pid, rid: None, data })
        }
        _ => return,
    };
    assert_eq!(npm::parse(&again(&bytes)), message);
}

/// The only record of `bytes`.
fn again(bytes: &[u8]) -> Record {
    let mut reader = Reader::new(Limits::default());
    reader.spare().put_slice(bytes);
    let record = reader.next().expect("no refusal").expect("a whole record");
    assert_eq!(reader.next(), Ok(None));
    record
}
