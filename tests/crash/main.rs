//! A program that kills: publishers and four consumer processes at work for two groups, while consumers and the hub are
//! killed by `kill -9` and consumers are stopped for longer than their leases, at random moments. At the end each event
//! must have exactly one outcome in each group, no acked publish may be missing, each event was handled at least once,
//! and each time that one was handled again must have its reason: of a claim that was taken from a consumer that lived, and
//! of an event that two had at once, what took it must have happened in that time. What it prints is the account.
//!
//! `cargo test --test crash` runs some 20 seconds; `-- --minutes 5` longer, `-- --seed N` repeats the moments of another
//! run, `-- --events N` changes the work.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails may panic")]

mod account;
mod books;
mod cause;
mod chaos;
mod consumer;
#[path = "../it/support/engine.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod engine;
mod journal;
#[path = "../it/support/process.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod process;

use std::time::Duration;

/// How long any condition may take before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The group beside the default one.
pub const GROUP: &str = "audit";
/// The domain of the events.
pub const DOMAIN: &str = "crash";

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How many events are published.
    pub events: usize,
    /// Over how long a time.
    pub time: Duration,
    /// What decides the moments.
    pub seed: u64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut plan = Plan { events: 0, time: Duration::from_secs(20), seed: fastrand::u64(..) };
    let mut minutes = 0;
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "consumer" => return consumer::run(&arguments.collect::<Vec<_>>()),
            "--minutes" => minutes = number(),
            "--events" => plan.events = usize::try_from(number()).unwrap(),
            "--seed" => plan.seed = number(),
            // What test runners ask.
            "--list" => return println!("the_program_that_kills: test"),
            "--nocapture" | "--exact" | "--quiet" | "--ignored" | "--test-threads" => {}
            other if "the_program_that_kills".contains(other) => {}
            other => return println!("skipped: the program that kills: not asked for by {other:?}"),
        }
    }
    if minutes > 0 {
        plan.time = Duration::from_secs(60 * minutes);
    }
    if plan.events == 0 {
        plan.events = if minutes > 0 { 100_000 } else { 10_000 };
    }
    books::check();
    println!("{} events in {:?}, --seed {}", plan.events, plan.time, plan.seed);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let account = runtime.block_on(chaos::run(plan));
    println!("{account}");
    let faults = account.faults();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    println!("test result: ok. the program that kills found no fault");
}
