//! What waits for a retry, by itself: positions, pages, and what happens while one is read.

use std::sync::Arc;

use super::*;
use crate::{
    actors::dispatched::Dispatched,
    event::{Data, Domain, Event, EventId, Name, Pid},
};

fn row(due: i64, seq: u64) -> Waiting {
    let event = Event {
        id: EventId::parse(format!("e{seq}")).unwrap(),
        timestamp: 0,
        domain: Domain::parse("d").unwrap(),
        name: Name::parse("n").unwrap(),
        pid: Pid::parse("p").unwrap(),
        rid: None,
        data: Data::parse("{}").unwrap(),
    };
    Waiting { due: Some(due), ..Waiting::new(Arc::new(Dispatched::new(event, seq)), 1) }
}

fn seqs(rows: &[Waiting]) -> Vec<u64> {
    rows.iter().map(|row| row.event.seq).collect()
}

/// After a first page that shows nothing but when the next is due.
fn known(next: Option<i64>) -> Retries {
    let mut retries = Retries::default();
    let wanted = retries.want_page(0).unwrap();
    assert!(retries.page(RetriesPage { ticket: wanted.ticket, rows: Vec::new(), next }).is_empty());
    retries
}

#[test]
fn a_page_is_read_at_the_start_and_then_when_something_is_due() {
    let mut retries = known(Some(500));
    assert_eq!((retries.next(), retries.want_page(499)), (Some(500), None));
    retries.committed(300, 7);
    assert_eq!(retries.next(), Some(300));
    let wanted = retries.want_page(300).unwrap();
    assert_eq!((wanted.until, retries.want_page(900)), (300, None), "one page at a time");
    let rows = retries.page(RetriesPage { ticket: wanted.ticket, rows: vec![row(300, 7)], next: Some(500) });
    assert_eq!((seqs(&rows), retries.next()), (vec![7], Some(500)));
    assert_eq!(retries.want_page(500).unwrap().after, (300, 7));
}

#[test]
fn what_is_committed_while_a_page_is_read_is_found_wherever_that_page_ends() {
    let mut retries = known(Some(100));
    let wanted = retries.want_page(1_000).unwrap();
    // Read before: the row of 3 is an old one, and that of 4 isn't there yet.
    retries.committed(400, 3);
    retries.committed(150, 4);
    let rows = vec![row(100, 3), row(700, 5)];
    let rows = retries.page(RetriesPage { ticket: wanted.ticket, rows, next: None });
    assert_eq!((seqs(&rows), retries.next()), (vec![5], Some(150)));
    let wanted = retries.want_page(1_000).unwrap();
    assert!(wanted.after < (150, 4));
    retries.keep(row(700, 5), 1);
    let rows = vec![row(150, 4), row(400, 3), row(700, 5)];
    let rows = retries.page(RetriesPage { ticket: wanted.ticket, rows, next: None });
    assert_eq!(seqs(&rows), [4, 3], "what memory has isn't offered twice");
}

#[test]
fn what_nobody_was_there_for_is_read_again_once_somebody_comes() {
    let mut retries = known(Some(100));
    let wanted = retries.want_page(200).unwrap();
    let rows = vec![row(100, 1), row(110, 2), row(120, 3)];
    for row in retries.page(RetriesPage { ticket: wanted.ticket, rows, next: None }) {
        match row.event.seq {
            3 => retries.keep(row, 2),
            _ => retries.leave(&row),
        }
    }
    assert_eq!((retries.next(), retries.waiting()), (None, 1));
    retries.give_up([3]);
    assert!(retries.has(3), "another binding's consumers still want it");
    retries.give_up([3]);
    assert!(!retries.has(3));
    retries.somebody_came();
    let wanted = retries.want_page(200).unwrap();
    assert!(wanted.after < (100, 1));
}

#[test]
fn a_full_window_reads_no_more_and_a_failed_page_is_asked_for_after_a_moment() {
    let mut retries = known(Some(0));
    for seq in 1..=WINDOW_EVENTS as u64 {
        retries.keep(row(0, seq), 1);
    }
    assert_eq!((retries.next(), retries.want_page(10)), (None, None));
    for seq in 1..=WINDOW_EVENTS as u64 {
        assert!(retries.take(seq).is_some() && retries.take(seq).is_none());
    }
    let wanted = retries.want_page(10).unwrap();
    retries.page_failed(wanted.ticket, 10);
    assert_eq!(retries.next(), Some(10 + AGAIN));
    let stale = RetriesPage { ticket: wanted.ticket, rows: vec![row(0, 1)], next: None };
    assert!(retries.page(stale).is_empty(), "nobody waits for that page any more");
}

#[test]
fn after_a_change_by_others_everything_is_read_again() {
    let mut retries = known(Some(100));
    let wanted = retries.want_page(100).unwrap();
    retries.look_again();
    retries.page(RetriesPage { ticket: wanted.ticket, rows: vec![row(100, 9)], next: None });
    assert_eq!(retries.want_page(100).unwrap().after, (i64::MIN, 0));
}
