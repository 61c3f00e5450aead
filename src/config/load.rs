//! From text to a checked configuration. Pure: no file, no variable, no clock is read here.

use std::{borrow::Cow, collections::HashMap};

use super::{
    CertificateSettings, DomainPolicy, HubConfig, check,
    domain::DOMAIN_KEYS,
    environment, file,
    problem::{ConfigProblems, Origin, Problem, Warning, hint},
    table::{SETTINGS, Setting},
    value::Secret,
};

/// A file that was read.
#[derive(Debug, Clone, Copy)]
pub struct FileText<'a> {
    /// How messages name it.
    pub path: &'a str,
    /// What it holds: TOML.
    pub text: &'a str,
}

/// A flag as it was given, without its hyphens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// `limits-ping`.
    pub name: String,
    /// `None`: nothing stood behind it.
    pub value: Option<String>,
}

/// A configuration that holds together.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The values.
    pub config: HubConfig,
    /// What may surprise.
    pub warnings: Vec<Warning>,
    origins: HashMap<&'static str, Origin>,
    /// Of each domain's entry: its place, and that of each of its keys.
    domains: Vec<(Origin, Vec<(&'static str, Origin)>)>,
}

impl Loaded {
    /// Every setting as key, value (secrets masked) and where the value came from.
    pub fn effective(&self) -> impl Iterator<Item = (Cow<'static, str>, String, Origin)> + '_ {
        let settings = SETTINGS.iter().map(|setting| {
            let origin = self.origins.get(setting.key).cloned().unwrap_or(Origin::Default);
            (Cow::Borrowed(setting.key), (setting.show)(&self.config), origin)
        });
        settings.chain(self.effective_domains())
    }

    fn effective_domains(&self) -> impl Iterator<Item = (Cow<'static, str>, String, Origin)> + '_ {
        let entries = self.config.domains.iter().zip(&self.domains).enumerate();
        entries.flat_map(|(place, (policy, (origin, keys)))| {
            let name = move |key: &str| Cow::Owned(format!("domain[{place}].{key}"));
            let set = DOMAIN_KEYS.iter().filter_map(move |known| {
                let (_, origin) = keys.iter().find(|(key, _)| *key == known.key)?;
                Some((name(known.key), (known.show)(policy)?, origin.clone()))
            });
            [(name("pattern"), policy.pattern.to_string(), origin.clone())].into_iter().chain(set)
        })
    }
}

/// An entry of the file that could be read as one.
pub(super) struct DomainEntry {
    pub(super) policy: DomainPolicy,
    pub(super) origin: Origin,
    /// What it sets besides the pattern, and where.
    pub(super) keys: Vec<(&'static str, Origin)>,
}

/// A value that somebody set.
pub(super) struct Assignment {
    pub(super) setting: &'static Setting,
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// What the readers of the sources bring together, the weakest source first.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) assignments: Vec<Assignment>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Warning>,
    /// In the order of the file.
    pub(super) domains: Vec<DomainEntry>,
    /// npm's size of the key that is made of the phrase, and the variable that says it.
    pub(super) key_bytes: Option<(String, String)>,
    /// The file is no TOML from some line on: what stands there isn't known, nor how it relates to the rest.
    pub(super) is_cut: bool,
}

/// Makes a configuration of a file's text, environment variables (those that aren't Eventflow's are passed
/// over) and flags; a later source overrides an earlier one.
///
/// # Errors
/// [`ConfigProblems`] lists all that is wrong, in all sources.
pub fn load(
    file: Option<FileText<'_>>,
    variables: impl IntoIterator<Item = (String, String)>,
    flags: impl IntoIterator<Item = Flag>,
) -> Result<Loaded, ConfigProblems> {
    let mut gathered = Gathered::default();
    if let Some(file) = file {
        file::read(file.path, file.text, &mut gathered);
    }
    environment::read(variables, &mut gathered);
    read_flags(flags, &mut gathered);

    let Gathered { assignments, mut problems, mut warnings, domains, key_bytes, is_cut } = gathered;
    let mut config = base(&assignments);
    config.domains = domains.iter().map(|entry| entry.policy.clone()).collect();
    let mut origins = HashMap::new();
    let mut failed = Vec::new();
    for Assignment { setting, text, origin } in assignments {
        match (setting.set)(&mut config, &text) {
            Ok(()) => {
                origins.insert(setting.key, origin);
            }
            Err(reason) => {
                failed.push(setting.key);
                problems.push(unreadable(setting, &text, &origin, &reason));
            }
        }
    }
    if !is_cut {
        problems.extend(key_bytes.and_then(|(name, bytes)| check::key_bytes(&config, &name, &bytes)));
        check::relations(&config, &origins, &failed, &mut problems, &mut warnings);
        check::domains(&domains, &mut warnings);
        check::waits(&config, &mut warnings);
    }
    if problems.is_empty() {
        let domains = domains.into_iter().map(|entry| (entry.origin, entry.keys)).collect();
        Ok(Loaded { config, warnings, origins, domains })
    } else {
        Err(ConfigProblems { problems, warnings })
    }
}

/// Defaults, which for certificates depend on whether somebody chose the phrase, or a server keeps them.
fn base(assignments: &[Assignment]) -> HubConfig {
    let mut config = HubConfig::default();
    if assignments.iter().any(|given| given.setting.key == "certificates.phrase") {
        config.certificates = CertificateSettings::with_phrase(Secret::new(""));
    } else if assignments.iter().any(|given| names_server(given.setting.key)) {
        config.certificates = CertificateSettings::on_server();
    }
    config
}

/// Whether setting it means a database server.
pub(super) fn names_server(key: &str) -> bool {
    key == "store.url" || (key.starts_with("mysql.") && key != "mysql.npm_time_zone")
}

fn read_flags(flags: impl IntoIterator<Item = Flag>, into: &mut Gathered) {
    for Flag { name, value } in flags {
        let setting = SETTINGS.iter().find(|setting| setting.flag() == name);
        match (setting, value) {
            (Some(setting), Some(text)) => {
                into.assignments.push(Assignment { setting, text, origin: Origin::Flag(name) });
            }
            (Some(setting), None) => into
                .problems
                .push(Problem::new(format!("--{name} needs a value: --{name} {}", (setting.placeholder)()))),
            (None, _) => {
                let names = SETTINGS.iter().map(|setting| format!("--{}", setting.flag()));
                let hint = hint(&format!("--{name}"), names);
                into.problems.push(Problem::new(format!("--{name} is not a flag{hint}")));
            }
        }
    }
}

fn unreadable(setting: &Setting, text: &str, origin: &Origin, reason: &str) -> Problem {
    let text: String = if setting.secret { "***".to_owned() } else { text.chars().take(80).collect() };
    let place = match origin {
        Origin::File { .. } => format!("{origin}: {}", setting.key),
        Origin::Default | Origin::Variable(_) | Origin::Flag(_) => format!("{origin} ({})", setting.key),
    };
    Problem { code: setting.code, message: format!("{place} = {text:?} {reason}") }
}
