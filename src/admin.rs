//! HTTP for monitoring and operators, by default on 127.0.0.1:50080.
//!
//! - `GET /livez`: 200 as long as HTTP is served at all.
//! - `GET /readyz`: 200 when the hub takes work, else 503; a JSON body says the state and why.
//! - `GET /metrics`: all numbers, as OpenMetrics text if `Accept` names it, else as Prometheus' older text.
//! - `GET /status`, with the operator's token: what hub this is, since when, and its main numbers.
//! - `GET /actors`, with the token: the state and the numbers of each kind of actor.
//! - `GET /backlog`, with the token: how all groups stand; with `?group=NAME` one of them, with its bindings and
//!   consumers (an empty name: the default group).
//! - `GET /events/{id}`, with the token: an event and what became of it; 404 if there is none of this id.
//! - `GET /log`, `PUT /log`, with the token: the log level, looked at and changed while the hub runs.
//! - `POST /backup`, with the token: a copy of the database, made while the hub works; 409 while another is made.
//! - `GET /retention`, with the token: for how long events are kept, by domain, and what would go now.
//! - `POST /history`, with the token: what the npm stack left unfinished, counted or dispatched, page by page.
//! - `GET /certificates`, with the token: all certificates, page by page.
//! - `POST /certificates`, with the token: issues a leaf for a spoke; the answer is its bundle.
//! - `POST /certificates/revoke`, with the token: revokes what an id has, and cuts its links.
//! - anything else: 401 without the operator's token (`Authorization: Bearer …`), 404 with it.
//!
//! Every request must name this machine in `Host`: a loopback name or address, or the configured address;
//! else it is answered by 421. Without that a web page could reach the hub through a browser on the same
//! machine, by a name of its own that it makes point here.
//!
//! A connection serves one request and ends with its answer, within half a minute (a backup as long as it flows). Of 64
//! connections at once the oldest makes room for a new one, so that probes get in whatever others do.

mod access;
mod backlog;
mod backup;
mod body;
mod certificates;
mod connections;
mod endpoint;
mod events;
mod history;
mod inspect;
mod log;
mod problem;
mod retention;
mod status;
mod token;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use actix_web::{App, HttpServer, dev::Server, http::KeepAlive, middleware::from_fn, web};
use tokio::sync::watch;

use crate::{
    event::code,
    metrics::{Metrics, Readiness},
};

pub use backlog::Backlogs;
pub use backup::{Backup, Snapshot};
pub use certificates::{
    Certificate, CertificatePage, Certificates, IssueCertificate, IssuedBundle, RevokedCertificates,
};
pub use events::Events;
pub use history::{Adopted, AskedHistory, Histories, RefusedEvent};
pub use inspect::{About, Inspect};
pub use log::LogControl;
pub use retention::{Outlook, PolicyOutlook, Retention};
pub use status::HubStatus;
pub use token::{AdminToken, TOKEN_FILE};

/// Connections that the server takes, more wait in the listen queue: those that have a place, and as many that were cut
/// and don't know it yet.
const MAX_CONNECTIONS: usize = 2 * connections::MOST;
/// Bytes that the system takes of a connection before they are read. All requests in them are taken apart at once, which
/// takes fifty times their room: so these are few.
const RECEIVED: usize = 4 * 1024;
/// A request's head must be here by then.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Seconds that open requests have to end when the server is told to stop.
const SHUTDOWN_SECONDS: u64 = 2;

/// Where to serve.
#[derive(Debug, Clone, Copy)]
pub struct AdminConfig {
    /// Address and port; port 0 takes any free one.
    pub addr: SocketAddr,
}

