//! The group against a naive model: whatever happens in whatever order, an event has one holder, no outcome is
//! followed by another delivery, nothing that somebody wants is forgotten, and what npm spokes may claim is claimed
//! before it is handed out.

mod failed;
mod world;

use proptest::prelude::*;

use self::world::World;

/// One thing that happens. Numbers pick among what is there.
#[derive(Debug, Clone)]
enum Step {
    /// A binding is made: which patterns, and how many of the last events it still wants.
    Bind {
        patterns: usize,
        orphans: u64,
    },
    /// A consumer comes, on a link that is there or on a new one.
    Join {
        binding: usize,
        link: Option<usize>,
        credit: usize,
        concurrency: usize,
    },
    Stop(usize),
    /// Events are committed; they are dispatched later, in order.
    Publish {
        domain: usize,
        events: usize,
        npm: Npm,
    },
    /// An event without outcome is deleted, whoever has it; the group hears of it after its dispatch.
    Delete(usize),
    Dispatch,
    /// An npm spoke claims an event that it was told of.
    NpmClaims(usize),
    /// An npm link that comes is told of an event that it missed.
    TellLate(usize),
    /// A page is read now; its rows arrive later.
    Read(usize),
    Page(usize),
    PageFails(usize),
    Ack(usize),
    Nack {
        which: usize,
        delay: Option<u64>,
        is_final: bool,
    },
    /// A claim is held for longer.
    Extend(usize, Option<u64>),
    /// Word comes of a claim whose lease is over.
    Late(usize),
    /// A dead event is to be tried again; the group hears of it later.
    Redrive(usize),
    Release(usize),
    /// A token that nobody holds.
    Stray,
    /// What waits for the database is committed; the group hears of it later.
    Commit,
    /// The database refuses what waits.
    CommitFails,
    Recorded,
    LinkGone(usize),
    SaveCursor,
    Tick,
    Drain,
    Restart,
    /// The order of keys is asked for, with dead events that block or not, or no longer.
    Order(Option<bool>),
}

/// What npm spokes have to do with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Npm {
    /// Nothing.
    No,
    /// A link of this hub wants it.
    Link,
    /// Another hub has told them.
    Elsewhere,
}

fn step() -> impl Strategy<Value = Step> {
    let any = any::<usize>;
    let npm = prop_oneof![3 => Just(Npm::No), 1 => Just(Npm::Link), 1 => Just(Npm::Elsewhere)];
    prop_oneof![
        2 => (any(), 0_u64..6).prop_map(|(patterns, orphans)| Step::Bind { patterns, orphans }),
        4 => (any(), proptest::option::of(any()), 1_usize..5, 1_usize..3).prop_map(
            |(binding, link, credit, concurrency)| Step::Join { binding, link, credit, concurrency }
        ),
        1 => any().prop_map(Step::Stop),
        6 => (any(), 1_usize..8, npm).prop_map(|(domain, events, npm)| Step::Publish { domain, events, npm }),
        2 => any().prop_map(Step::NpmClaims),
        1 => any().prop_map(Step::TellLate),
        2 => any().prop_map(Step::Delete),
        6 => Just(Step::Dispatch),
        6 => any().prop_map(Step::Read),
        6 => any().prop_map(Step::Page),
        1 => any().prop_map(Step::PageFails),
        6 => any().prop_map(Step::Ack),
        4 => (any(), proptest::option::of(0_u64..6_000), proptest::bool::weighted(0.2))
            .prop_map(|(which, delay, is_final)| Step::Nack { which, delay, is_final }),
        2 => (any(), proptest::option::of(0_u64..9_000)).prop_map(|(which, lease)| Step::Extend(which, lease)),
        2 => any().prop_map(Step::Late),
        2 => any().prop_map(Step::Redrive),
        2 => any().prop_map(Step::Release),
        1 => Just(Step::Stray),
        6 => Just(Step::Commit),
        1 => Just(Step::CommitFails),
        6 => Just(Step::Recorded),
        2 => any().prop_map(Step::LinkGone),
        1 => Just(Step::SaveCursor),
        4 => Just(Step::Tick),
        1 => prop_oneof![9 => Just(Step::Tick), 1 => Just(Step::Drain)],
        1 => prop_oneof![4 => Just(Step::Tick), 1 => Just(Step::Restart)],
    ]
}

/// What may happen besides to a group that keeps the order of keys.
fn ordered_step() -> impl Strategy<Value = Step> {
    prop_oneof![40 => step(), 1 => any::<Option<bool>>().prop_map(Step::Order)]
}

