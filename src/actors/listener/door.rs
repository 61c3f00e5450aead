//! The door: a permit, then accept, then TLS under a deadline off the accept loop, then a connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use actix_rt::ArbiterHandle;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};
use tokio_rustls::server::TlsStream;
use tracing::{Instrument as _, Span, field};

use super::{Listener, OpenLink, Opened};
use crate::{
    actors::{
        clock::now_millis,
        connection::{Connection, ConnectionConfig, Core, Surroundings},
        mail::Handle,
        monitor::Monitor,
        outlet::{LinkId, Outlet},
        warden::{Tls, Warden},
    },
    event::{Fault, Uid, code},
    metrics::{ActorKind, HandshakeFault, Metrics},
    pki::{self, Fingerprint, PkiError, Revoked},
    store::Store,
    wire,
};

/// How long the accept loop rests after the system refused: it lacks descriptors, say.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What a [`Listener`] is told at its start.
pub struct ListenerConfig {
    /// Links at once.
    pub connections: usize,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// npm links are probed by TCP after so long without traffic.
    pub keep_alive: Duration,
    /// Who we are and whom we trust, as of now.
    pub tls: watch::Receiver<Tls>,
    /// Whose links are to be cut.
    pub revoked: watch::Receiver<Revoked>,
    /// For every connection.
    pub connection: ConnectionConfig,
    /// The threads that links are spread over.
    pub arbiters: Vec<ArbiterHandle>,
}

/// What the accept loop needs.
pub struct Door {
    /// Bound.
    pub socket: TcpListener,
    /// For every link.
    pub config: Arc<ListenerConfig>,
    /// Links are let in while it holds a core.
    pub core: watch::Receiver<Option<Core>>,
    /// For reads.
    pub store: Store,
    /// Hears of handshakes that fail.
    pub monitor: Handle<Monitor>,
    /// Renews leaves.
    pub warden: Handle<Warden>,
}

/// Accepts until the listener closes; then the socket is closed with it.
pub(super) async fn accept_all(
    mut door: Door,
    permits: Arc<Semaphore>,
    listener: Handle<Listener>,
    metrics: Metrics,
    mut closing: watch::Receiver<bool>,
) {
    let connections = metrics.meter(ActorKind::Connection);
    let mut next = 0_u64;
    loop {
        let (permit, stream, peer) = tokio::select! {
            _ = closing.wait_for(|closing| *closing) => return,
            accepted = accept_one(&door, &permits) => accepted,
        };
        // While the core restarts, links wait here and in the backlog.
        let core = tokio::select! {
            _ = closing.wait_for(|closing| *closing) => return,
            core = door.core.wait_for(Option::is_some) => core.ok().and_then(|core| core.clone()),
        };
        let Some(core) = core else { return };
        next += 1;
        let link = LinkId(next);
        let around = Surroundings {
            config: door.config.connection.clone(),
            core,
            store: door.store.clone(),
            listener: listener.clone(),
            monitor: door.monitor.clone(),
            warden: door.warden.clone(),
            metrics: metrics.clone(),
            meter: connections.clone(),
            span: link_span(link, peer),
        };
        let config = door.config.clone();
        let turn = usize::try_from(next).unwrap_or_default() % config.arbiters.len().max(1);
        let Some(arbiter) = config.arbiters.get(turn).cloned() else { return };
        let core = door.core.clone();
        let span = around.span.clone();
        let coming = async move { welcome(stream, peer, link, permit, config, core, around).await };
        let spawned = arbiter.spawn(coming.instrument(span));
        if !spawned {
            tracing::error!("a thread for links is gone");
            return;
        }
    }
}

