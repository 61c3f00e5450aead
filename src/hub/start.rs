//! The start of a hub, step by step, and its life until the end. Runs in the hub's own thread.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use actix_rt::Arbiter;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
};

use super::{
    Command, End, HubBuilder, HubError, HubInfo, Started,
    backlog::BacklogDesk,
    backup::Backups,
    cast::Onlooker,
    certificates::CertificateDesk,
    core::{self, CoreParts, Post},
    door::{self, Door},
    drain::DrainOutcome,
    events::EventDesk,
    guardian::{Drain, Guardian, GuardianParts, InjectPanic},
    home::Home,
    inspect::Inspector,
    retention::Lookout,
    sealing::sealing,
};
use crate::{
    actors::{
        announcer::{AnnouncerConfig, Credentials},
        collector::CollectorConfig,
        connection::ConnectionConfig,
        deliveries::{DeliveriesConfig, Policy},
        journal::JournalConfig,
        keeper::KeeperConfig,
        life::Life,
        listener::ListenerConfig,
        mail::Handle,
        registry::{RegistryConfig, RingLimits},
        scheduler::SchedulerConfig,
        snapshot::Stall,
        warden::{Commission, Office, OwnConfig, Warden},
    },
    admin::{AdminState, LogControl},
    config::{Durability, HubConfig, Keep, LimitSettings, NpmTimeZone},
    event::Uid,
    metrics::{ActorKind, Metrics, Readiness},
    pki::{Authority, Lifetimes, Names, Secret, Vault, tls},
    store::{self, HubRow, Store, StoreConfig},
    wire::{HubAddress, Limits, LinkLimits, ParseLimits, Welcome},
};

/// Places in the warden's mailbox.
const MAILBOX: usize = 1_024;
/// How long is waited for the outcome of a drain beyond its own deadline.
const OVERTIME: Duration = Duration::from_secs(5);

/// Starts, tells how that went, serves, drains.
pub async fn run(
    builder: HubBuilder,
    metrics: Metrics,
    readiness: watch::Sender<Readiness>,
    ready: oneshot::Sender<Result<Started, HubError>>,
    mut asked: mpsc::UnboundedReceiver<Command>,
) -> End {
    metrics.set_readiness(&Readiness::Starting);
    let grace = builder.config.limits.drain;
    // The home is ours until the end.
    let (started, mut running, _home) = match start(builder, &metrics, &readiness).await {
        Ok(up) => up,
        Err(error) => {
            // Whoever started it hears of it here; the end is the same story.
            let _ = ready.send(Err(error));
            return End::Drained(DrainOutcome::default());
        }
    };
    metrics.set_readiness(&Readiness::Ready);
    readiness.send_replace(Readiness::Ready);
    // Nobody waits if the program gave up: the handle's drop sends a shutdown.
    let _ = ready.send(Ok(started));
    let failure = loop {
        tokio::select! {
            failure = running.gave_up.recv() => break failure,
            command = asked.recv() => match command {
                Some(Command::Panic(kind)) => running.guardian.signal(InjectPanic(kind)),
                Some(Command::Stall(length)) => running.guardian.signal(Stall(length)),
                Some(Command::Shutdown) | None => break None,
            },
        }
    };
    let outcome = drain(&running.guardian, grace).await;
    if let Some(door) = running.door {
        door.close().await;
    }
    match (failure, outcome) {
        (Some(error), _) => End::Failed(Arc::new(error)),
        (None, Some(outcome)) => End::Drained(outcome),
        (None, None) => End::Failed(Arc::new(HubError::Vanished)),
    }
}

/// Drains and stops all actors; none: the guardian is gone, or far beyond its deadline.
async fn drain(guardian: &Handle<Guardian>, grace: Duration) -> Option<DrainOutcome> {
    let (done, outcome) = oneshot::channel();
    guardian.signal(Drain { done });
    tokio::time::timeout(grace + OVERTIME, outcome).await.ok()?.ok()
}

