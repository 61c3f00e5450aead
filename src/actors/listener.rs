//! Knows all links that are open, and lets new ones in through its door.

mod door;
mod snapshot;

use std::{collections::HashMap, net::SocketAddr, sync::Arc};

use actix::{Actor, AsyncContext, Context, Handler, fut::wrap_future};
use tokio::sync::{Semaphore, watch};

use self::door::accept_all;
pub use self::{
    door::{Door, ListenerConfig},
    snapshot::{Busiest, BusiestLinks, LinkState},
};
use super::{
    connection::{self, Core},
    life::Life,
    mail::{Handle, mail, measured},
    outlet::{LinkId, Outlet, Word},
    snapshot::Snapshot,
};
use crate::{
    event::{Fault, Uid},
    metrics::{CutReason, Meter, Metrics},
    pki::{self, Fingerprint, PkiError, Revoked},
    wire::HubAddress,
};

/// A link that is there.
#[derive(Debug)]
pub struct OpenLink {
    /// Its way out.
    pub outlet: Outlet,
    /// Who it is, by its certificate.
    pub uid: Uid,
    /// Its address.
    pub peer: SocketAddr,
    /// When it came, in milliseconds since 1970.
    pub since: i64,
    /// The certificates that the other end showed.
    pub shown: Box<[Fingerprint]>,
}

/// A link came.
#[derive(Debug)]
pub struct Opened {
    /// The link.
    pub link: OpenLink,
    /// The core that serves it.
    pub core: Core,
}
mail!(Opened => ());

/// A link ended.
#[derive(Debug)]
pub struct Closed(pub LinkId);
mail!(Closed => ());

/// Cuts all links, with a reason.
#[derive(Debug)]
pub struct CutAll {
    /// For the metrics.
    pub reason: CutReason,
    /// For the other ends.
    pub fault: Fault,
}
mail!(CutAll => ());

/// Cuts the links whose certificates are revoked; how many there were.
#[derive(Debug)]
pub struct CutRevoked;
mail!(CutRevoked => usize);

/// No more links are let in.
#[derive(Debug)]
pub struct Close;
mail!(Close => ());

/// Tells all links that the hub is stopping. Comes after [`Close`].
#[derive(Debug)]
pub struct Announce;
mail!(Announce => ());

/// A peer hub is there: all other links are told. Comes once per link at most.
#[derive(Debug)]
pub struct Online {
    /// The peer's own link.
    pub from: LinkId,
    /// The peer.
    pub hub: HubAddress,
}
mail!(Online => ());

/// A peer hub lives: all v1 links are told. Comes once per peer that comes to live, at most once in two seconds.
#[derive(Debug)]
pub struct Lives(pub HubAddress);
mail!(Lives => ());

/// Asks for the number of links.
#[derive(Debug)]
pub struct Links;
mail!(Links => usize);

/// - **Role**: lets links in and knows all that are open.
/// - **Owns**: the listening socket, the permits, the outlets of all links and what they showed.
/// - **Receives**: [`Opened`], [`Closed`] and [`Online`] from handshakes and connections; [`Lives`] from the announcer;
///   [`Close`], [`Announce`], [`CutAll`], [`Links`] from the guardian; [`CutRevoked`] from the warden; [`Snapshot`] and
///   [`Busiest`] from the hub.
/// - **Sends**: words to connections, through their outlets.
/// - **Capacity**: a permit per link is taken before `accept`; without one, clients wait in the system's backlog.
///   Messages are bounded by the links.
/// - **On failure**: the hub drains and ends: without it no link can be let in.
pub struct Listener {
    meter: Meter,
    metrics: Metrics,
    links: HashMap<LinkId, OpenLink>,
    revoked: watch::Receiver<Revoked>,
    permits: Arc<Semaphore>,
    /// Permits there are.
    places: usize,
    door: Option<Door>,
    closing: watch::Sender<bool>,
    _life: Life,
}

