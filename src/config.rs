//! The configuration of a hub: TOML file < environment < flags, read once at start.
//!
//! [`HubConfig`] holds plain, checked values. A host program may build one by hand, starting from
//! [`HubConfig::default`]; [`load`] makes one of text. One table of settings drives the file, the variables,
//! the flags, the help and the documentation, so that none of them can lack one.

mod check;
mod database;
mod domain;
mod environment;
mod file;
mod form;
pub mod help;
mod load;
mod problem;
mod table;
mod value;

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Duration,
};

pub use database::{DatabaseUrl, MysqlSettings, NpmTimeZone};
pub use domain::{DomainPolicy, KeepSettings, show_policy};
pub use form::{read_duration, show_duration};
pub use load::{FileText, Flag, Loaded, load};
pub use problem::{ConfigProblems, Origin, Problem, Warning};
pub use value::{
    ConfiguredName, Durability, InvalidName, KeyCipher, KeyHash, LogFormat, LogLevel, QuitSignal, Secret,
};

pub use crate::event::Keep;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a record may be longer than the data of its event: the other units and the separators.
const RECORD_OVERHEAD: u64 = 64 * KIB;

/// Everything that a hub can be told. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct HubConfig {
    /// The data folder: database, lock file, hub id, key phrase, operator's bundle, admin token.
    pub data: PathBuf,
    /// Names, addresses and the signal that stops it.
    pub hub: HubSettings,
    /// Which database, and how it is kept.
    pub store: StoreSettings,
    /// The same in npm's words.
    pub mysql: MysqlSettings,
    /// What one link and the whole hub may take up.
    pub limits: LimitSettings,
    /// How long an event that no consumer wanted yet is kept for one that comes later.
    pub orphan_keep: Keep,
    /// When events expire, and for how long they are kept after their end.
    pub keep: KeepSettings,
    /// How that is done.
    pub retention: RetentionSettings,
    /// What some domains want otherwise: of several that match the first holds.
    pub domains: Vec<DomainPolicy>,
    /// Lifetimes of certificates, and how their keys are kept.
    pub certificates: CertificateSettings,
    /// What spokes may do.
    pub spokes: SpokesSettings,
    /// What groups do with events that fail.
    pub groups: GroupsSettings,
    /// The admin HTTP server.
    pub admin: AdminSettings,
    /// The log on standard error.
    pub log: LogSettings,
    /// How links of the npm dialect are kept.
    pub npm: NpmSettings,
    /// Scheduled events.
    pub schedules: ScheduleSettings,
    /// Events that applications put into the database themselves.
    pub collect: CollectSettings,
}

impl HubConfig {
    /// The database server to use; `None`: the embedded database.
    #[must_use]
    pub fn server(&self) -> Option<DatabaseUrl> {
        self.store.url.clone().or_else(|| self.mysql.url())
    }
}

/// Names, addresses and the signal that stops the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSettings {
    /// The configured name: the end of hub ids and the domain of hub certificates.
    pub name: ConfiguredName,
    /// The same for spokes.
    pub spoke_name: ConfiguredName,
    /// The address to listen on.
    pub internal_ip: IpAddr,
    /// The port to listen on; 0: any free one.
    pub internal_port: u16,
    /// What spokes and other hubs dial, an IP address or a host name; `None`: the internal address.
    pub external_ip: Option<String>,
    /// The port that they dial; `None`: the one that is listened on.
    pub external_port: Option<u16>,
    /// The signal that drains and stops the hub, beside SIGINT.
    pub signal_quit: QuitSignal,
}

impl HubSettings {
    /// The host that spokes and other hubs dial.
    #[must_use]
    pub fn external_host(&self) -> String {
        self.external_ip.clone().unwrap_or_else(|| self.internal_ip.to_string())
    }
}

/// Which database, and how it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// A database on a server; `None`: the embedded one, in the data folder, unless [`MysqlSettings`] name one.
    pub url: Option<DatabaseUrl>,
    /// Whether a commit waits for the disk.
    pub durability: Durability,
    /// The largest size of the database file; publishes are refused beyond it. `None`: what the disk holds.
    pub max_bytes: Option<u64>,
    /// Connections that read beside those that write.
    pub readers: u32,
    /// Connections that write, to a server; the embedded database has one.
    pub writers: u32,
}

