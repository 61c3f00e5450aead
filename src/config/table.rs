//! The table of settings: what can be set, how it is written, what it means.
//!
//! A row's key gives its other names: `limits.ping` is `EVENTFLOW_LIMITS_PING` in the environment and
//! `--limits-ping` on the command line. npm's names stand beside where they mean the same.

use std::time::Duration;

use super::{HubConfig, form};
use crate::event::code;

/// One setting.
pub(super) struct Setting {
    /// Its key in the file: `limits.ping`.
    pub(super) key: &'static str,
    /// What it means, one sentence without its stop.
    pub(super) help: &'static str,
    /// npm's names for it.
    pub(super) npm: &'static [NpmName],
    /// The code of a value that can't be read.
    pub(super) code: &'static str,
    /// Whether its value may be shown.
    pub(super) secret: bool,
    /// Reads a value into the configuration.
    pub(super) set: fn(&mut HubConfig, &str) -> Result<(), String>,
    /// The value in a configuration, as it would be written.
    pub(super) show: fn(&HubConfig) -> String,
    /// Stands for the value in help.
    pub(super) placeholder: fn() -> &'static str,
}

/// A variable of npm's that means the same as one of our settings.
pub(super) struct NpmName {
    pub(super) name: &'static str,
    /// What its plain number counts: `ms`, `d`, or nothing.
    pub(super) unit: &'static str,
}

impl Setting {
    /// `EVENTFLOW_LIMITS_PING`.
    pub(super) fn variable(&self) -> String {
        format!("EVENTFLOW_{}", self.key.replace('.', "_").to_ascii_uppercase())
    }

    /// `limits-ping`.
    pub(super) fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    const fn npm(mut self, names: &'static [NpmName]) -> Self {
        self.npm = names;
        self
    }

    const fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}

/// The setting of this key.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

const fn npm(name: &'static str, unit: &'static str) -> NpmName {
    NpmName { name, unit }
}