measured!(Listener: Opened, Closed, Online, Lives, CutAll, CutRevoked, Close, Announce, Links, Snapshot, Busiest);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("links", &self.links.len()).finish_non_exhaustive()
    }
}

impl Listener {
    /// A listener that opens this door once it is started.
    #[must_use]
    pub fn new(door: Door, metrics: Metrics, meter: Meter, life: Life) -> Self {
        let places = door.config.connections;
        Self {
            meter,
            metrics,
            links: HashMap::new(),
            revoked: door.config.revoked.clone(),
            permits: Arc::new(Semaphore::new(places)),
            places,
            door: Some(door),
            closing: watch::Sender::new(false),
            _life: life,
        }
    }
}

impl Actor for Listener {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(door) = self.door.take() {
            let listener = Handle::new(ctx.address(), self.meter.clone());
            let closing = self.closing.subscribe();
            let permits = self.permits.clone();
            ctx.spawn(wrap_future(accept_all(door, permits, listener, self.metrics.clone(), closing)));
        }
    }
}

impl Handler<Opened> for Listener {
    type Result = ();

    fn handle(&mut self, message: Opened, _: &mut Self::Context) {
        let Opened { link, core } = message;
        let outlet = &link.outlet;
        if *self.closing.borrow() {
            outlet.cut(CutReason::Draining, super::draining());
        } else if !core.is_alive() {
            // It failed while the link came: a `CutAll` for it may have been before.
            outlet.cut(CutReason::Restart, connection::restart());
        } else if self.revoked.borrow().any_of(&link.shown) {
            // It was revoked while the link came: a `CutRevoked` for it may have been before.
            outlet.cut(CutReason::Revoked, revoked());
        }
        self.links.insert(outlet.id(), link);
    }
}

impl Handler<Closed> for Listener {
    type Result = ();

    fn handle(&mut self, message: Closed, _: &mut Self::Context) {
        self.links.remove(&message.0);
    }
}

impl Handler<CutAll> for Listener {
    type Result = ();

    fn handle(&mut self, message: CutAll, _: &mut Self::Context) {
        for OpenLink { outlet, .. } in self.links.values() {
            outlet.cut(message.reason, message.fault.clone());
        }
    }
}

impl Handler<CutRevoked> for Listener {
    type Result = usize;

    fn handle(&mut self, _: CutRevoked, _: &mut Self::Context) -> Self::Result {
        let set = self.revoked.borrow();
        let cut = self.links.values().filter(|link| !link.outlet.is_cut() && set.any_of(&link.shown));
        cut.map(|link| link.outlet.cut(CutReason::Revoked, revoked())).count()
    }
}

impl Handler<Close> for Listener {
    type Result = ();

    fn handle(&mut self, _: Close, _: &mut Self::Context) {
        self.closing.send_replace(true);
    }
}

impl Handler<Announce> for Listener {
    type Result = ();

    fn handle(&mut self, _: Announce, _: &mut Self::Context) {
        for OpenLink { outlet, .. } in self.links.values() {
            outlet.tell(Word::Drain);
        }
    }
}

impl Handler<Online> for Listener {
    type Result = ();

    fn handle(&mut self, message: Online, _: &mut Self::Context) {
        let hub = Arc::new(message.hub);
        for (_, link) in self.links.iter().filter(|(link, _)| **link != message.from) {
            link.outlet.tell(Word::Online(hub.clone()));
        }
    }
}

impl Handler<Lives> for Listener {
    type Result = ();

    fn handle(&mut self, message: Lives, _: &mut Self::Context) {
        let hub = Arc::new(message.0);
        for link in self.links.values() {
            link.outlet.tell(Word::Lives(hub.clone()));
        }
    }
}

impl Handler<Links> for Listener {
    type Result = usize;

    fn handle(&mut self, _: Links, _: &mut Self::Context) -> Self::Result {
        self.links.len()
    }
}

/// The last words to the bearer of a revoked certificate.
fn revoked() -> Fault {
    PkiError::Revoked { certificate: "this link".to_owned(), remedy: pki::tls::REVOKED.to_owned() }.into()
}
