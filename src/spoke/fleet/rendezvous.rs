//! Which of several hubs a process belongs to: rendezvous hashing, the same in every client.

use std::sync::Arc;

/// FNV-1a, 64 bit.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
/// Stands between the hub and the process.
const BETWEEN: u8 = 0x1f;

/// A hub, as a candidate.
#[derive(Debug, Clone)]
pub(super) struct Hub {
    pub(super) id: Arc<str>,
    /// What its id contributes.
    seed: u64,
}

impl Hub {
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.into(), seed: fnv(fnv(OFFSET, id.as_bytes()), &[BETWEEN]) }
    }

    /// How much it wants this process: the one with the highest score has it. Whoever joins or leaves moves only the
    /// processes that it gets or had.
    pub(super) fn score(&self, pid: &str) -> u64 {
        mixed(fnv(self.seed, pid.as_bytes()))
    }
}

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// The finalizer of MurmurHash3: FNV alone leaves short texts too alike.
fn mixed(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home<'a>(hubs: &'a [Hub], pid: &str) -> &'a str {
        &hubs.iter().max_by_key(|hub| hub.score(pid)).unwrap().id
    }

    #[test]
    fn processes_spread_evenly_and_only_those_of_a_hub_that_leaves_move() {
        let hubs = ["HUB-1", "HUB-2", "HUB-3"].map(Hub::new);
        let pids: Vec<_> = (0..3_000).map(|n| format!("order-{n}")).collect();
        for hub in &hubs {
            let count = pids.iter().filter(|pid| home(&hubs, pid) == &*hub.id).count();
            assert!((900..=1_100).contains(&count), "{count} of 3,000 at {}", hub.id);
        }
        for pid in pids.iter().filter(|pid| home(&hubs, pid) != "HUB-3") {
            assert_eq!(home(&hubs, pid), home(&hubs[..2], pid));
        }
    }

    #[test]
    fn the_score_is_the_one_of_the_protocol() {
        let hub = Hub::new("HUB-1");
        assert_eq!(fnv(OFFSET, b"a"), 0xaf63_dc4c_8601_ec8c, "FNV-1a's own test vector");
        assert_eq!(hub.score("order-1"), mixed(fnv(OFFSET, b"HUB-1\x1forder-1")));
    }
}