/// A hub that is up.
struct Running {
    guardian: Handle<Guardian>,
    door: Option<Door>,
    gave_up: mpsc::UnboundedReceiver<HubError>,
}

async fn start(
    builder: HubBuilder,
    metrics: &Metrics,
    readiness: &watch::Sender<Readiness>,
) -> Result<(Started, Running, Home), HubError> {
    let since = Instant::now();
    let HubBuilder { config, in_memory, log } = builder;
    let home = Home::take((!in_memory).then_some(config.data.as_path()))?;
    let store = Store::open(&store_config(&config, &home)?).await?;
    match bring_up(config, log, &home, &store, metrics, readiness, since).await {
        Ok((started, running)) => Ok((started, running, home)),
        Err(error) => {
            // Its files must not be open any more when the folder's lock is let go.
            store.close().await;
            Err(error)
        }
    }
}

async fn bring_up(
    config: HubConfig,
    log: Option<Arc<dyn LogControl>>,
    home: &Home,
    store: &Store,
    metrics: &Metrics,
    readiness: &watch::Sender<Readiness>,
    since: Instant,
) -> Result<(Started, Running), HubError> {
    examine(&config, store).await?;
    let name = config.hub.name.as_str();
    // The hubs of a server live elsewhere, each with its own folder.
    let known = if store.is_on_server() { Vec::new() } else { store.known_hubs().await? };
    let id = home.hub_id(name, &known)?;
    tracing::Span::current().record("hub.id", id.as_str());
    let socket = listen(SocketAddr::new(config.hub.internal_ip, config.hub.internal_port)).await?;
    let address = socket.0;
    let external = HubAddress {
        id: Some(id.to_string()),
        host: config.hub.external_host(),
        port: config.hub.external_port.unwrap_or(address.port()),
    };
    let row = HubRow {
        id: id.clone(),
        external_ip: external.host.clone(),
        external_port: external.port,
        internal_ip: address.ip().to_string(),
        internal_port: address.port(),
    };
    let post = Post { row, seat: home.seat() };
    let epoch = store.take_hub(&post.row, &post.seat).await?;
    let hubs = [external.clone()];
    let own = OwnConfig { bundle: home.bundle_file(), hubs: hubs.to_vec() };
    let commission = Commission::prepare(office(&config, home, &id, store, &hubs)?, own).await?;
    let fingerprint = commission.authority().root_fingerprint();
    let credentials = credentials(commission.authorities());
    let bundle = commission.bundle();
    let token = home.token()?;
    let threshold = door::bind(&config.admin, home)?;

    let (exits, exited) = mpsc::unbounded_channel();
    let (gave_up, given_up) = mpsc::unbounded_channel();
    let life = Life::begin(ActorKind::Warden, 0, metrics.meter(ActorKind::Warden), exits.clone());
    let parts = core_parts(&config, post, store, metrics, epoch, readiness, exits);
    let policies = parts.deliveries.policies.clone();
    let first = parts.make(0).await?;
    let arbiters = link_threads();
    let welcome = Welcome {
        hub: id.to_string(),
        epoch,
        limits: link_limits(&config.limits),
        hubs: hubs.to_vec(),
        features: Vec::new(),
    };
    let listener = ListenerConfig {
        connections: config.limits.connections as usize,
        handshake: config.limits.handshake,
        keep_alive: config.npm.keep_alive,
        tls: commission.tls(),
        revoked: commission.revoked(),
        connection: connection_config(&config, id.clone(), welcome),
        arbiters: arbiters.iter().map(Arbiter::handle).collect(),
    };
    let thread = arbiters.first().map(Arbiter::handle);
    let warden = core::start(metrics, ActorKind::Warden, MAILBOX, |meter, _| {
        Warden::new(commission, metrics.clone(), meter.clone(), life)
    });
    let (guardian, cast) = Guardian::start(GuardianParts {
        hub: id.clone(),
        core: parts,
        first,
        exits: exited,
        listener,
        announcer: AnnouncerConfig {
            hub: id.clone(),
            host: external.host,
            port: external.port,
            timeout: config.npm.online_timeout,
            credentials,
        },
        keeper: KeeperConfig {
            hub: id.clone(),
            policies: policies.clone(),
            interval: config.retention.interval,
            batch: config.retention.batch as usize,
        },
        warden: warden.clone(),
        socket: socket.1,
        arbiters,
        grace: config.limits.drain,
        gave_up,
    });
    let cast = Arc::new(cast);
    let inspector = Inspector {
        cast: cast.clone(),
        hub: id.to_string(),
        epoch,
        address,
        since,
        files: if store.is_on_server() { Vec::new() } else { home.database_files() },
        engine: store.engine_name(),
    };
    let opened = threshold.map(|threshold| {
        let state = AdminState {
            metrics: metrics.clone(),
            ready: readiness.subscribe(),
            token: token.clone(),
            inspect: Arc::new(inspector),
            backlog: Arc::new(BacklogDesk { core: cast.core.clone(), store: store.clone(), hub: id.clone() }),
            events: Arc::new(EventDesk { core: cast.core.clone(), store: store.clone() }),
            certificates: Arc::new(CertificateDesk { warden: warden.clone(), store: store.clone() }),
            backup: Arc::new(Backups::new(store.clone(), home.path(), readiness.subscribe())),
            retention: Arc::new(Lookout::new(id.clone(), store.clone(), policies)),
            log,
        };
        threshold.open(state)
    });
    let door = match opened.transpose() {
        Ok(door) => door,
        Err(error) => {
            drain(&guardian, config.limits.drain).await;
            return Err(error);
        }
    };
    let info = HubInfo {
        id: id.to_string(),
        epoch,
        address,
        admin: door.as_ref().map(|door| door.addr),
        data: home.path().map(ToOwned::to_owned),
        bundle: home.bundle_file(),
        fingerprint,
    };
    let onlooker = Onlooker { cast, thread };
    Ok((Started { info, bundle, token, onlooker }, Running { guardian, door, gave_up: given_up }))
}

