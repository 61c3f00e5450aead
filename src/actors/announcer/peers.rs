//! Which hubs live: what this hub's v1 links are told of others.

use std::sync::Arc;

use super::Announcer;
use crate::{actors::listener::Lives, store::HubRow, wire::HubAddress};

impl Announcer {
    /// These hubs live now, by their leases. Links are told of those that didn't before.
    pub(super) fn know(&self, live: &[HubRow]) {
        let own = HubAddress {
            id: Some(self.config.hub.to_string()),
            host: self.config.host.clone(),
            port: self.config.port,
        };
        let known = self.config.hubs.borrow().clone();
        let (all, new) = compare(own, live, &known);
        if *all != *known {
            self.config.hubs.send_replace(all);
        }
        for hub in new {
            tracing::info!(peer.id = hub.id, host = hub.host, port = hub.port, "another hub lives");
            // As many as there are hubs, when they come to live.
            self.listener.signal(Lives(hub));
        }
    }
}

/// All hubs that live, this one first.
#[must_use]
pub fn living(own: HubAddress, live: &[HubRow]) -> Arc<[HubAddress]> {
    let rows = live.iter().filter(|hub| own.id.as_deref() != Some(hub.id.as_str()));
    let others: Vec<_> = rows
        .map(|hub| HubAddress {
            id: Some(hub.id.to_string()),
            host: hub.external_ip.clone(),
            port: hub.external_port,
        })
        .collect();
    std::iter::once(own).chain(others).collect()
}

/// All hubs that live, and those among them that are new, or have moved.
fn compare(own: HubAddress, live: &[HubRow], known: &[HubAddress]) -> (Arc<[HubAddress]>, Vec<HubAddress>) {
    let all = living(own, live);
    let new = all.iter().skip(1).filter(|hub| !known.contains(hub)).cloned().collect();
    (all, new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Uid;

    fn row(id: &str, port: u16) -> HubRow {
        let ip = "192.0.2.1".to_owned();
        HubRow {
            id: Uid::from_stored(id.to_owned()),
            external_ip: ip.clone(),
            external_port: port,
            internal_ip: ip,
            internal_port: port,
        }
    }

    fn address(id: &str, port: u16) -> HubAddress {
        HubAddress { id: Some(id.to_owned()), host: "192.0.2.1".to_owned(), port }
    }

    #[test]
    fn links_are_told_of_hubs_that_are_new_or_have_moved() {
        let own = address("A", 1);
        let (all, new) = compare(own.clone(), &[row("A", 1), row("B", 2)], std::slice::from_ref(&own));
        assert_eq!((&*all, &*new), (&[own.clone(), address("B", 2)][..], &[address("B", 2)][..]));
        let (again, none) = compare(own.clone(), &[row("A", 1), row("B", 2)], &all);
        assert_eq!((again, none.len()), (all.clone(), 0));
        let (_, moved) = compare(own.clone(), &[row("B", 3)], &all);
        assert_eq!(moved, [address("B", 3)]);
        // Its own lease may be over, or there is none: it is there all the same.
        let (alone, none) = compare(own.clone(), &[], &all);
        assert_eq!((&*alone, none.len()), (&[own][..], 0));
    }
}
