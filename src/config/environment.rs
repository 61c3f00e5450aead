//! The environment: our names, npm's names, and what to say of the rest.

use super::{
    load::{Assignment, Gathered},
    problem::{Origin, Warning, hint},
    table::{NpmName, SETTINGS, Setting},
};

const PREFIX: &str = "EVENTFLOW_";

/// Read by the programs before the configuration, or by the command line client.
const NOT_SETTINGS: &[&str] = &["EVENTFLOW_CONFIG", "EVENTFLOW_BUNDLE", "EVENTFLOW_HUB"];

/// npm's names that mean nothing to this hub, and why.
const NO_EFFECT: &[(&str, &str)] = &[
    (
        "EVENTFLOW_HUB_SPOKE_ID_MESSAGE_TIMEOUT",
        "a spoke's id comes with its certificate, within limits.handshake",
    ),
    ("EVENTFLOW_SPOKE_CONNECT_TO_HUB_TIMEOUT", "it is a spoke's setting, not a hub's"),
    ("EVENTFLOW_SPOKE_KEEP_ALIVE_INTERVAL", "it is a spoke's setting, not a hub's"),
    ("EVENTFLOW_CERT_ALGORITHM", "this hub makes Ed25519 keys, and uses those of npm hubs whatever they are"),
    ("EVENTFLOW_CERT_HASH", "Ed25519 has its own"),
];

/// npm's size of a key, which follows from `certificates.cipher`.
const KEY_BYTES: &str = "EVENTFLOW_CERT_PASS_PBKDF2_BYTES";

/// Reads the variables. An empty one counts as not set.
pub(super) fn read(variables: impl IntoIterator<Item = (String, String)>, into: &mut Gathered) {
    let mut given: Vec<_> = variables
        .into_iter()
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.trim().is_empty())
        .collect();
    // npm's names first: our own name for the same setting, if set too, overrides it.
    given.sort_by_key(|(name, _)| (SETTINGS.iter().any(|setting| setting.variable() == *name), name.clone()));
    for (name, value) in given {
        read_one(name, value, into);
    }
}

fn read_one(name: String, value: String, into: &mut Gathered) {
    // npm's 4.0 wrote its certificate variables so.
    let modern = match name.strip_prefix("EVENTFLOW_HUB_CERT_") {
        Some(rest) => format!("EVENTFLOW_CERT_{rest}"),
        None => name.clone(),
    };
    if NOT_SETTINGS.contains(&name.as_str()) || name.starts_with("EVENTFLOW_TEST_") {
        return;
    }
    if let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) {
        assign(setting, value, name, into);
    } else if let Some((setting, npm)) = npm_setting(&modern) {
        assign(setting, with_unit(value, npm.unit), name, into);
    } else if modern == KEY_BYTES {
        into.key_bytes = Some((name, value));
    } else if let Some((_, reason)) = NO_EFFECT.iter().find(|(other, _)| *other == modern) {
        into.warnings.push(Warning(format!("{name} has no effect: {reason}")));
    } else {
        let names = SETTINGS.iter().map(Setting::variable);
        into.warnings.push(Warning(format!("{name} is not a setting{}", hint(&name, names))));
    }
}

fn assign(setting: &'static Setting, text: String, name: String, into: &mut Gathered) {
    into.assignments.push(Assignment { setting, text, origin: Origin::Variable(name) });
}

fn npm_setting(name: &str) -> Option<(&'static Setting, &'static NpmName)> {
    SETTINGS
        .iter()
        .find_map(|setting| setting.npm.iter().find(|npm| npm.name == name).map(|npm| (setting, npm)))
}

/// npm's times are plain numbers.
fn with_unit(value: String, unit: &str) -> String {
    let number = value.trim();
    if number.bytes().all(|byte| byte.is_ascii_digit()) { format!("{number}{unit}") } else { value }
}