/// A row: key, field of [`HubConfig`], form of its text, help.
macro_rules! setting {
    ($key:literal, $($field:ident).+, $form:expr, $help:literal) => {
        Setting {
            placeholder: || $form.placeholder,
            ..setting!(@row $key, $($field).+, $form, $help)
        }
    };
    ($key:literal, $($field:ident).+, optional $form:expr, $help:literal) => {
        Setting {
            placeholder: || $form.placeholder(),
            ..setting!(@row $key, $($field).+, $form, $help)
        }
    };
    (@row $key:literal, $($field:ident).+, $form:expr, $help:literal) => {
        Setting {
            key: $key,
            help: $help,
            npm: &[],
            code: code::INVALID_CONFIG,
            secret: false,
            set: |config, text| {
                config.$($field).+ = $form.read(text)?;
                Ok(())
            },
            show: |config| $form.show(&config.$($field).+),
            placeholder: || "",
        }
    };
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const MS: Duration = Duration::from_millis(1);
const TEN_MS: Duration = Duration::from_millis(10);

/// Every setting, in the order of help and documentation.
pub(super) static SETTINGS: &[Setting] = &[
    setting!(
        "data",
        data,
        form::folder(),
        "Data folder: database, hub id, key phrase, operator's credentials"
    ),
    setting!(
        "orphan_keep",
        orphan_keep,
        form::keep(),
        "How long an event that no consumer wanted is kept for one that comes later"
    ),
    setting!(
        "expire_after",
        keep.expire_after,
        form::never(),
        "How old an event that no consumer ever wanted must be to expire"
    ),
    setting!(
        "keep_success",
        keep.success,
        form::keep(),
        "How long an event is kept after each group has ended it well"
    ),
    setting!("keep_dead", keep.dead, form::keep(), "How long after a group has given it up"),
    setting!("keep_expired", keep.expired, form::keep(), "How long after it expired"),
    setting!(
        "keep_unknown",
        keep.unknown,
        form::keep(),
        "How long after an npm spoke claimed it and was not heard of for an hour"
    ),
    setting!(
        "keep_orphan",
        keep.orphan,
        form::keep(),
        "How long after it was published, if no consumer wanted it"
    ),
    setting!(
        "keep_persisted",
        keep.persisted,
        form::keep(),
        "How long after it was stored, if it was never published"
    ),
    setting!(
        "hub.name",
        hub.name,
        form::name(),
        "Name that hubs share: ids and certificates of hubs end with it"
    )
    .code(code::INVALID_CONFIG_NAME),
    setting!("hub.internal_ip", hub.internal_ip, form::ip(), "Address to listen on"),
    setting!("hub.internal_port", hub.internal_port, form::port(), "Port to listen on; 0: any free one"),
    setting!(
        "hub.external_ip",
        hub.external_ip,
        optional form::host().or("(hub.internal_ip)"),
        "Address or host name that spokes and other hubs dial"
    ),
    setting!(
        "hub.external_port",
        hub.external_port,
        optional form::port().within(1, u16::MAX).or("(hub.internal_port)"),
        "Port that they dial"
    ),
    setting!(
        "hub.signal_quit",
        hub.signal_quit,
        form::signal(),
        "Signal that drains and stops the hub, beside SIGINT"
    ),
    setting!(
        "spoke.name",
        hub.spoke_name,
        form::name(),
        "Name that spokes share: ids and certificates of spokes end with it"
    )
    .code(code::INVALID_CONFIG_NAME),
    setting!(
        "store.url",
        store.url,
        optional form::url().or("(embedded, in the data folder)"),
        "Database on a PostgreSQL, MySQL or MariaDB server: postgres://user:password@host/name, or mysql://…"
    )
    .secret()
    .npm(&[npm("EVENTFLOW_DATABASE_URL", "")]),
    setting!(
        "store.durability",
        store.durability,
        form::durability(),
        "full: an acked event survives the loss of power; relaxed: only a crash of the hub; on a server what that one is set to holds"
    ),
    setting!(
        "store.max_bytes",
        store.max_bytes,
        optional form::bytes().within(MIB, 1 << 47).or("(what the disk holds)"),
        "Largest size of the embedded database; publishes are refused beyond it"
    ),
    setting!(
        "store.readers",
        store.readers,
        form::count().within(1, 64),
        "Database connections that read beside those that write"
    ),
    setting!(
        "store.writers",
        store.writers,
        form::count().within(2, 64),
        "Connections to a database server that write; the embedded database has one"
    ),
    setting!(
        "mysql.host",
        mysql.host,
        optional form::host().or("(localhost)"),
        "Host of the MySQL or MariaDB server; any of these but the time zone means one, what isn't set is as npm's defaults"
    ),
    setting!("mysql.port", mysql.port, optional form::port().within(1, u16::MAX).or("(3306)"), "Its port"),
    setting!("mysql.user", mysql.user, optional form::text().or("(root)"), "Who logs in there"),
    setting!("mysql.pass", mysql.pass, optional form::secret().or("(root)"), "With which password").secret(),
    setting!("mysql.db", mysql.db, optional form::text().or("(eventflow)"), "Name of the database there"),
    setting!(
        "mysql.socket_path",
        mysql.socket_path,
        optional form::file().or("(host and port)"),
        "Socket of the server, instead of host and port"
    ),
    setting!(
        "mysql.npm_time_zone",
        mysql.npm_time_zone,
        form::npm_time_zone(),
        "Zone of the times that npm hubs write by their sessions: utc (a server in another zone is refused), or the server's"
    ),
    setting!("limits.connections", limits.connections, form::count().within(1, 1_000_000), "Links at once"),
    setting!(
        "limits.data_bytes",
        limits.data_bytes,
        form::bytes().within(1_024, 64 * MIB),
        "Data of one event; a record may be 64 KiB longer"
    ),
    setting!(
        "limits.outbound_bytes",
        limits.outbound_bytes,
        form::bytes().within(64 * 1_024, 4 * GIB),
        "What may wait to be sent on one link; a subscriber beyond it is cut"
    ),
    setting!(
        "limits.handshake",
        limits.handshake,
        form::duration().within(TEN_MS, HOUR),
        "Time for a TLS handshake"
    ),
    setting!("limits.drain", limits.drain, form::duration().within(TEN_MS, HOUR), "Time for the hub to stop"),
    setting!("limits.units", limits.units, form::count().within(16, 4_096), "Units of one record"),
    setting!(
        "limits.window_requests",
        limits.window_requests,
        form::count().within(1, 65_536),
        "Publishes of one link that aren't answered yet"
    ),
    setting!(
        "limits.window_bytes",
        limits.window_bytes,
        form::bytes().within(1_024, GIB),
        "Weight of those publishes; a lone one always fits"
    ),
    setting!(
        "limits.credit",
        limits.credit,
        form::count().within(1, 65_536),
        "Events that one consumer may hold un-acked"
    ),
    setting!(
        "limits.credit_bytes",
        limits.credit_bytes,
        form::bytes().within(1_024, GIB),
        "Weight of those events; one always fits"
    ),
    setting!(
        "limits.lease",
        limits.lease,
        form::duration().within(Duration::from_secs(1), Duration::from_secs(3_600)),
        "How long a consumer holds an event without a word, if it doesn't ask for another time"
    ),
    setting!(
        "limits.subscriptions",
        limits.subscriptions,
        form::count().within(1, 100_000),
        "Subscriptions and consumers of one link"
    ),
    setting!(
        "limits.ping",
        limits.ping,
        form::duration().within(TEN_MS, DAY),
        "Each end of a link pings when it has sent nothing for so long"
    ),
    setting!(
        "limits.silence",
        limits.silence,
        form::duration().within(TEN_MS, DAY),
        "Each end cuts the link when it has received nothing for so long"
    ),
    setting!(
        "limits.late_window",
        limits.late_window,
        form::duration().within(Duration::ZERO, HOUR),
        "How long an event that nobody took waits in memory for a late subscriber"
    ),
    setting!(
        "limits.late_events",
        limits.late_events,
        form::count().within(0, 10_000_000),
        "How many such events"
    ),
    setting!(
        "limits.late_bytes",
        limits.late_bytes,
        form::bytes().within(0, 64 * GIB),
        "How many bytes of such events"
    ),
    setting!(
        "limits.journal_batch",
        limits.journal_batch,
        form::count().within(1, 1_024),
        "Writes of one database transaction"
    ),
    setting!(
        "limits.queue_bytes",
        limits.queue_bytes,
        form::bytes().within(MIB, 1_024 * GIB),
        "What may wait in memory to be written, and as much again to be delivered"
    ),
    setting!(
        "limits.pending_bytes",
        limits.pending_bytes,
        form::bytes().within(64 * 1_024, 1_024 * GIB),
        "Events that wait in memory for consumers, of all groups together; one for each pair of patterns always fits"
    ),
    setting!(
        "certificates.root",
        certificates.root,
        form::duration().within(HOUR, 36_500 * DAY),
        "Life of a new root certificate"
    )
    .npm(&[npm("EVENTFLOW_CERT_ROOT_DAYS", "d")]),
    setting!(
        "certificates.intermediate",
        certificates.intermediate,
        form::duration().within(HOUR, 36_500 * DAY),
        "Life of a new intermediate certificate"
    )
    .npm(&[npm("EVENTFLOW_CERT_INTERMEDIATE_DAYS", "d")]),
    setting!(
        "certificates.hub_leaf",
        certificates.hub_leaf,
        form::duration().within(SECOND, 36_500 * DAY),
        "Life of the hub's own certificate"
    )
    .npm(&[npm("EVENTFLOW_CERT_LEAF_DAYS", "d")]),
    setting!(
        "certificates.spoke_leaf",
        certificates.spoke_leaf,
        form::duration().within(SECOND, 36_500 * DAY),
        "Life of certificates issued to spokes"
    ),
    setting!(
        "certificates.phrase",
        certificates.phrase,
        optional form::secret().or("(generated into the data folder)"),
        "Phrase that encrypts keys at rest; with it, npm's lifetimes and iterations are the defaults"
    )
    .secret()
    .npm(&[npm("EVENTFLOW_CERT_PASS_ENCRYPTION_KEY", "")]),
    setting!(
        "certificates.iterations",
        certificates.iterations,
        form::count().within(1, 100_000_000),
        "PBKDF2 iterations that make a key of the phrase"
    )
    .npm(&[npm("EVENTFLOW_CERT_PASS_PBKDF2_ITERATIONS", "")]),
    setting!(
        "certificates.cipher",
        certificates.cipher,
        form::cipher(),
        "What encrypts keys at rest, as npm hubs of the database do: aes-128-gcm, aes-192-gcm, aes-256-gcm"
    )
    .npm(&[npm("EVENTFLOW_CERT_PASS_CIPHER", "")]),
    setting!(
        "certificates.hash",
        certificates.hash,
        form::hash(),
        "What PBKDF2 makes the key for that with: sha256, sha384, sha512"
    )
    .npm(&[npm("EVENTFLOW_CERT_PASS_PBKDF2_HASH", "")]),
    setting!(
        "spokes.may_delete",
        spokes.may_delete,
        form::switch(),
        "Whether spokes may delete events and logs, cancel schedules, redrive events, and remove, purge or seek groups"
    ),
    setting!(
        "groups.max_attempts",
        groups.max_attempts,
        form::count().within(1, 1_000),
        "After so many attempts an event is dead, in groups that set nothing else"
    ),
    setting!(
        "groups.delay",
        groups.delay,
        form::duration().within(MS, DAY),
        "How long the first retry waits, in such groups; each further one twice as long"
    ),
    setting!("groups.max_delay", groups.max_delay, form::duration().within(MS, DAY), "The longest such wait"),
    setting!("admin.enabled", admin.enabled, form::switch(), "Whether there is an admin HTTP server"),
    setting!("admin.ip", admin.ip, form::ip(), "Address it listens on"),
    setting!("admin.port", admin.port, form::port(), "Port it listens on; 0: any free one"),
    setting!("log.format", log.format, form::log_format(), "Log for people or for programs"),
    setting!("log.level", log.level, form::log_level(), "error, warn, info, debug or trace"),
    setting!(
        "npm.keep_alive",
        npm.keep_alive,
        form::duration().within(SECOND, DAY),
        "TCP keep-alive of links of the npm dialect"
    )
    .npm(&[npm("EVENTFLOW_HUB_KEEP_ALIVE_INTERVAL", "ms")]),
    setting!(
        "npm.online_timeout",
        npm.online_timeout,
        form::duration().within(TEN_MS, HOUR),
        "How long telling another hub of this one may take"
    )
    .npm(&[npm("EVENTFLOW_HUB_PEER_HUB_ONLINE_TIMEOUT", "ms")]),
    setting!(
        "schedules.poll",
        schedules.poll,
        form::duration().within(TEN_MS, HOUR),
        "How often the database is read for schedules that others than this hub wrote into it"
    )
    .npm(&[
        npm("EVENTFLOW_HUB_SHEDULED_INTERVAL_DELAY", "ms"),
        npm("EVENTFLOW_HUB_SCHEDULED_INTERVAL_DELAY", "ms"),
    ]),
    setting!(
        "schedules.npm_overdue",
        schedules.npm_overdue,
        form::overdue(),
        "Schedules that npm hubs never ran are run if they were due at most so long before a hub of ours first served \
         the database (MySQL, MariaDB)"
    ),
    setting!(
        "collect.interval",
        collect.interval,
        form::duration().within(TEN_MS, HOUR),
        "How often the database is read for events that applications put there in transactions of their own"
    ),
    setting!(
        "collect.age",
        collect.age,
        form::duration().within(Duration::ZERO, HOUR),
        "How old such an event must be, unless a nudge names it"
    ),
    setting!(
        "retention.interval",
        retention.interval,
        form::duration().within(TEN_MS, DAY),
        "How often events are looked for that expire, or have been kept long enough"
    ),
    setting!(
        "retention.batch",
        retention.batch,
        form::count().within(1, 1_000),
        "Events that one transaction removes"
    ),
];
