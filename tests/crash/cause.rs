//! Why a claim was taken from a consumer that lived, or why it never heard what became of its ack.

use std::{fmt, iter};

use crate::{
    account::{AWAKE, Account, STOPPED, Worker},
    consumer::LEASE,
};

/// What may have taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The hub was killed, and with it every link and claim.
    Hub,
    /// Its own consumer was stopped, for longer than the lease.
    Stop,
    /// Its own consumer was held up for so long that the lease ran out.
    Lease,
}

/// What the hub took back just before may be written down as handed out so much later, in milliseconds.
const SLACK: i64 = 500;

/// Leases are extended after a third of their time: only who says nothing for the rest of it loses one.
fn held_up() -> i64 {
    i64::try_from((LEASE * 2 / 3).as_millis()).unwrap()
}

impl Account {
    /// Why this consumer may have lost, between these moments, what it had.
    pub fn cause(&self, worker: &Worker, from: i64, to: i64) -> Option<Cause> {
        let back = self.hub_back.iter().copied().chain(iter::repeat(i64::MAX));
        let mut away = self.hub_kills.iter().zip(back);
        let stopped = i64::try_from(STOPPED.as_millis()).unwrap() + AWAKE;
        if away.any(|(down, up)| *down <= to && from <= up.saturating_add(SLACK)) {
            Some(Cause::Hub)
        } else if worker.stops.iter().any(|stop| stop.at <= to && from <= stop.at + stopped) {
            Some(Cause::Stop)
        } else if silence(worker, from, to) >= held_up() {
            Some(Cause::Lease)
        } else {
            None
        }
    }
}

/// The longest time of which some lies between these moments and in which it wrote nothing down.
fn silence(worker: &Worker, from: i64, to: i64) -> i64 {
    let first = worker.lines.partition_point(|line| line.at <= from).saturating_sub(1);
    let pairs = worker.lines[first..].windows(2).take_while(|pair| pair[0].at < to);
    pairs.map(|pair| pair[1].at - pair[0].at).max().unwrap_or(0)
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Hub => "the hub was killed",
            Cause::Stop => "its consumer was stopped",
            Cause::Lease => "its lease ran out",
        })
    }
}