fn play(mut world: World, steps: Vec<Step>) {
    for step in steps {
        world.step(step);
        world.check();
    }
    world.run_to_rest();
    world.check();
    world.consume_the_rest();
}

proptest! {
    #[test]
    fn of_a_process_one_at_a_time_in_order_and_nothing_is_forgotten(
        steps in proptest::collection::vec(ordered_step(), 1..250),
        dead_blocks: bool,
        link_events in prop_oneof![Just(usize::MAX), 1_usize..6],
    ) {
        play(World::ordered(link_events, dead_blocks), steps);
    }

    #[test]
    fn one_holder_one_outcome_and_nothing_is_forgotten(
        steps in proptest::collection::vec(step(), 1..250),
        link_events in prop_oneof![Just(usize::MAX), 1_usize..6],
        stalls: bool,
    ) {
        // Where the bytes of links hold back nobody, and nothing is drained.
        let stalls = stalls && link_events == usize::MAX;
        let steps: Vec<_> = steps.into_iter().filter(|step| !stalls || !matches!(step, Step::Drain)).collect();
        let mut world = World::new(link_events);
        for (at, step) in steps.into_iter().enumerate() {
            world.step(step);
            world.check();
            if stalls && at % 10 == 9 {
                world.stall();
            }
        }
        play(world, Vec::new());
    }
}

#[test]
fn what_two_bindings_match_is_delivered_once() {
    let mut world = World::new(usize::MAX);
    for patterns in [0, 1] {
        world.step(Step::Bind { patterns, orphans: 0 });
        world.step(Step::Join { binding: patterns, link: None, credit: 4, concurrency: 1 });
    }
    world.run_to_rest();
    world.step(Step::Publish { domain: 0, events: 5, npm: Npm::No });
    world.step(Step::Dispatch);
    assert_eq!(world.held(), 5);
    world.check();
}

#[test]
fn a_page_that_shows_more_than_was_dispatched_delivers_nothing_twice() {
    let mut world = World::new(usize::MAX);
    world.step(Step::Bind { patterns: 0, orphans: 0 });
    world.step(Step::Join { binding: 0, link: None, credit: 4, concurrency: 1 });
    world.step(Step::Publish { domain: 0, events: 2, npm: Npm::No });
    world.step(Step::Read(0));
    world.step(Step::Page(0));
    world.step(Step::Dispatch);
    assert_eq!(world.held(), 2);
    world.check();
}

#[test]
fn of_a_lost_link_the_oldest_count_as_attempts_also_for_a_consumer_that_comes_at_once() {
    let mut world = World::new(usize::MAX);
    world.step(Step::Bind { patterns: 0, orphans: 0 });
    world.step(Step::Join { binding: 0, link: None, credit: 4, concurrency: 2 });
    world.run_to_rest();
    world.step(Step::Publish { domain: 0, events: 4, npm: Npm::No });
    world.step(Step::Dispatch);
    world.step(Step::LinkGone(0));
    world.step(Step::Join { binding: 0, link: None, credit: 4, concurrency: 2 });
    world.step(Step::Read(0));
    world.step(Step::Page(0));
    assert_eq!(world.held(), 0, "a page read now would not know the attempts");
    world.step(Step::Commit);
    world.step(Step::Recorded);
    world.step(Step::Read(0));
    world.step(Step::Page(0));
    assert_eq!(world.attempts_held(), [2, 2, 1, 1]);
}

#[test]
fn the_bytes_of_a_link_hold_back_its_consumers_but_each_may_have_one() {
    let mut world = World::new(2);
    world.step(Step::Bind { patterns: 0, orphans: 0 });
    world.step(Step::Join { binding: 0, link: None, credit: 4, concurrency: 1 });
    for _ in 0..2 {
        world.step(Step::Join { binding: 0, link: Some(0), credit: 4, concurrency: 1 });
    }
    world.run_to_rest();
    world.step(Step::Publish { domain: 0, events: 8, npm: Npm::No });
    world.step(Step::Dispatch);
    assert_eq!(world.held(), 3);
    world.run_to_rest();
    assert_eq!(world.held(), 0);
}

