//! Groups whose place changes: what is saved of it, and what becomes of events that wait for another attempt.

use super::*;
use crate::actors::deliveries::binding::Waiting;

fn world_of_one() -> (World, GroupNo, Outlet) {
    let mut world = World::new(100);
    let one = world.add("one");
    world.bind(one, 1, "orders");
    let outlet = link(1);
    world.join(one, 1, &outlet, 1);
    (world, one, outlet)
}

/// What is handed out once a page shows these that are due.
fn due(world: &mut World, one: GroupNo, rows: Vec<Waiting>) -> Vec<ClaimPush> {
    let mut effects = Effects::default();
    world.groups.look_at_retries(one, NOW, &mut effects);
    let (_, wanted) = effects.due.pop().unwrap();
    let page = RetriesPage { ticket: wanted.ticket, rows, next: None };
    world.groups.retries_page(one, page, NOW, &mut effects);
    handed(effects)
}

fn waits(seq: u64, domain: &str) -> Waiting {
    Waiting { event: event(seq, domain), attempts: 0, round: 2, due: Some(NOW.wall) }
}

#[test]
fn of_a_group_that_is_being_sought_no_cursor_is_written_behind_the_seek() {
    let (mut world, one, outlet) = world_of_one();
    for _ in 0..3 {
        let claim = world.publish("orders").pop().unwrap();
        world.ack(&outlet, claim.token);
        world.groups.recorded(claim.token, false, NOW, &mut Effects::default());
    }
    let name = Some(Name::parse("one").unwrap());
    assert!(world.groups.unsaved(|changing| *changing == name).iter().all(|(group, ..)| group != "one"));

    // The store has set its cursor to 0: what follows is saved again once it is so far.
    let mut effects = Effects::default();
    world.groups.go_to(one, 1, 2, &mut effects);
    assert_eq!(world.groups.get(one).unwrap().saved(), 0);
    assert!(world.groups.unsaved(|_| false).iter().all(|(group, ..)| group != "one"), "nothing was read yet");
    let (id, wanted) = effects.pages.pop().unwrap();
    let page = Page { ticket: wanted.ticket, rows: Vec::new(), scanned: 3, more: false };
    world.groups.page(id, page, NOW, &mut Effects::default());
    assert!(
        world.groups.unsaved(|_| false).iter().any(|(group, seq, _)| (group.as_str(), *seq) == ("one", 3))
    );
}

#[test]
fn what_waits_for_another_attempt_is_for_a_binding_that_starts_later() {
    let (mut world, one, outlet) = world_of_one();
    world.groups.go_to(one, 10, 2, &mut Effects::default());
    assert!(due(&mut world, one, vec![waits(4, "mail")]).is_empty(), "no binding's pattern matches");
    let claim = due(&mut world, one, vec![waits(5, "orders")]).pop().unwrap();
    assert_eq!(claim.event.seq, 5);

    // Handed back, it is offered again; passed over meanwhile, it isn't.
    let release = |world: &mut World, token| {
        let mut effects = Effects::default();
        world.groups.settle(&outlet, 1, token, Verdict::Release, NOW, &mut effects);
        handed(effects)
    };
    let claim = release(&mut world, claim.token).pop().unwrap();
    world.groups.go_to(one, 20, 2, &mut Effects::default());
    assert!(release(&mut world, claim.token).is_empty());
}
