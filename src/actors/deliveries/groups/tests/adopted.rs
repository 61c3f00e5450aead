//! Events that another hub has dispatched, and that this one serves under numbers of its own.

use super::*;
use crate::{actors::deliveries::binding::Waiting, store::Gone};

/// The event that this number names here; the other hub knows it by another one.
fn adopted(seq: u64, original: u64) -> Waiting {
    let event = Arc::new(Dispatched::adopted(event(seq, "orders").event.clone(), seq, original));
    Waiting { event, attempts: 0, round: 1, due: Some(NOW.wall) }
}

/// The first page, which the group's first consumer has asked for, shows these.
fn look(world: &mut World, no: GroupNo, rows: Vec<Waiting>) -> Effects {
    let mut effects = Effects::default();
    let page = RetriesPage { ticket: 1, rows, next: None };
    world.groups.retries_page(no, page, NOW, &mut effects);
    effects
}

#[test]
fn what_ends_is_told_by_the_number_that_the_store_knows_and_what_is_deleted_is_found_by_its_id() {
    // The link holds one event at a time.
    let mut world = World::new(1);
    let one = world.add("one");
    world.bind(one, 1, "orders");
    let outlet = link(1);
    world.join(one, 1, &outlet, 1);
    let rows = vec![adopted(9_000, 7), adopted(9_001, 8), adopted(9_002, 9)];
    let first = handed(look(&mut world, one, rows)).pop().unwrap();
    assert_eq!((first.event.seq, first.event.original), (9_000, 7));

    let waiting = event(9_001, "orders").event.clone();
    let gone = Gone {
        id: waiting.id,
        domain: waiting.domain,
        name: waiting.name,
        seq: None,
        scheduled: false,
        open: true,
    };
    let mut effects = Effects::default();
    world.groups.deleted(&[gone], NOW, &mut effects);
    let mut ended = world.ack(&outlet, first.token);
    assert_eq!(ended.finishes.pop().map(|finish| finish.seq), Some(7));
    world.groups.recorded(first.token, false, NOW, &mut effects);
    let next: Vec<u64> = handed(effects).iter().chain(&handed(ended)).map(|claim| claim.event.seq).collect();
    assert_eq!(next, [9_002], "nobody gets what is deleted");
}

#[test]
fn in_the_default_group_it_is_claimed_in_the_database_first() {
    let mut world = World::new(100);
    world.bind(GroupNo::DEFAULT, 1, "orders");
    let outlet = link(1);
    world.join(GroupNo::DEFAULT, 1, &outlet, 1);
    let effects = look(&mut world, GroupNo::DEFAULT, vec![adopted(9_000, 7)]);
    assert_eq!(
        (effects.reserves.len(), handed(effects).len()),
        (1, 0),
        "npm spokes may have been told of it"
    );
    assert_eq!(world.publish("orders").len(), 1, "what is this hub's own is handed out at once");
}
