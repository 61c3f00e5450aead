//! Groups whose place changes: what is saved of it.

use super::*;

fn world_of_one() -> (World, GroupNo, Outlet) {
    let mut world = World::new(100);
    let one = world.add("one");
    world.bind(one, 1, "orders");
    let outlet = link(1);
    world.join(one, 1, &outlet, 1);
    (world, one, outlet)
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
    assert!(world.groups.unsaved(|changing| *changing == name).iter().all(|(group, _)| group != "one"));

    // The store has set its cursor to 0: what follows is saved again once it is so far.
    let mut effects = Effects::default();
    world.groups.go_to(one, 1, 2, &mut effects);
    assert_eq!(world.groups.get(one).unwrap().saved(), 0);
    assert!(world.groups.unsaved(|_| false).iter().all(|(group, _)| group != "one"), "nothing was read yet");
    let (id, wanted) = effects.pages.pop().unwrap();
    let page = Page { ticket: wanted.ticket, rows: Vec::new(), scanned: 3, more: false };
    world.groups.page(id, page, NOW, &mut Effects::default());
    assert!(world.groups.unsaved(|_| false).contains(&("one".to_owned(), 3)));
}
