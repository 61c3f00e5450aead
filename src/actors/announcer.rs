//! Tells peer hubs that this one is there, and keeps its row in the `hub` table open.

mod dial;
mod peers;
mod snapshot;

use std::{sync::Arc, time::Duration};

pub use peers::living;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, fut::wrap_future};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{sync::watch, task::JoinSet};

use super::{
    life::{Halt, Life},
    listener::Listener,
    mail::{Handle, mail, measured},
    monitor::{Monitor, Notice},
    snapshot::Snapshot,
};
use crate::{
    event::Uid,
    metrics::Meter,
    pki::PkiError,
    store::{HubRow, Store},
    wire,
};

/// How the hub proves itself to the peer of this id, and the name to ask for. Asked anew for each dial, since the
/// hub's certificate is renewed while it runs.
pub type Credentials =
    Arc<dyn Fn(&str) -> Result<(Arc<ClientConfig>, ServerName<'static>), PkiError> + Send + Sync>;

/// What an [`Announcer`] is told at its start.
#[derive(Clone)]
pub struct AnnouncerConfig {
    /// This hub.
    pub hub: Uid,
    /// Where spokes and other hubs dial it.
    pub host: String,
    /// At this port.
    pub port: u16,
    /// How long one peer may take, from the dial to the end.
    pub timeout: Duration,
    /// Who this hub is.
    pub credentials: Credentials,
    /// The hubs that live, this one first: what v1 links are told.
    pub hubs: watch::Sender<Arc<[wire::HubAddress]>>,
}

impl std::fmt::Debug for AnnouncerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnnouncerConfig").field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// Peers that are told, the latest first; rows of hubs that crashed pile up. As many are listed.
pub const MOST_PEERS: u64 = 256;
/// Peers that are dialed at once.
const AT_ONCE: usize = 8;
/// How often the hub looks at its own row, and at who else lives.
const LOOK: Duration = Duration::from_secs(2);

/// Ends the actor by a panic, to show that it comes back.
#[derive(Debug)]
pub struct Panic;
mail!(Panic => ());

/// - **Role**: tells each other hub that runs, once at the start, that this one is there; takes back a `quit` that a
///   peer sets on this hub's row; knows which hubs live, for this hub's v1 links.
/// - **Owns**: the dials that are under way; the list of hubs that live, from which each `welcome` has it.
/// - **Receives**: [`Halt`] and [`Panic`] from the guardian, [`Snapshot`] from the hub; its timer.
/// - **Sends**: `online` to peers, over links of its own; [`Lives`](super::listener::Lives) to the listener, of each peer
///   that comes to live; [`Notice`]s to the monitor.
/// - **Capacity**: 256 peers, 8 at a time, each under a deadline; one look at the row at a time.
/// - **On failure**: restarted with back-off, and tells the peers again, which changes nothing for them. A peer that
///   can't be reached is left alone: only the peer itself knows whether it runs.
#[derive(Debug)]
pub struct Announcer {
    meter: Meter,
    config: AnnouncerConfig,
    store: Store,
    monitor: Handle<Monitor>,
    listener: Handle<Listener>,
    looking: bool,
    reopened: u64,
    _life: Life,
}

measured!(Announcer: Halt, Panic, Snapshot);

impl Announcer {
    /// An announcer that begins once it is started.
    #[must_use]
    pub fn new(
        config: AnnouncerConfig,
        store: Store,
        (monitor, listener): (Handle<Monitor>, Handle<Listener>),
        meter: Meter,
        life: Life,
    ) -> Self {
        Self { meter, config, store, monitor, listener, looking: false, reopened: 0, _life: life }
    }

    fn look(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.looking, true) {
            return;
        }
        let (store, hub) = (self.store.clone(), self.config.hub.clone());
        let look = async move { (store.reopen_hub(&hub).await, store.live_hubs(MOST_PEERS).await) };
        ctx.spawn(wrap_future::<_, Self>(look).map(|(reopened, live), announcer, _| {
            announcer.looking = false;
            match live {
                Ok(live) => announcer.know(&live),
                Err(error) => tracing::warn!(%error, "which other hubs live isn't known"),
            }
            announcer.meter.progress();
            match reopened {
                Ok(true) => {
                    announcer.reopened += 1;
                    tracing::warn!("another hub had marked this one as stopped: it runs, and says so again");
                    announcer.monitor.note(Notice::fault("marked as stopped by another hub", "taken back"));
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "whether this hub's row says that it runs isn't known"),
            }
        }));
    }
}

impl Actor for Announcer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let announce = announce(self.config.clone(), self.store.clone(), self.monitor.clone());
        ctx.spawn(wrap_future(announce));
        ctx.run_interval(LOOK, Self::look);
    }
}

impl Handler<Halt> for Announcer {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Panic> for Announcer {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("the announcer was told to panic");
    }
}

/// Tells all other hubs that run, some at a time.
async fn announce(config: AnnouncerConfig, store: Store, monitor: Handle<Monitor>) {
    let mut peers = match store.open_hubs(MOST_PEERS).await {
        Ok(peers) => peers.into_iter().filter(|peer| peer.id != config.hub),
        Err(error) => {
            tracing::warn!(%error, "other hubs can't be told of this one");
            return;
        }
    };
    let record = wire::npm::online(&config.hub, &config.host, config.port);
    let mut dials = JoinSet::new();
    loop {
        while dials.len() < AT_ONCE
            && let Some(peer) = peers.next()
        {
            let (config, record) = (config.clone(), record.clone());
            dials.spawn(async move {
                let told = dial::tell(&peer, &config.credentials, &record, config.timeout).await;
                (peer, told)
            });
        }
        match dials.join_next().await {
            None => return,
            Some(Ok((HubRow { id, .. }, Ok(())))) => tracing::info!(peer.id = %id, "told another hub"),
            Some(Ok((HubRow { id, external_ip, external_port, .. }, Err(error)))) => {
                tracing::warn!(peer.id = %id, %error, "another hub can't be told of this one");
                let at =
                    format!("{id} at {external_ip}:{external_port} can't be told that this hub is there");
                monitor.note(Notice::fault(&at, &error.to_string()));
            }
            Some(Err(error)) => tracing::error!(%error, "a dial ended by a panic"),
        }
    }
}
