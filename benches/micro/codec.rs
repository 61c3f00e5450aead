//! Records to messages and back: an event of 300 bytes.

use std::hint::black_box;

use bytes::{BufMut as _, BytesMut};
use divan::{Bencher, counter::ItemsCount};
use eventflow::{
    event::{Data, Domain, Event, EventId, Name, NewEvent, Pid},
    wire::{Limits, ParseLimits, Reader, Request, claim_head, event_head, event_tail},
};

/// Messages that come with one read.
const BATCH: usize = 64;

fn event() -> NewEvent {
    NewEvent {
        id: EventId::parse("01J8Z3N0Q4X5V6W7Y8Z9A0B1C2").unwrap(),
        domain: Domain::parse("orders").unwrap(),
        name: Name::parse("created").unwrap(),
        pid: Pid::parse("order-1").unwrap(),
        rid: None,
        data: Data::from_value(&"x".repeat(298)).unwrap(),
    }
}

fn publish() -> Request {
    Request::Publish { req: 7, event: event(), expect: None }
}

fn stored() -> Event {
    let NewEvent { id, domain, name, pid, rid, data } = event();
    Event { id, timestamp: 1_796_000_000_000, domain, name, pid, rid, data }
}

/// A batch of the same record.
fn bytes(request: &Request) -> BytesMut {
    let mut bytes = BytesMut::new();
    (0..BATCH).for_each(|_| request.encode(&mut bytes).unwrap());
    bytes
}

/// Cuts what came into records and reads each.
fn read(reader: &mut Reader, bytes: &[u8]) {
    let limits = ParseLimits::default();
    reader.spare().put_slice(bytes);
    while let Some(record) = reader.next().unwrap() {
        black_box(Request::parse(&record, &limits).unwrap());
    }
}

fn read_many(request: &Request, times: usize) {
    let (bytes, mut reader) = (bytes(request), Reader::new(Limits::default()));
    (0..times.div_ceil(BATCH)).for_each(|_| read(&mut reader, &bytes));
}

/// What the hub does with a publish.
pub fn read_publish(times: usize) {
    read_many(&publish(), times);
}

/// What the hub does with an ack.
pub fn read_ack(times: usize) {
    read_many(&Request::Ack { req: 7, token: 123_456 }, times);
}

/// What a client does with a publish.
pub fn write_publish(times: usize) {
    let (request, mut out) = (publish(), BytesMut::with_capacity(4_096));
    for _ in 0..times {
        out.clear();
        black_box(&request).encode(&mut out).unwrap();
    }
}

/// What the hub does once for all subscribers of an event.
pub fn write_event(times: usize) {
    let (event, mut out) = (stored(), BytesMut::with_capacity(4_096));
    for number in 0..times {
        out.clear();
        event_head(&mut out, &[7], number as u64);
        black_box(event_tail(black_box(&event)));
    }
}

/// What the hub does for a claim.
pub fn write_claim(times: usize) {
    let (event, mut out) = (stored(), BytesMut::with_capacity(4_096));
    for number in 0..times {
        out.clear();
        claim_head(&mut out, 7, number as u64, 1, number as u64);
        black_box(event_tail(black_box(&event)));
    }
}

#[divan::bench]
fn reads_a_batch_of_publishes(bencher: Bencher<'_, '_>) {
    let (bytes, mut reader) = (bytes(&publish()), Reader::new(Limits::default()));
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| read(&mut reader, &bytes));
}

#[divan::bench]
fn reads_a_batch_of_acks(bencher: Bencher<'_, '_>) {
    let bytes = bytes(&Request::Ack { req: 7, token: 123_456 });
    let mut reader = Reader::new(Limits::default());
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| read(&mut reader, &bytes));
}

#[divan::bench]
fn writes_a_publish(bencher: Bencher<'_, '_>) {
    let (request, mut out) = (publish(), BytesMut::with_capacity(4_096));
    bencher.bench_local(|| {
        out.clear();
        black_box(&request).encode(&mut out).unwrap();
    });
}

#[divan::bench]
fn writes_an_event(bencher: Bencher<'_, '_>) {
    let event = stored();
    bencher.bench_local(|| event_tail(black_box(&event)));
}