/// Whether a database server is as it must be, or should.
async fn examine(config: &HubConfig, store: &Store) -> Result<(), HubError> {
    if store.is_on_server() && config.store.durability == Durability::Full && store.synchronous().await? < 2 {
        tracing::warn!(
            engine = store.engine_name(),
            "the database server acknowledges commits before they are on its disk: a power cut there may take acked \
             events; set fsync and synchronous_commit (PostgreSQL) to on, innodb_flush_log_at_trx_commit (MySQL) to 1"
        );
    }
    Ok(())
}

fn store_config(config: &HubConfig, home: &Home) -> Result<StoreConfig, HubError> {
    Ok(StoreConfig {
        place: home.place(config.server().as_ref())?,
        durability: match config.store.durability {
            Durability::Full => store::Durability::Full,
            Durability::Relaxed => store::Durability::Relaxed,
        },
        max_bytes: config.store.max_bytes,
        readers: config.store.readers,
        writers: config.store.writers,
        npm_time_zone: match config.mysql.npm_time_zone {
            NpmTimeZone::Utc => store::NpmTimeZone::Utc,
            NpmTimeZone::Server => store::NpmTimeZone::Server,
        },
    })
}

/// What certificates are issued with.
fn office(
    config: &HubConfig,
    home: &Home,
    id: &Uid,
    store: &Store,
    hubs: &[HubAddress],
) -> Result<Office, HubError> {
    let certificates = &config.certificates;
    let phrase = match &certificates.phrase {
        Some(phrase) => Secret::new(phrase.reveal()),
        None => home.phrase()?,
    };
    Ok(Office {
        store: store.clone(),
        vault: Vault::with(phrase, sealing(certificates))?,
        names: Names {
            hub_id: id.to_string(),
            hub_name: config.hub.name.to_string(),
            spoke_name: config.hub.spoke_name.to_string(),
        },
        lifetimes: Lifetimes {
            root: certificates.root,
            intermediate: certificates.intermediate,
            hub_leaf: certificates.hub_leaf,
            spoke_leaf: certificates.spoke_leaf,
        },
        hubs: hubs.to_vec(),
    })
}

