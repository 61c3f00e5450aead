//! What waits for a retry, by itself: positions, pages, and what happens while one is read.

use std::{collections::HashMap, sync::Arc};

use super::*;
use crate::{
    actors::dispatched::Dispatched,
    event::{Data, Domain, Event, EventId, Name, Pattern, Pid},
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

/// Bindings, where it doesn't matter what room they have.
fn none() -> HashMap<i64, Binding> {
    HashMap::new()
}

/// So many bindings, each with a consumer.
fn consumed(bindings: i64) -> HashMap<i64, Binding> {
    let binding = |id| {
        let mut binding = Binding::new(Pattern::any(), Pattern::any(), 1, 0);
        binding.joined();
        (id, binding)
    };
    (0..bindings).map(binding).collect()
}

/// Fills the share of a binding.
fn fill(binding: &mut Binding) {
    for seq in 1_000..1_100 {
        binding.put_again(&row(0, seq).event);
    }
    assert!(!binding.has_room_again());
}

/// Takes a page of these rows, which end where `next` is due.
fn page(retries: &mut Retries, wanted: RetriesWanted, rows: Vec<Waiting>, next: Option<i64>) -> Vec<Waiting> {
    retries.page(RetriesPage { ticket: wanted.ticket, rows, next })
}

/// After a first page that shows nothing but when the next is due.
fn known(next: Option<i64>) -> Retries {
    let mut retries = Retries::default();
    let wanted = retries.want_page(0, &none()).unwrap();
    assert!(retries.page(RetriesPage { ticket: wanted.ticket, rows: Vec::new(), next }).is_empty());
    retries
}

#[test]
fn a_page_is_read_at_the_start_and_then_when_something_is_due() {
    let mut retries = known(Some(500));
    assert_eq!((retries.next(&none()), retries.want_page(499, &none())), (Some(500), None));
    retries.committed(300, 7);
    assert_eq!(retries.next(&none()), Some(300));
    let wanted = retries.want_page(300, &none()).unwrap();
    assert_eq!((wanted.until, retries.want_page(900, &none())), (300, None), "one page at a time");
    let rows = retries.page(RetriesPage { ticket: wanted.ticket, rows: vec![row(300, 7)], next: Some(500) });
    assert_eq!((seqs(&rows), retries.next(&none())), (vec![7], Some(500)));
    assert_eq!(retries.want_page(500, &none()).unwrap().after, (300, 7));
}

#[test]
fn what_is_committed_while_a_page_is_read_is_found_wherever_that_page_ends() {
    let mut retries = known(Some(100));
    let wanted = retries.want_page(1_000, &none()).unwrap();
    // Read before: the row of 3 is an old one, and that of 4 isn't there yet.
    retries.committed(400, 3);
    retries.committed(150, 4);
    let rows = vec![row(100, 3), row(700, 5)];
    let rows = retries.page(RetriesPage { ticket: wanted.ticket, rows, next: None });
    assert_eq!((seqs(&rows), retries.next(&none())), (vec![5], Some(150)));
    let wanted = retries.want_page(1_000, &none()).unwrap();
    assert!(wanted.after < (150, 4));
    retries.keep(row(700, 5), 1);
    let rows = vec![row(150, 4), row(400, 3), row(700, 5)];
    let rows = retries.page(RetriesPage { ticket: wanted.ticket, rows, next: None });
    assert_eq!(seqs(&rows), [4, 3], "what memory has isn't offered twice");
}

#[test]
fn what_nobody_was_there_for_is_read_again_once_somebody_comes() {
    let mut retries = known(Some(100));
    let wanted = retries.want_page(200, &none()).unwrap();
    let rows = vec![row(100, 1), row(110, 2), row(120, 3)];
    for row in retries.page(RetriesPage { ticket: wanted.ticket, rows, next: None }) {
        match row.event.seq {
            3 => retries.keep(row, 2),
            _ => retries.leave(&row),
        }
    }
    assert_eq!((retries.next(&none()), retries.waiting()), (None, 1));
    retries.give_up([3]);
    assert!(retries.has(3), "another binding's consumers still want it");
    retries.give_up([3]);
    assert!(!retries.has(3));
    retries.somebody_came();
    let wanted = retries.want_page(200, &none()).unwrap();
    assert!(wanted.after < (100, 1));
}

#[test]
fn what_is_left_for_one_binding_is_read_past_and_read_again_once_that_has_room() {
    let (mut retries, mut bindings) = (known(Some(10)), consumed(2));
    fill(bindings.get_mut(&0).unwrap());
    let wanted = retries.want_page(50, &bindings).unwrap();
    for row in page(&mut retries, wanted, vec![row(10, 1), row(11, 2)], Some(20)) {
        retries.leave_behind(&row, [0]);
    }
    let wanted = retries.want_page(50, &bindings).unwrap();
    assert_eq!(wanted.after, (11, 2), "the other binding's may be behind them");
    page(&mut retries, wanted, vec![row(20, 3)], None);
    assert_eq!((retries.next(&bindings), retries.want_page(50, &bindings)), (None, None));

    while !bindings[&0].is_low_again() {
        bindings.get_mut(&0).unwrap().take_again();
    }
    let wanted = retries.want_page(50, &bindings).unwrap();
    assert!(wanted.after < (10, 1));
    for row in page(&mut retries, wanted, vec![row(10, 1), row(11, 2)], Some(20)) {
        match row.event.seq {
            1 => retries.keep(row, 1),
            _ => retries.leave_behind(&row, [0]),
        }
    }
    let wanted = retries.want_page(50, &bindings).unwrap();
    assert_eq!(wanted.after, (11, 1), "from the first that was left again");
    page(&mut retries, wanted, vec![row(11, 2), row(20, 3)], None);
    assert_eq!(retries.next(&bindings), None, "that was all");
}

#[test]
fn where_no_binding_has_room_nothing_is_read() {
    let (mut retries, mut bindings) = (known(Some(10)), consumed(1));
    fill(bindings.get_mut(&0).unwrap());
    let wanted = retries.want_page(50, &bindings).unwrap();
    for row in page(&mut retries, wanted, vec![row(10, 1)], Some(20)) {
        retries.leave_behind(&row, [0]);
    }
    assert_eq!((retries.next(&bindings), retries.want_page(50, &bindings)), (None, None));
    // One that comes may want what was left too.
    bindings.extend(consumed(2).remove(&1).map(|binding| (1, binding)));
    retries.joined(1);
    assert!(retries.want_page(50, &bindings).unwrap().after < (10, 1));
}

#[test]
fn what_was_left_for_a_binding_whose_consumers_go_waits_for_somebody() {
    let (mut retries, bindings) = (known(Some(10)), consumed(2));
    let wanted = retries.want_page(50, &bindings).unwrap();
    for row in page(&mut retries, wanted, vec![row(10, 1)], None) {
        retries.leave_behind(&row, [0]);
    }
    retries.left(0);
    assert_eq!(retries.next(&bindings), None);
    retries.joined(0);
    assert!(retries.want_page(50, &bindings).unwrap().after < (10, 1));
}

#[test]
fn what_is_new_has_its_turn_though_a_quick_binding_never_comes_to_an_end() {
    let (mut retries, bindings) = (known(Some(10)), consumed(2));
    let wanted = retries.want_page(50, &bindings).unwrap();
    for row in page(&mut retries, wanted, vec![row(10, 1), row(11, 2), row(12, 3)], Some(30)) {
        retries.leave_behind(&row, [0]);
    }
    let wanted = retries.want_page(50, &bindings).unwrap();
    assert_eq!(wanted.after, (10, 0));
    page(&mut retries, wanted, vec![row(10, 1)], Some(11));
    let wanted = retries.want_page(50, &bindings).unwrap();
    assert_eq!(wanted.after, (12, 3));
    page(&mut retries, wanted, vec![row(30, 4)], None);
    assert_eq!(retries.want_page(50, &bindings).unwrap().after, (10, 1));
}

#[test]
fn a_failed_page_is_asked_for_after_a_moment() {
    let mut retries = known(Some(0));
    let wanted = retries.want_page(10, &none()).unwrap();
    retries.page_failed(wanted.ticket, 10);
    assert_eq!((retries.next(&none()), retries.want_page(11, &none())), (Some(10 + AGAIN), None));
    let stale = RetriesPage { ticket: wanted.ticket, rows: vec![row(0, 1)], next: None };
    assert!(retries.page(stale).is_empty(), "nobody waits for that page any more");
}

#[test]
fn after_a_change_by_others_everything_is_read_again() {
    let mut retries = known(Some(100));
    let wanted = retries.want_page(100, &none()).unwrap();
    retries.look_again();
    retries.page(RetriesPage { ticket: wanted.ticket, rows: vec![row(100, 9)], next: None });
    assert_eq!(retries.want_page(100, &none()).unwrap().after, (i64::MIN, 0));
}
