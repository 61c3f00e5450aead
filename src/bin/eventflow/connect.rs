//! From the command line's words to a link.

use std::{
    convert::Infallible,
    future::Future,
    path::{Path, PathBuf},
    time::Duration,
};

use eventflow::{
    pki::Bundle,
    spoke::{Spoke, SpokeConfig},
};

use crate::{
    arguments::Link,
    failure::Failure,
    output::{harmless, remark},
    stop::Stop,
};

/// What a data folder calls the operator's credentials.
const OPERATOR: &str = "operator.toml";

/// The file that holds the credentials.
fn bundle_path(link: &Link) -> PathBuf {
    link.bundle.clone().unwrap_or_else(|| link.data_folder.join(OPERATOR))
}

/// Reads the credentials and prepares the link.
pub(crate) fn config(link: &Link) -> Result<SpokeConfig, Failure> {
    let path = bundle_path(link);
    let mut bundle = Bundle::read(&path)?;
    warn_of_readers(&path);
    if bundle.hub_name.is_none() {
        bundle.hub_name = std::env::var("EVENTFLOW_HUB_NAME").ok().filter(|name| !name.is_empty());
    }
    let mut config = SpokeConfig::from_bundle(bundle);
    if !link.hub.is_empty() {
        config.hubs.clone_from(&link.hub);
    }
    config.client = concat!("eventflow ", env!("CARGO_PKG_VERSION")).to_owned();
    Ok(config)
}

/// Says that others than its owner can read a bundle, which holds a private key.
fn warn_of_readers(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if let Ok(metadata) = path.metadata()
            && metadata.permissions().mode() & 0o077 != 0
        {
            let path = path.display();
            remark(&harmless(&format!(
                "others may read {path}, which holds a private key: chmod 600 {path}"
            )));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// How often it is said again that the hub is away.
const AGAIN: Duration = Duration::from_secs(30);

/// Says when the hub goes and comes back, for as long as it is awaited.
pub(crate) async fn tell_absences(spoke: &Spoke) -> Infallible {
    loop {
        let mut away = spoke.status_when(|status| status.hub.is_none()).await;
        if away.closed {
            // What was under way says so itself.
            return std::future::pending().await;
        }
        let settled = spoke.status_when(|status| status.hub.is_some() || status.closed);
        if tokio::time::timeout(HUSH, settled).await.is_ok_and(|status| status.closed) {
            continue;
        }
        loop {
            let reason = away.trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
            remark(&format!("hub away{reason}; trying again"));
            let back = spoke.status_when(|status| status.hub.is_some() || status.closed);
            if tokio::time::timeout(AGAIN, back).await.is_ok() {
                break;
            }
            away = spoke.status();
        }
        if spoke.status().hub.is_some() {
            remark("hub is back");
        }
    }
}

/// How long nothing is said of a hub that has just gone: what the next attempt to reach it says may be final, and is
/// then told by what was under way.
const HUSH: Duration = Duration::from_millis(500);

/// What a work brings; meanwhile it is said when the hub goes and comes back.
pub(crate) async fn telling<T>(spoke: &Spoke, work: impl Future<Output = T>) -> T {
    tokio::select! {
        brought = work => brought,
        never = tell_absences(spoke) => match never {},
    }
}

/// Connects, unless a signal comes first.
pub(crate) async fn connect(config: SpokeConfig, stop: &Stop) -> Result<Spoke, Failure> {
    tokio::select! {
        connected = Spoke::connect(config) => Ok(connected?),
        () = stop.requested() => Err(Failure::Silent { exit: 130 }),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::Cli;

    fn link(line: &str) -> Link {
        Cli::try_parse_from(line.split_whitespace()).unwrap().link
    }

    #[test]
    fn the_bundle_is_named_or_the_operators() {
        let path = |line: &str| bundle_path(&link(line));
        assert_eq!(path("eventflow show a --bundle b.toml --data-folder c"), PathBuf::from("b.toml"));
        assert_eq!(path("eventflow --data-folder c show a"), PathBuf::from("c/operator.toml"));
    }

    #[test]
    fn a_missing_bundle_is_named() {
        let failure = config(&link("eventflow show a --data-folder /nowhere")).unwrap_err();
        let Failure::Told { sentence, .. } = &failure else { panic!("it is to be told") };
        assert!(sentence.contains("/nowhere/operator.toml"), "{sentence}");
    }
}