/// What the hub dials its peers with: it does so at its start.
fn credentials(authorities: watch::Receiver<Arc<Authority>>) -> Credentials {
    Arc::new(move |peer| {
        let authority = authorities.borrow().clone();
        tls::peer_config(authority.hub_identity(), authority.root(), peer)
    })
}

async fn listen(addr: SocketAddr) -> Result<(SocketAddr, TcpListener), HubError> {
    let failed = |source| HubError::Address { addr, source };
    let socket = TcpListener::bind(addr).await.map_err(failed)?;
    Ok((socket.local_addr().map_err(failed)?, socket))
}

fn core_parts(
    config: &HubConfig,
    post: Post,
    store: &Store,
    metrics: &Metrics,
    epoch: u64,
    readiness: &watch::Sender<Readiness>,
    exits: mpsc::UnboundedSender<crate::actors::life::Exited>,
) -> CoreParts {
    let (limits, hub) = (&config.limits, post.row.id.clone());
    CoreParts {
        post,
        store: store.clone(),
        metrics: metrics.clone(),
        journal: JournalConfig {
            hub: hub.clone(),
            epoch,
            batch: limits.journal_batch as usize,
            queue_bytes: clamp(limits.queue_bytes),
        },
        registry: RegistryConfig {
            ring: RingLimits {
                window: limits.late_window,
                events: limits.late_events as usize,
                bytes: clamp(limits.late_bytes),
            },
            subscriptions: limits.subscriptions as usize,
        },
        deliveries: DeliveriesConfig {
            hub: hub.clone(),
            policies: Arc::new(config.policies()),
            credit: limits.credit,
            credit_bytes: clamp(limits.credit_bytes),
            link_bytes: clamp(limits.outbound_bytes) / 2,
            pending_bytes: clamp(limits.pending_bytes),
            lease: limits.lease,
            data_bytes: clamp(limits.data_bytes),
            policy: Policy {
                max_attempts: config.groups.max_attempts,
                delay: millis(config.groups.delay),
                max_delay: millis(config.groups.max_delay),
                ..Policy::default()
            },
        },
        scheduler: SchedulerConfig {
            poll: config.schedules.poll,
            npm_overdue: match config.schedules.npm_overdue {
                Keep::Forever => None,
                Keep::For(time) => Some(time),
            },
        },
        collector: CollectorConfig {
            hub,
            interval: config.collect.interval,
            age: config.collect.age,
            data_bytes: clamp(limits.data_bytes),
        },
        epoch,
        readiness: readiness.clone(),
        exits,
    }
}

fn connection_config(config: &HubConfig, hub: Uid, welcome: Welcome) -> ConnectionConfig {
    let limits = &config.limits;
    ConnectionConfig {
        hub,
        welcome,
        records: Limits { record_bytes: clamp(limits.record_bytes()), units: limits.units as usize },
        parse: ParseLimits { data_bytes: clamp(limits.data_bytes) },
        may_delete: config.spokes.may_delete,
        outbound_bytes: clamp(limits.outbound_bytes),
        ping: limits.ping,
        silence: limits.silence,
    }
}

fn link_limits(limits: &LimitSettings) -> LinkLimits {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    LinkLimits {
        window_requests: limits.window_requests,
        window_bytes: limits.window_bytes,
        data_bytes: limits.data_bytes,
        record_bytes: limits.record_bytes(),
        units: limits.units,
        credit: limits.credit,
        credit_bytes: limits.credit_bytes,
        subscriptions: limits.subscriptions,
        lease_ms: ms(limits.lease),
        ping_ms: ms(limits.ping),
        silence_ms: ms(limits.silence),
    }
}

/// One thread fewer than there are cores, since the core has this one; but at least one.
fn link_threads() -> Vec<Arbiter> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (1..cores.max(2)).map(|_| Arbiter::new()).collect()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