/// What one link and the whole hub may take up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSettings {
    /// Links at once.
    pub connections: u32,
    /// The data of one event.
    pub data_bytes: u64,
    /// What may wait to be sent on one link; a subscriber beyond it is cut.
    pub outbound_bytes: u64,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long the hub may take to stop.
    pub drain: Duration,
    /// Units of one record.
    pub units: u32,
    /// Publishes of one link that aren't answered yet.
    pub window_requests: u32,
    /// The weight of those publishes; a lone one always fits.
    pub window_bytes: u64,
    /// The most events that a consumer may hold un-acked.
    pub credit: u32,
    /// Their weight; one event always fits.
    pub credit_bytes: u64,
    /// How long a consumer holds an event without a word, if it doesn't ask for another time.
    pub lease: Duration,
    /// Subscriptions and consumers of one link.
    pub subscriptions: u32,
    /// Each end of a link pings when it has sent nothing for so long.
    pub ping: Duration,
    /// Each end cuts the link when it has received nothing for so long.
    pub silence: Duration,
    /// For how long an event that nobody took is kept in memory for a subscriber that comes late.
    pub late_window: Duration,
    /// How many such events.
    pub late_events: u32,
    /// How many bytes of such events.
    pub late_bytes: u64,
    /// The most writes of one transaction.
    pub journal_batch: u32,
    /// What may wait in memory to be written, and as much again to be delivered.
    pub queue_bytes: u64,
    /// Events that wait in memory for consumers, of all bindings together.
    pub pending_bytes: u64,
}

impl LimitSettings {
    /// The longest record: the data of an event and room for what stands around it.
    #[must_use]
    pub fn record_bytes(&self) -> u64 {
        self.data_bytes.saturating_add(RECORD_OVERHEAD)
    }
}

/// Lifetimes of certificates, and how their keys are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The life of a new root certificate.
    pub root: Duration,
    /// The life of a new intermediate certificate.
    pub intermediate: Duration,
    /// The life of the hub's own certificate.
    pub hub_leaf: Duration,
    /// The life of certificates issued to spokes.
    pub spoke_leaf: Duration,
    /// The phrase that encrypts keys at rest. `None`: one is generated into the data folder.
    pub phrase: Option<Secret>,
    /// PBKDF2 iterations that make a key of the phrase.
    pub iterations: u32,
    /// What encrypts keys at rest.
    pub cipher: KeyCipher,
    /// What PBKDF2 makes the key for that with.
    pub hash: KeyHash,
}

impl CertificateSettings {
    /// Defaults for a phrase that a person chose: npm's lifetimes and its million iterations, since such a
    /// phrase can be guessed and such a store can be shared with npm hubs.
    #[must_use]
    pub fn with_phrase(phrase: Secret) -> Self {
        Self { phrase: Some(phrase), ..Self::on_server() }
    }

    /// Defaults for a database server, which npm hubs and others may look into: npm's lifetimes and iterations.
    #[must_use]
    pub fn on_server() -> Self {
        Self {
            root: 365 * DAY,
            intermediate: 30 * DAY,
            hub_leaf: 7 * DAY,
            spoke_leaf: 7 * DAY,
            phrase: None,
            iterations: 1_000_000,
            ..Self::default()
        }
    }
}

/// What spokes may do, all of them: there are no roles yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpokesSettings {
    /// Delete events and logs, and cancel schedules.
    pub may_delete: bool,
}

/// The admin HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminSettings {
    /// Whether there is one.
    pub enabled: bool,
    /// The address to listen on.
    pub ip: IpAddr,
    /// The port to listen on; 0: any free one.
    pub port: u16,
}

/// The log on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// For people or for programs.
    pub format: LogFormat,
    /// The least important that is written.
    pub level: LogLevel,
}

