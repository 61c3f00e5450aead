//! What must hold between settings.

use std::collections::HashMap;

use super::{
    HubConfig,
    load::{DomainEntry, names_server},
    problem::{Origin, Problem, Warning},
    table,
};

/// A relation: the settings it is about, and what is wrong if it doesn't hold.
struct Relation {
    keys: &'static [&'static str],
    broken: fn(&HubConfig) -> bool,
    sentence: &'static str,
}

/// Characters of the columns `external_ip` and `internal_ip` of npm's table `hub`.
const MYSQL_HOST: usize = 16;

const RELATIONS: &[Relation] = &[
    Relation {
        keys: &["limits.silence", "limits.ping"],
        broken: |config| config.limits.silence <= config.limits.ping,
        sentence: "silence must be longer than ping, else every idle link is cut",
    },
    Relation {
        keys: &["groups.max_delay", "groups.delay"],
        broken: |config| config.groups.max_delay < config.groups.delay,
        sentence: "the longest wait for a retry can't be shorter than the first",
    },
    Relation {
        keys: &["admin.port", "hub.internal_port"],
        broken: |config| {
            let (hub, admin) = (&config.hub, &config.admin);
            let same_ip =
                hub.internal_ip == admin.ip || hub.internal_ip.is_unspecified() || admin.ip.is_unspecified();
            admin.enabled && same_ip && admin.port == hub.internal_port && admin.port != 0
        },
        sentence: "the admin server can't share the hub's address: choose another port",
    },
    Relation {
        keys: &["hub.internal_ip", "hub.external_ip"],
        broken: |config| config.hub.internal_ip.is_unspecified() && config.hub.external_ip.is_none(),
        sentence: "nobody can dial that address: say in hub.external_ip what spokes shall dial",
    },
    Relation {
        keys: &["hub.name", "spoke.name"],
        // The client tells a hub from a spoke by the end of the name in its certificate.
        broken: |config| {
            let hub = config.hub.name.as_str().to_ascii_lowercase();
            let spoke = config.hub.spoke_name.as_str().to_ascii_lowercase();
            spoke == hub || spoke.ends_with(&format!(".{hub}"))
        },
        sentence: "a spoke's certificate would pass for a hub's: spoke.name must not be, or end with, hub.name",
    },
    Relation {
        keys: &["hub.external_ip", "hub.internal_ip"],
        broken: |config| {
            let is_mysql = config.server().is_some_and(|url| url.is_mysql());
            let hosts = [config.hub.external_host(), config.hub.internal_ip.to_string()];
            is_mysql && hosts.iter().any(|host| host.len() > MYSQL_HOST)
        },
        sentence: "the table that npm hubs share has 16 characters for an address: set hub.external_ip to an IPv4 \
                   address that spokes can dial",
    },
    Relation {
        keys: &["limits.outbound_bytes", "limits.data_bytes"],
        broken: |config| config.limits.outbound_bytes < config.limits.record_bytes(),
        sentence: "one event and 64 KiB around it must fit into what may wait on a link",
    },
    Relation {
        keys: &["limits.queue_bytes", "limits.data_bytes"],
        broken: |config| config.limits.queue_bytes < config.limits.record_bytes(),
        sentence: "one event and 64 KiB around it must fit into the hub's queues",
    },
];

/// A certificate ends with its issuer, if that is shorter.
struct Issued {
    subject: &'static str,
    issuer: &'static str,
    longer: fn(&HubConfig) -> bool,
}

const ISSUED: &[Issued] = &[
    Issued {
        subject: "certificates.intermediate",
        issuer: "certificates.root",
        longer: |config| config.certificates.intermediate > config.certificates.root,
    },
    Issued {
        subject: "certificates.hub_leaf",
        issuer: "certificates.intermediate",
        longer: |config| config.certificates.hub_leaf > config.certificates.intermediate,
    },
    Issued {
        subject: "certificates.spoke_leaf",
        issuer: "certificates.intermediate",
        longer: |config| config.certificates.spoke_leaf > config.certificates.intermediate,
    },
];

/// npm lets its users choose the size of the key too, which only the cipher's can be.
pub(super) fn key_bytes(config: &HubConfig, name: &str, bytes: &str) -> Option<Problem> {
    let needed = config.certificates.cipher.key_bytes();
    let problem = || {
        let cipher = table::find("certificates.cipher").map(|setting| (setting.show)(config));
        let cipher = cipher.unwrap_or_default();
        Problem::new(format!("{name} = {bytes:?}: {cipher} takes a key of {needed} bytes: unset it"))
    };
    (bytes.trim() != needed.to_string()).then(problem)
}

/// Checks the relations between settings that could be read.
pub(super) fn relations(
    config: &HubConfig,
    origins: &HashMap<&'static str, Origin>,
    failed: &[&'static str],
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<Warning>,
) {
    let told = |key: &str| {
        let value = table::find(key).map(|setting| (setting.show)(config)).unwrap_or_default();
        format!("{key} = {value} ({})", origins.get(key).unwrap_or(&Origin::Default))
    };
    for relation in RELATIONS {
        if (relation.broken)(config) && !relation.keys.iter().any(|key| failed.contains(key)) {
            let told: Vec<_> = relation.keys.iter().map(|key| told(key)).collect();
            problems.push(Problem::new(format!("{}: {}", told.join(", "), relation.sentence)));
        }
    }
    let server: Vec<_> =
        origins.keys().filter(|key| key.starts_with("mysql.") && names_server(key)).copied().collect();
    if let (Some(url), Some(first)) = (origins.get("store.url"), server.iter().min()) {
        let place = &origins[first];
        problems.push(Problem::new(format!(
            "store.url ({url}), {first} ({place}): both name a database server: leave one of them out"
        )));
    }
    for Issued { subject, issuer, longer } in ISSUED {
        if longer(config) && origins.contains_key(subject) {
            let sentence = "no certificate outlives its issuer: it will end with it";
            warnings.push(Warning(format!("{}, {}: {sentence}", told(subject), told(issuer))));
        }
    }
}

/// Warns of entries that never hold: the first that matches does.
pub(super) fn domains(entries: &[DomainEntry], warnings: &mut Vec<Warning>) {
    for (place, entry) in entries.iter().enumerate() {
        let pattern = &entry.policy.pattern;
        if let Some(before) = entries[..place].iter().find(|before| before.policy.pattern.covers(pattern)) {
            let (origin, earlier) = (&entry.origin, &before.policy.pattern);
            warnings.push(Warning(format!(
                "{origin}: domain[{place}], {pattern}, has no effect: the first entry that matches holds, and \
                 {earlier} ({}) matches all of it",
                before.origin
            )));
        }
    }
}

/// Warns of orphans that are gone before their time: a consumer that comes late won't find them.
pub(super) fn waits(config: &HubConfig, warnings: &mut Vec<Warning>) {
    for (pattern, policy) in config.policies().iter() {
        for (key, keep) in [("expire_after", policy.expire_after), ("keep_orphan", policy.keep_orphan)] {
            if keep < policy.orphan_keep {
                warnings.push(Warning(format!(
                    "{key} of the domains {pattern} is shorter than their orphan_keep: a consumer that comes late is \
                     offered what is younger than {key} alone"
                )));
            }
        }
    }
}
