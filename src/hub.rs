//! The hub: the broker as a value that a program starts, watches and stops.
//!
//! It runs in a thread of its own with an actix system, so that it can be started from plain tokio, from another
//! actix system, or from any other executor.
//!
//! ```no_run
//! use eventflow::{hub::Hub, spoke::{Spoke, SpokeConfig}};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let hub = Hub::builder().data("./events").free_ports().start().await?;
//! println!("{} listens on {}", hub.info().id, hub.info().address);
//!
//! let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
//! // publish, subscribe, consume: see `eventflow::spoke`
//! spoke.close().await;
//! println!("{} events published", hub.metrics().hub.published);
//! hub.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/embed.rs` is a whole program.
//!
//! # What is left to the host
//! - **Signals**: the hub installs no handler. The host decides when to call [`HubHandle::shutdown`], and may wait
//!   for [`HubHandle::end`] beside its signals to learn of a hub that gave up.
//! - **The log**: the hub writes to [`tracing`](https://docs.rs/tracing) and installs no subscriber, so that
//!   `HubConfig`'s `log` has no effect here, and neither has its `hub.signal_quit`. A panic of an actor goes through
//!   the host's panic hook. A host that can change its log's level while it runs hands that to its operators by
//!   [`HubBuilder::log_control`].
//! - **The environment**: no variable and no file outside the data folder is read.
//!   [`config::load`](crate::config::load) makes a [`HubConfig`] of a file's text, variables and flags, as the program
//!   `eventflow-hub` does.

mod backlog;
mod backup;
mod cast;
mod certificates;
mod core;
mod door;
mod drain;
mod error;
mod events;
mod folder;
mod guardian;
mod history;
mod home;
mod inspect;
mod links;
pub mod moving;
mod offline;
mod retention;
mod sealing;
mod start;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, thread, time::Duration};

use tokio::sync::{mpsc, oneshot, watch};

use cast::Onlooker;
pub use drain::DrainOutcome;
pub use error::HubError;
pub use offline::{DatabasePlace, Offline, migrate, migration_status};

pub use crate::admin::LogControl;

use crate::{
    admin::AdminToken,
    config::{DatabaseUrl, DomainPolicy, HubConfig},
    metrics::{ActorKind, ActorsReport, Metrics, MetricsSnapshot, Readiness},
    pki::Bundle,
};

/// What a started hub is and where.
#[derive(Debug, Clone)]
pub struct HubInfo {
    /// Its id.
    pub id: String,
    /// Raised at each start.
    pub epoch: u64,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its admin HTTP is, if it is on.
    pub admin: Option<SocketAddr>,
    /// Its data folder, absolute; none of a hub in memory.
    pub data: Option<PathBuf>,
    /// The file in it that holds [`HubHandle::bundle`], for clients in other programs on this machine.
    pub bundle: Option<PathBuf>,
    /// SHA-256 of the root certificate.
    pub fingerprint: String,
}

/// Builds a hub.
#[derive(Debug, Clone, Default)]
pub struct HubBuilder {
    config: HubConfig,
    log: Option<Arc<dyn LogControl>>,
    in_memory: bool,
}

/// The hub's entry point.
#[derive(Debug)]
pub struct Hub;

impl Hub {
    /// A hub with the defaults, to be started.
    #[must_use]
    pub fn builder() -> HubBuilder {
        HubBuilder::default()
    }
}

impl HubBuilder {
    /// Takes a whole configuration, in place of the folder and the ports that were set on this builder before.
    #[must_use]
    pub fn config(mut self, config: HubConfig) -> Self {
        self.config = config;
        self
    }

    /// Keeps its data in this folder: set after [`config`](Self::config), it wins over the folder named there.
    /// Without either it is `./eventflow-data`, seen from the working directory.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.config.data = folder.into();
        self
    }

    /// Serves a database of PostgreSQL, MySQL or MariaDB, which other hubs may serve too, rather than a file in the data
    /// folder. The folder still holds who the hub is.
    #[must_use]
    pub fn database(mut self, url: DatabaseUrl) -> Self {
        self.config.store.url = Some(url);
        self
    }

    /// Adds what some domains want otherwise than the rest; of several entries that match a domain the first holds.
    #[must_use]
    pub fn domain(mut self, policy: DomainPolicy) -> Self {
        self.config.domains.push(policy);
        self
    }

    /// Lets operators look at the program's log level and change it, by `GET` and `PUT /log` of the admin HTTP. Without
    /// it the log is the host's alone.
    #[must_use]
    pub fn log_control(mut self, log: impl LogControl + 'static) -> Self {
        self.log = Some(Arc::new(log));
        self
    }

    /// Keeps everything in memory, for tests and trials: no file is written or read, and events, id, certificates and
    /// the admin token are new at each start and gone with the hub. It wins over any folder. Clients get
    /// [`HubHandle::bundle`]; there is no setting for it, as the program `eventflow-hub` has no way to hand that out.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Takes any free ports for links and for HTTP: several hubs may then run side by side. Set after
    /// [`config`](Self::config), it wins over the ports named there. [`HubInfo`] says which they are.
    #[must_use]
    pub fn free_ports(mut self) -> Self {
        self.config.hub.internal_port = 0;
        self.config.admin.port = 0;
        self
    }

    /// Starts the hub in a thread of its own and waits until it is ready. Several hubs may live in one program, each
    /// with its own ports and its own data folder, if any. Any executor will do.
    ///
    /// # Errors
    /// [`HubError`] says what is missing: the folder, the address, the database.
    /// [`code`](HubError::code) tells them apart.
    pub async fn start(self) -> Result<HubHandle, HubError> {
        let metrics = Metrics::new();
        let readiness = watch::Sender::new(Readiness::Starting);
        let (ready, started) = oneshot::channel();
        let (commands, asked) = mpsc::unbounded_channel();
        let (over, ended) = watch::channel(None);
        let watched = readiness.subscribe();
        let thread = {
            let metrics = metrics.clone();
            thread::Builder::new()
                .name("eventflow-hub".into())
                .spawn(move || {
                    // Whatever is logged in this thread, this hub logs. The span has a target of its own: a host with
                    // one hub may turn it off.
                    let span =
                        tracing::error_span!(target: "eventflow::hub::span", "hub", hub.id = tracing::field::Empty);
                    let _entered = span.enter();
                    let system = actix_rt::System::new();
                    let run = start::run(self, metrics, readiness, ready, asked);
                    let end = system.block_on(run);
                    drop(system);
                    over.send_replace(Some(end));
                })
                .map_err(HubError::Thread)?
        };
        let failure = match started.await {
            Ok(Ok(started)) => {
                let thread = Some(thread);
                return Ok(HubHandle { started, metrics, readiness: watched, commands, ended, thread });
            }
            Ok(Err(error)) => error,
            Err(_) => HubError::Vanished,
        };
        // It has nothing left to do, so this doesn't block; a panic is that failure.
        let _ = thread.join();
        Err(failure)
    }
}