/// What the endpoints show. What needs the hub itself goes through an object per concern, which the hub gives.
#[derive(Debug, Clone)]
pub struct AdminState {
    /// The numbers.
    pub metrics: Metrics,
    /// Whether the hub takes work. When its sender is gone, the last value holds.
    pub ready: watch::Receiver<Readiness>,
    /// What opens the rest.
    pub token: AdminToken,
    /// What the hub tells about itself.
    pub inspect: Arc<dyn Inspect>,
    /// Who can change how much the log tells, if the host lets anybody.
    pub log: Option<Arc<dyn LogControl>>,
    /// Copies its database.
    pub backup: Arc<dyn Backup>,
    /// Knows how groups stand.
    pub backlog: Arc<dyn Backlogs>,
    /// Knows the life of each event.
    pub events: Arc<dyn Events>,
    /// Looks at what retention would do.
    pub retention: Arc<dyn Retention>,
    /// Looks at what npm left, and dispatches it.
    pub history: Arc<dyn Histories>,
    /// Issues and revokes.
    pub certificates: Arc<dyn Certificates>,
}

/// Why there is no admin HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The address can't be bound.
    #[error(
        "the admin HTTP server can't listen on {addr}: {source}: {}set `admin.ip` and `admin.port` (0: any free port) \
         to another address, or turn it off by `admin.enabled = false`",
        why_not_listening(source)
    )]
    Address {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The token can't be read or written.
    #[error("the admin token {path} can't be {action}: {source}; the hub must own that file and its folder", path = path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds no token.
    #[error(
        "the file {path} holds no admin token: at least {minimum} letters and digits in one line are expected; remove \
         the file and the next start makes a new token",
        path = path.display(), minimum = token::MIN_LEN
    )]
    TokenDamaged {
        /// The file.
        path: PathBuf,
    },
    /// The system has no random bytes.
    #[error("the system gave no random bytes for the admin token")]
    Random,
}

/// What the system's words mean, and what to do besides setting another address.
fn why_not_listening(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "stop what listens there, or ",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address: ",
        _ => "",
    }
}

impl AdminError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address { .. } => code::ADDRESS,
            Self::TokenFile { .. } | Self::TokenDamaged { .. } => code::DATA_FOLDER,
            Self::Random => code::INTERNAL,
        }
    }
}

/// An address that is ours. Connections wait in its listen queue until [`Bound::serve`].
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    addr: SocketAddr,
    hosts: access::Hosts,
}

/// Takes the address.
///
/// # Errors
/// [`AdminError::Address`] when it can't be bound, for example because it is in use.
pub fn bind(config: AdminConfig) -> Result<Bound, AdminError> {
    let failed = |source| AdminError::Address { addr: config.addr, source };
    let listener = TcpListener::bind(config.addr).map_err(failed)?;
    // Connections take it over. A refusal leaves the system's size.
    let _ = socket2::SockRef::from(&listener).set_recv_buffer_size(RECEIVED);
    let addr = listener.local_addr().map_err(failed)?;
    Ok(Bound { listener, addr, hosts: access::Hosts::of(config.addr.ip()) })
}

impl Bound {
    /// The address, with its real port.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Makes the server, with one worker thread of its own. It serves once the returned [`Server`] is awaited or
    /// spawned; [`Server::handle`] stops it. Signals are left to the caller.
    ///
    /// # Errors
    /// [`AdminError::Address`] when the system lets nobody listen there any more.
    pub fn serve(self, state: AdminState) -> Result<Server, AdminError> {
        let Self { listener, addr, hosts } = self;
        let connections = Arc::new(connections::Connections::default());
        let server = HttpServer::new(move || {
            App::new()
                .app_data(web::Data::new(state.clone()))
                .app_data(web::Data::new(hosts))
                .configure(endpoint::all)
                .wrap(from_fn(access::only_known_hosts))
                .wrap(from_fn(connections::one_request))
        })
        .on_connect(move |stream, data| connections.admit(stream, data))
        .workers(1)
        .disable_signals()
        .max_connections(MAX_CONNECTIONS)
        .client_request_timeout(REQUEST_TIMEOUT)
        .keep_alive(KeepAlive::Disabled)
        // Whoever goes away ends what is made for it: a backup takes room and time.
        .h1_allow_half_closed(false)
        .shutdown_timeout(SHUTDOWN_SECONDS)
        .listen(listener)
        .map_err(|source| AdminError::Address { addr, source })?;
        Ok(server.run())
    }
}

#[cfg(test)]
mod tests;