#[test]
fn a_consumer_that_its_link_held_back_gets_more_once_another_one_acks() {
    let mut world = World::new(2);
    world.step(Step::Bind { patterns: 0, orphans: 0 });
    world.step(Step::Join { binding: 0, link: None, credit: 4, concurrency: 1 });
    world.step(Step::Join { binding: 0, link: Some(0), credit: 4, concurrency: 1 });
    world.run_to_rest();
    world.step(Step::Publish { domain: 0, events: 6, npm: Npm::No });
    world.step(Step::Dispatch);
    assert_eq!(world.held(), 2);
    let last = world.holder(1);
    world.step(Step::Stop(last));
    world.step(Step::Ack(1));
    assert_eq!(world.held(), 2, "the other one got what the stopped one may no longer have");
}

#[test]
fn a_deleted_event_goes_to_nobody_whether_it_waits_is_claimed_or_is_being_read() {
    let mut world = World::new(usize::MAX);
    world.step(Step::Bind { patterns: 0, orphans: 0 });
    world.step(Step::Join { binding: 0, link: None, credit: 2, concurrency: 2 });
    world.step(Step::Publish { domain: 0, events: 2, npm: Npm::No });
    world.step(Step::Dispatch);
    world.step(Step::Read(0));
    world.step(Step::Delete(0));
    world.step(Step::Dispatch);
    world.step(Step::Page(0));
    assert_eq!(world.held(), 1, "of two that were read");
    world.step(Step::Publish { domain: 0, events: 3, npm: Npm::No });
    world.step(Step::Dispatch);
    assert_eq!(world.held(), 2);
    for _ in 0..3 {
        world.step(Step::Delete(1));
    }
    world.step(Step::Dispatch);
    world.step(Step::Ack(0));
    assert_eq!(world.held(), 1, "two of them waited");
    world.step(Step::Release(0));
    assert_eq!(world.held(), 0, "one was claimed");
    world.step(Step::Commit);
    world.step(Step::Recorded);
    world.check();
    world.run_to_rest();
}

#[test]
fn an_event_that_comes_back_while_a_page_is_read_keeps_its_attempts() {
    let mut world = World::new(usize::MAX);
    for patterns in [0, 1] {
        world.step(Step::Bind { patterns, orphans: 0 });
    }
    for binding in [1, 0] {
        world.step(Step::Join { binding, link: None, credit: 1, concurrency: 1 });
    }
    world.run_to_rest();
    // More than the window of the binding for everything, of which the other one wants nothing.
    world.step(Step::Publish { domain: 1, events: 10, npm: Npm::No });
    world.step(Step::Dispatch);
    for _ in 0..6 {
        world.step(Step::Ack(0));
    }
    world.step(Step::Read(0));
    world.step(Step::Publish { domain: 0, events: 1, npm: Npm::No });
    world.step(Step::Dispatch);
    assert_eq!(world.held(), 2);
    world.step(Step::LinkGone(0));
    world.step(Step::Page(0));
    world.check();
    world.run_to_rest();
}

#[test]
fn npm_links_hear_of_an_event_once_it_is_claimed_for_a_consumer_that_is_ready() {
    let mut world = World::new(usize::MAX);
    world.step(Step::Bind { patterns: 0, orphans: 0 });
    world.step(Step::Join { binding: 0, link: None, credit: 1, concurrency: 1 });
    world.run_to_rest();
    world.step(Step::Publish { domain: 0, events: 1, npm: Npm::Link });
    world.step(Step::Dispatch);
    assert_eq!((world.held(), world.is_told(101)), (0, false));
    world.step(Step::Commit);
    world.step(Step::Recorded);
    assert_eq!((world.held(), world.is_told(101)), (1, true));
    world.step(Step::NpmClaims(0));
    assert!(!world.is_npms(101), "an npm spoke comes too late");
}

#[test]
fn what_nobody_is_ready_for_is_told_at_once_and_offered_after_a_moment() {
    let mut world = World::new(usize::MAX);
    world.step(Step::Bind { patterns: 0, orphans: 0 });
    world.step(Step::Join { binding: 0, link: None, credit: 1, concurrency: 1 });
    world.run_to_rest();
    world.step(Step::Publish { domain: 0, events: 1, npm: Npm::No });
    world.step(Step::Publish { domain: 0, events: 2, npm: Npm::Link });
    world.step(Step::Dispatch);
    assert!(world.is_told(102) && world.is_told(103));
    world.step(Step::NpmClaims(0));
    world.step(Step::Ack(0));
    for _ in 0..4 {
        world.step(Step::Commit);
        world.step(Step::Recorded);
        assert_eq!(world.held(), 0, "the time of npm spokes isn't over");
        world.step(Step::Tick);
    }
    world.run_to_rest();
    assert!(world.is_npms(102), "it was never handed out");
    world.check();
}