/// What the hub's thread says once the hub is ready.
#[derive(Debug)]
pub(crate) struct Started {
    info: HubInfo,
    bundle: watch::Receiver<Bundle>,
    token: AdminToken,
    onlooker: Onlooker,
}

/// How a hub's life ended: drained, or given up.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// By [`HubHandle::shutdown`].
    Drained(DrainOutcome),
    /// By a failure; what could be drained was.
    Failed(Arc<HubError>),
}

/// What a handle asks of its hub. A handful in a life.
#[derive(Debug)]
pub(crate) enum Command {
    Shutdown,
    Panic(ActorKind),
    Stall(Duration),
}

/// A running hub. Dropping it stops the hub without waiting for the drain to end.
#[derive(Debug)]
pub struct HubHandle {
    started: Started,
    metrics: Metrics,
    readiness: watch::Receiver<Readiness>,
    commands: mpsc::UnboundedSender<Command>,
    ended: watch::Receiver<Option<End>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl HubHandle {
    /// What it is and where.
    #[must_use]
    pub fn info(&self) -> &HubInfo {
        &self.started.info
    }

    /// The operator's credentials, as they are now: what clients in this program connect with. They are secret. The
    /// hub renews them in time; a client that is connected renews its copy by itself.
    #[must_use]
    pub fn bundle(&self) -> Bundle {
        self.started.bundle.borrow().clone()
    }

    /// What opens the admin HTTP's endpoints for operators: `Authorization: Bearer <token>`.
    #[must_use]
    pub fn admin_token(&self) -> &AdminToken {
        &self.started.token
    }

    /// Its numbers now.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.metrics.snapshot()
    }

    /// What each kind of actor tells about itself, with its numbers; `GET /actors` answers the same. It takes half a
    /// second at most: who doesn't answer in that time is shown as late, and who isn't there as gone.
    pub async fn actors(&self) -> ActorsReport {
        self.started.onlooker.report(&self.metrics).await
    }

    /// Whether it can be given work; the receiver can wait for a change.
    #[must_use]
    pub fn readiness(&self) -> watch::Receiver<Readiness> {
        self.readiness.clone()
    }

    /// Drains the hub and waits until it is over: no thread, port or lock is left.
    ///
    /// # Errors
    /// [`HubError`] if the hub had failed by itself.
    pub async fn shutdown(mut self) -> Result<DrainOutcome, HubError> {
        // A hub that ended already has nothing to be told.
        let _ = self.commands.send(Command::Shutdown);
        let end = self.end().await;
        if let Some(thread) = self.thread.take() {
            // It has said its last word, so this doesn't block; a panic was reported as `Vanished`.
            let _ = thread.join();
        }
        end
    }

    /// Waits until the hub ends by itself: only after failures.
    ///
    /// # Errors
    /// Always the failure, unless another handle's shutdown ended it.
    pub async fn end(&mut self) -> Result<DrainOutcome, HubError> {
        match self.ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(End::Drained(outcome))) => Ok(*outcome),
            Ok(Some(End::Failed(error))) => Err(HubError::Failed(error.clone())),
            Ok(None) | Err(_) => Err(HubError::Vanished),
        }
    }

    /// Makes the registry deaf for so long, to see that nobody waits for it.
    #[doc(hidden)]
    pub fn inject_stall(&self, length: Duration) {
        let _ = self.commands.send(Command::Stall(length));
    }

    /// Makes an actor of the core panic, to see that nothing is lost by it.
    #[doc(hidden)]
    pub fn inject_panic(&self, kind: ActorKind) {
        let _ = self.commands.send(Command::Panic(kind));
    }
}

impl Drop for HubHandle {
    fn drop(&mut self) {
        // A hub that ended already has nothing to be told.
        let _ = self.commands.send(Command::Shutdown);
    }
}
