//! What a [`Listener`] tells about itself and about the links.

use actix::Handler;
use serde::Serialize;

use super::{Listener, OpenLink};
use crate::actors::{
    mail::mail,
    outlet::{LinkId, Traffic},
    snapshot::{MOST_ROWS, Snapshot, State},
};

/// Asks for the links that moved most bytes, [`MOST_ROWS`] at most.
#[derive(Debug)]
pub struct Busiest;
mail!(Busiest => BusiestLinks);

/// The answer, busiest first.
#[derive(Debug, actix::MessageResponse)]
pub struct BusiestLinks(pub Vec<LinkState>);

/// One link.
#[derive(Debug, Clone, Serialize)]
pub struct LinkState {
    /// Its number.
    #[serde(rename = "link")]
    pub id: LinkId,
    /// Who it is, by its certificate.
    pub uid: String,
    /// Its address.
    pub peer: String,
    /// When it came, in milliseconds since 1970.
    pub since: i64,
    #[serde(flatten)]
    traffic: Traffic,
}

/// The door, and who is in.
#[derive(Debug, Serialize)]
struct ListenerState {
    /// Links that are open.
    links: usize,
    /// Places that are free. What is neither free nor a link is a handshake, or kept ready for the next client.
    permits_left: usize,
    /// Places there are.
    permits: usize,
    /// Nobody is let in any more.
    closing: bool,
}

impl Handler<Snapshot> for Listener {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        State::of(&ListenerState {
            links: self.links.len(),
            permits_left: self.permits.available_permits(),
            permits: self.places,
            closing: *self.closing.borrow(),
        })
    }
}

impl Handler<Busiest> for Listener {
    type Result = BusiestLinks;

    fn handle(&mut self, _: Busiest, _: &mut Self::Context) -> Self::Result {
        let mut links: Vec<_> = self.links.values().map(|link| (link.outlet.traffic(), link)).collect();
        links.sort_unstable_by_key(|(traffic, link)| {
            (std::cmp::Reverse(traffic.sent_bytes + traffic.received_bytes), link.outlet.id())
        });
        links.truncate(MOST_ROWS);
        let state = |(traffic, link): (Traffic, &OpenLink)| LinkState {
            id: link.outlet.id(),
            uid: link.uid.to_string(),
            peer: link.peer.to_string(),
            since: link.since,
            traffic,
        };
        BusiestLinks(links.into_iter().map(state).collect())
    }
}
