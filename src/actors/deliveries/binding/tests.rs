//! A binding by itself: pages, windows, and what happens while a page is read.

use super::*;
use crate::{
    actors::outlet::LinkId,
    event::{Data, Domain, Event, EventId, Name, Pid},
};

fn event(seq: u64) -> Arc<Dispatched> {
    let event = Event {
        id: EventId::parse(format!("e{seq}")).unwrap(),
        timestamp: 0,
        domain: Domain::parse("d").unwrap(),
        name: Name::parse("n").unwrap(),
        pid: Pid::parse("p").unwrap(),
        rid: None,
        data: Data::parse("{}").unwrap(),
    };
    Arc::new(Dispatched::new(event, seq))
}

fn waiting(seq: u64) -> Waiting {
    Waiting::new(event(seq), 1)
}

fn binding() -> Binding {
    Binding::new(Pattern::any(), Pattern::any(), 1, 0)
}

const KEY: ConsumerKey = ConsumerKey { link: LinkId(1), sub: 1 };

fn seqs(place: &[Waiting]) -> Vec<u64> {
    place.iter().map(|waiting| waiting.event.seq).collect()
}

#[test]
fn what_arrives_while_a_page_is_read_follows_it_once() {
    let mut binding = binding();
    binding.joined();
    let wanted = binding.want_page().unwrap();
    assert_eq!(wanted.after, 0);
    assert!(binding.want_page().is_none(), "one page at a time");
    assert!(!binding.arrive(&event(3)));
    assert!(!binding.arrive(&event(4)));
    // The page already shows 3, and 2 has ended while it was read.
    binding.ended(2);
    let rows = vec![waiting(1), waiting(2), waiting(3)];
    let place = binding.page(Page { ticket: wanted.ticket, rows, scanned: 3, more: false }, 4, 1);
    assert_eq!(seqs(&place), [1, 3, 4]);
    assert!(binding.is_live());
    assert!(binding.arrive(&event(5)));
}

#[test]
fn a_full_window_leaves_the_rest_to_the_database() {
    let mut binding = binding();
    binding.joined();
    let wanted = binding.want_page().unwrap();
    binding.page(Page { ticket: wanted.ticket, rows: Vec::new(), scanned: 0, more: false }, 0, 1);
    for seq in 1..=WINDOW_EVENTS as u64 {
        assert!(binding.arrive(&event(seq)));
        binding.put(waiting(seq));
    }
    assert!(!binding.arrive(&event(5_000)));
    assert!(!binding.is_live());
    assert!(binding.want_page().is_none(), "still full");
    while binding.waiting() > LOW_WATER {
        binding.take();
    }
    assert_eq!(binding.want_page().unwrap().after, WINDOW_EVENTS as u64);
}

#[test]
fn the_last_consumer_to_leave_gives_the_memory_back() {
    let mut binding = binding();
    binding.joined();
    let wanted = binding.want_page().unwrap();
    let rows = vec![waiting(4), waiting(7)];
    for waiting in binding.page(Page { ticket: wanted.ticket, rows, scanned: 7, more: false }, 7, 1) {
        binding.put(waiting);
    }
    let _ = binding.left(KEY);
    assert_eq!(binding.waiting(), 0);
    assert_eq!(binding.floor(), 3);
    binding.put(waiting(2));
    assert_eq!(binding.floor(), 1, "what comes back late is read again");
    binding.joined();
    assert_eq!(binding.want_page().unwrap().after, 1);
}

#[test]
fn an_overflown_buffer_means_another_page() {
    let mut binding = binding();
    binding.joined();
    let wanted = binding.want_page().unwrap();
    for seq in 1..=(WINDOW_EVENTS as u64 + 1) {
        binding.arrive(&event(seq));
    }
    assert!(
        binding
            .page(Page { ticket: wanted.ticket, rows: Vec::new(), scanned: 0, more: false }, 5_000, 1)
            .is_empty()
    );
    assert!(!binding.is_live());
    assert_eq!(binding.want_page().unwrap().after, 0);
}
#[test]
fn a_page_leaves_what_is_not_dispatched_yet_to_its_dispatch() {
    let mut binding = binding();
    binding.joined();
    let wanted = binding.want_page().unwrap();
    let rows = vec![waiting(1), waiting(2), waiting(3)];
    let place = binding.page(Page { ticket: wanted.ticket, rows, scanned: 3, more: true }, 2, 1);
    assert_eq!(seqs(&place), [1, 2]);
    assert!(binding.is_live(), "all that is dispatched was considered");
    assert!(binding.arrive(&event(3)));
}

#[test]
fn a_binding_that_is_caught_up_needs_no_page_when_its_consumer_comes_back() {
    let mut binding = binding();
    binding.joined();
    let wanted = binding.want_page().unwrap();
    binding.page(Page { ticket: wanted.ticket, rows: Vec::new(), scanned: 0, more: false }, 0, 1);
    let _ = binding.left(KEY);
    binding.passed(9);
    assert_eq!(binding.floor(), 9, "what it doesn't want goes by");
    binding.joined();
    assert!(binding.is_live());
    let _ = binding.left(KEY);
    assert!(!binding.arrive(&event(10)));
    binding.passed(12);
    assert_eq!(binding.floor(), 9);
    binding.joined();
    assert_eq!(binding.want_page().unwrap().after, 9);
}
