//! The table of leases, with 10,000 claims in hand.

use std::hint::black_box;

use divan::Bencher;
use eventflow::actors::deliveries::leases::Leases;

const HELD: u64 = 10_000;
/// As long as leases usually are, in milliseconds.
const LEASE: u64 = 30_000;

fn table() -> Leases {
    let mut leases = Leases::default();
    (0..HELD).for_each(|token| leases.hold(token, LEASE + token / 10));
    leases
}

/// A claim is handed out, the oldest is acked.
fn turn(leases: &mut Leases, token: u64) {
    leases.hold(HELD + token, LEASE + (HELD + token) / 10);
    leases.let_go(token);
    black_box(leases.next());
}

pub fn hold_and_let_go(times: usize) {
    let mut leases = table();
    (0..times as u64).for_each(|token| turn(&mut leases, token));
}

#[divan::bench]
fn holds_and_lets_go(bencher: Bencher<'_, '_>) {
    let (mut leases, mut token) = (table(), 0);
    bencher.bench_local(|| {
        turn(&mut leases, token);
        token += 1;
    });
}