/// How links of the npm dialect are kept, and peer hubs told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NpmSettings {
    /// TCP keep-alive: such a link is probed after so long without traffic.
    pub keep_alive: Duration,
    /// How long telling another hub of this one may take.
    pub online_timeout: Duration,
}

/// What groups do with events that fail, as far as they have no settings of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupsSettings {
    /// After so many attempts an event is dead.
    pub max_attempts: u32,
    /// How long the first retry waits; each further one twice as long.
    pub delay: Duration,
    /// The longest such wait.
    pub max_delay: Duration,
}

/// How scheduled events are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleSettings {
    /// How often the database is looked at for what others put there.
    pub poll: Duration,
    /// What the npm stack scheduled and nobody ran is run if it was due at most so long before a hub of ours first served
    /// the database; what was due earlier is left alone.
    pub npm_overdue: Keep,
}

/// Events that applications put into the database in transactions of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectSettings {
    /// How often they are looked for.
    pub interval: Duration,
    /// How old their row must be to be found; what a nudge names needs no age.
    pub age: Duration,
}

/// How what is expired or kept long enough is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    /// From the end of one pass to the next.
    pub interval: Duration,
    /// The most events of one transaction.
    pub batch: u32,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::from("./eventflow-data"),
            hub: HubSettings::default(),
            store: StoreSettings::default(),
            mysql: MysqlSettings::default(),
            limits: LimitSettings::default(),
            orphan_keep: Keep::For(DAY),
            keep: KeepSettings::default(),
            retention: RetentionSettings { interval: Duration::from_secs(60), batch: 200 },
            domains: Vec::new(),
            certificates: CertificateSettings::default(),
            spokes: SpokesSettings { may_delete: true },
            admin: AdminSettings::default(),
            log: LogSettings { format: LogFormat::Human, level: LogLevel::Info },
            npm: NpmSettings { keep_alive: Duration::from_secs(60), online_timeout: Duration::from_secs(5) },
            groups: GroupsSettings {
                max_attempts: 5,
                delay: Duration::from_secs(1),
                max_delay: Duration::from_secs(300),
            },
            schedules: ScheduleSettings { poll: Duration::from_secs(1), npm_overdue: Keep::For(DAY) },
            collect: CollectSettings { interval: Duration::from_secs(5), age: Duration::from_secs(10) },
        }
    }
}

impl Default for HubSettings {
    fn default() -> Self {
        Self {
            name: ConfiguredName::hub(),
            spoke_name: ConfiguredName::spoke(),
            internal_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            internal_port: 50001,
            external_ip: None,
            external_port: None,
            signal_quit: QuitSignal::Term,
        }
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { url: None, durability: Durability::Full, max_bytes: None, readers: 4, writers: 3 }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            connections: 10_000,
            data_bytes: MIB,
            outbound_bytes: 8 * MIB,
            handshake: Duration::from_secs(10),
            drain: Duration::from_secs(20),
            units: 64,
            window_requests: 256,
            window_bytes: 4 * MIB,
            credit: 64,
            credit_bytes: 4 * MIB,
            lease: Duration::from_secs(30),
            subscriptions: 1_000,
            ping: Duration::from_secs(30),
            silence: Duration::from_secs(60),
            late_window: Duration::from_secs(5),
            late_events: 10_000,
            late_bytes: 16 * MIB,
            journal_batch: 256,
            queue_bytes: 256 * MIB,
            pending_bytes: 64 * MIB,
        }
    }
}

impl Default for CertificateSettings {
    /// Defaults for the embedded store, whose generated phrase is 32 random bytes: there is nothing to guess
    /// that many iterations would slow down.
    fn default() -> Self {
        Self {
            root: 3_650 * DAY,
            intermediate: 365 * DAY,
            hub_leaf: 7 * DAY,
            spoke_leaf: 90 * DAY,
            phrase: None,
            iterations: 1_000,
            cipher: KeyCipher::Aes256Gcm,
            hash: KeyHash::Sha512,
        }
    }
}

impl Default for AdminSettings {
    fn default() -> Self {
        Self { enabled: true, ip: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 50080 }
    }
}

#[cfg(test)]
mod sealing_tests;
#[cfg(test)]
mod tests;