async fn accept_one(
    door: &Door,
    permits: &Arc<Semaphore>,
) -> (OwnedSemaphorePermit, std::net::TcpStream, SocketAddr) {
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else {
            // The semaphore is never closed.
            return std::future::pending().await;
        };
        match door.socket.accept().await.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
            Ok((stream, peer)) => return (permit, stream, peer),
            Err(error) => {
                tracing::warn!(%error, "a link can't be accepted: are there descriptors left?");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// What every line about a link is told with; its parent is the hub's, since this runs in the hub's thread. On at every
/// level, so that no line lacks it: it is made once per link and entered once per read.
fn link_span(link: LinkId, peer: SocketAddr) -> Span {
    tracing::error_span!("link", conn.id = %link, %peer, spoke.id = field::Empty)
}

/// Handshake and first byte, then the session. Runs on the link's own thread.
async fn welcome(
    stream: std::net::TcpStream,
    peer: SocketAddr,
    link: LinkId,
    permit: OwnedSemaphorePermit,
    config: Arc<ListenerConfig>,
    mut core: watch::Receiver<Option<Core>>,
    mut around: Surroundings,
) {
    let shaken = match timeout(config.handshake, shake(stream, &config)).await {
        Ok(shaken) => shaken,
        Err(_) => Err(NoLink {
            kind: HandshakeFault::Timeout,
            fault: Fault::refused(
                code::HANDSHAKE_TIMEOUT,
                format!(
                    "the handshake wasn't done after {:?}: is a TLS client at the other end?",
                    config.handshake
                ),
            ),
        }),
    };
    match shaken {
        Ok((socket, uid, shown)) => {
            around.span.record("spoke.id", uid.as_str());
            // The core may have been restarted meanwhile, or be about to.
            let Ok(Some(core)) = core.wait_for(Option::is_some).await.map(|core| core.clone()) else {
                return;
            };
            let (outlet, outflow) = Outlet::new(link, config.connection.outbound_bytes);
            let open = OpenLink {
                outlet: outlet.clone(),
                uid: uid.clone(),
                peer,
                since: now_millis(),
                shown: shown.clone(),
            };
            around.listener.signal(Opened { link: open, core: core.clone() });
            around.core = core;
            Connection::spawn(socket, (uid, shown), permit, (outlet, outflow), around);
        }
        Err(NoLink { kind, fault }) => {
            around.metrics.hub().handshakes_failed.of(kind).inc();
            tracing::debug!(%fault, "handshake failed");
            around.monitor.handshake_failed(peer, kind, fault);
        }
    }
}

/// Why a connection didn't become a link.
struct NoLink {
    kind: HandshakeFault,
    fault: Fault,
}

impl From<PkiError> for NoLink {
    fn from(error: PkiError) -> Self {
        let kind = match error {
            // Its code is that of certificates, since clients do the same about both.
            PkiError::Handshake { .. } => HandshakeFault::Tls,
            _ => HandshakeFault::of(error.code()),
        };
        Self { kind, fault: error.into() }
    }
}

async fn shake(
    stream: std::net::TcpStream,
    config: &ListenerConfig,
) -> Result<(TlsStream<TcpStream>, Uid, Box<[Fingerprint]>), NoLink> {
    let lost = |error: std::io::Error| NoLink {
        kind: HandshakeFault::Transport,
        fault: Fault::retryable(code::LINK_LOST, format!("the link broke: {error}"), Duration::ZERO),
    };
    let stream = TcpStream::from_std(stream).map_err(lost)?;
    stream.set_nodelay(true).map_err(lost)?;
    let probes = TcpKeepalive::new().with_time(config.keep_alive);
    SockRef::from(&stream).set_tcp_keepalive(&probes).map_err(lost)?;
    let Tls(tls) = config.tls.borrow().clone();
    let mut socket = tls.accept(stream).await.map_err(|error| pki::tls::explain(&error))?;
    let chain = socket.get_ref().1.peer_certificates().unwrap_or_default();
    let (uid, shown) = (pki::tls::peer_uid(chain)?, Fingerprint::of_chain(chain));
    // Alone in its TLS record: npm clients compare their whole first read with it.
    socket.write_all(&[wire::READY]).await.map_err(lost)?;
    socket.flush().await.map_err(lost)?;
    Ok((socket, uid, shown))
}
