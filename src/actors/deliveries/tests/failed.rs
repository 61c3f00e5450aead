//! What failed, and is to be tried again, step by step.

use super::{Npm, Step, world::World};

#[test]
fn a_retry_that_waits_for_one_bindings_consumers_is_for_those_of_another_that_come_too() {
    let mut world = World::new(usize::MAX);
    for patterns in [0, 1] {
        world.step(Step::Bind { patterns, orphans: 0 });
    }
    world.step(Step::Join { binding: 0, link: None, credit: 1, concurrency: 1 });
    world.run_to_rest();
    world.step(Step::Publish { domain: 0, events: 2, npm: Npm::No });
    world.step(Step::Dispatch);
    world.step(Step::Nack { which: 0, delay: Some(0), is_final: false });
    world.step(Step::Commit);
    world.step(Step::Recorded);
    // The consumer holds the second event; the first is due, and waits for it.
    world.step(Step::Tick);
    world.step(Step::Read(0));
    world.step(Step::Page(0));
    world.step(Step::Join { binding: 1, link: None, credit: 1, concurrency: 1 });
    assert_eq!(world.held(), 2, "it needn't wait for that consumer");
    world.run_to_rest();
}

#[test]
fn retries_that_a_stalled_consumer_doesnt_take_hold_up_those_of_no_other_binding() {
    let mut world = World::new(usize::MAX);
    for patterns in [1, 2] {
        world.step(Step::Bind { patterns, orphans: 0 });
    }
    world.step(Step::Join { binding: 0, link: None, credit: 24, concurrency: 1 });
    world.step(Step::Join { binding: 1, link: None, credit: 1, concurrency: 1 });
    world.run_to_rest();
    world.step(Step::Publish { domain: 0, events: 20, npm: Npm::No });
    world.step(Step::Publish { domain: 1, events: 1, npm: Npm::No });
    world.step(Step::Dispatch);
    world.stall();
    assert_eq!(world.held(), 21);
    for nth in 0..21 {
        // That of the other domain last.
        world.step(Step::Nack { which: 0, delay: Some(nth), is_final: false });
    }
    world.step(Step::Commit);
    world.step(Step::Recorded);
    world.step(Step::LinkGone(0));
    world.step(Step::Join { binding: 0, link: None, credit: 1, concurrency: 1 });
    world.step(Step::Tick);
    world.stall();
    assert_eq!(world.attempts_held(), [2, 2], "one of each domain");
    world.run_to_rest();
    assert_eq!(world.held(), 0);
}

#[test]
fn what_is_due_goes_on_beside_too_many_dead_ones_though_a_binding_has_yet_to_read_what_was_before_it() {
    for restarts in [false, true] {
        let mut world = World::ordered(usize::MAX, true);
        for patterns in [0, 2] {
            world.step(Step::Bind { patterns, orphans: 0 });
        }
        world.step(Step::Join { binding: 1, link: None, credit: 4, concurrency: 1 });
        world.run_to_rest();
        // Of each process one that nobody is there for, and one that fails.
        for domain in [0, 2, 4, 6, 1, 3, 5, 7] {
            world.step(Step::Publish { domain, events: 1, npm: Npm::No });
        }
        world.step(Step::Dispatch);
        assert_eq!(world.held(), 4);
        for is_final in [false, true, true, true] {
            world.step(Step::Nack { which: 0, delay: Some(0), is_final });
        }
        world.step(Step::Commit);
        world.step(Step::Recorded);
        if restarts {
            world.step(Step::Restart);
            world.step(Step::Join { binding: 1, link: None, credit: 4, concurrency: 1 });
        }
        world.step(Step::Join { binding: 0, link: None, credit: 4, concurrency: 1 });
        let mut is_tried_again = false;
        for _ in 0..20 {
            for step in [Step::Tick, Step::Read(0), Step::Page(0)] {
                world.step(step);
            }
            is_tried_again |= world.attempts_held().contains(&2);
            for _ in 0..world.held() {
                world.step(Step::Ack(0));
            }
            for step in [Step::Commit, Step::Recorded] {
                world.step(step);
            }
        }
        assert!(is_tried_again, "after a restart: {restarts}");
    }
}
