//! The parts of the way of an event that are pure: `cargo bench --bench micro [FILTER]` measures times,
//! `benches/instructions` counts instructions, which other programs on the machine don't disturb.

#![allow(clippy::unwrap_used, missing_docs, reason = "a bench that fails may panic")]

#[path = "micro/codec.rs"]
mod codec;
#[path = "micro/leases.rs"]
mod leases;
#[path = "micro/matching.rs"]
mod matching;

use std::process::ExitCode;

/// A piece of work: so many operations.
type Work = (&'static str, fn(usize));

/// What instructions are counted of.
const WORKS: [Work; 9] = [
    ("read-publish", codec::read_publish),
    ("write-publish", codec::write_publish),
    ("write-event", codec::write_event),
    ("write-claim", codec::write_claim),
    ("read-ack", codec::read_ack),
    ("match-exact", matching::exact),
    ("match-wildcards", matching::wildcards),
    ("match-nothing", matching::nothing),
    ("hold-and-let-go", leases::hold_and_let_go),
];

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["instructions"] => WORKS.iter().for_each(|(name, _)| println!("{name}")),
        ["instructions", name, times] => {
            let Some((_, work)) = WORKS.iter().find(|(known, _)| known == name) else {
                eprintln!("no such work: {name}");
                return ExitCode::FAILURE;
            };
            work(times.parse().unwrap());
        }
        _ => divan::main(),
    }
    ExitCode::SUCCESS
}
