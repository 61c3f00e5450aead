//! Why a hub didn't start or didn't go on.

use std::{fmt, io, net::SocketAddr, path::PathBuf};

use crate::{
    admin::AdminError,
    event::code,
    pki::PkiError,
    store::{StoreError, UrlError},
};

/// Why a hub didn't start or didn't go on. Its text says what, which object, why and what to do. `Debug` is that text
/// with its code, since it is what a `main` that returns the error prints.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The data folder can't be used.
    #[error(
        "can't {action} {}: {source}: check that this user owns it and may write there, or choose another data \
         folder (`data`)",
        path.display()
    )]
    Folder {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The data folder is none.
    #[error("{} is a file, not a folder: move it away, or choose another data folder (`data`)", path.display())]
    NotAFolder {
        /// What was named.
        path: PathBuf,
    },
    /// Another hub uses the data folder.
    #[error(
        "the data folder {} is in use by another hub: stop that one, or choose another data folder (`data`)",
        path.display()
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// There is no database where one is to be read.
    #[error(
        "there is no database in {}: name the data folder of a hub that has run, or the URL of a database server",
        path.display()
    )]
    NoDatabase {
        /// The folder.
        path: PathBuf,
    },
    /// A hub serves the database on a server.
    #[error(
        "the database {place} is served by the hub {hub}, which renews its lease: stop all hubs of it first"
    )]
    Served {
        /// Which database, without its password.
        place: String,
        /// The hub's id.
        hub: String,
    },
    /// The address can't be listened on.
    #[error(
        "can't listen on {addr}: {source}: {}set `hub.internal_ip` and `hub.internal_port` to another address \
         (port 0: any free one)",
        why_not_listening(source)
    )]
    Address {
        /// The address.
        addr: SocketAddr,
        /// The system's words.
        source: io::Error,
    },
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database's URL can't be read.
    #[error("the database {url} can't be dialed: {source}: correct `store.url`")]
    DatabaseUrl {
        /// Without its password.
        url: String,
        /// What is wrong.
        source: UrlError,
    },
    /// Certificates and keys.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The admin HTTP server.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// A thread can't be started.
    #[error("can't start a thread for the hub: {0}: look at the limits of this user")]
    Thread(io::Error),
    /// A part failed again and again.
    #[error(
        "the {part} failed {failures} times within {seconds} s and the hub gave up: its log says why; nothing that \
         was acknowledged is lost"
    )]
    GaveUp {
        /// Which actor failed last.
        part: &'static str,
        /// How often.
        failures: usize,
        /// Within which time.
        seconds: u64,
    },
    /// The hub ended by a failure.
    #[error(transparent)]
    Failed(std::sync::Arc<HubError>),
    /// The hub's thread ended without a word.
    #[error("the hub's thread ended unexpectedly: its log says why")]
    Vanished,
}

/// What the system's words mean, and what to do besides setting another address.
fn why_not_listening(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "stop what listens there, or ",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address: ",
        _ => "",
    }
}

impl fmt::Debug for HubError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.code())
    }
}

impl HubError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Folder { .. } | Self::NotAFolder { .. } | Self::NoDatabase { .. } => code::DATA_FOLDER,
            Self::InUse { .. } | Self::Served { .. } => code::DB_IN_USE,
            Self::Address { .. } => code::ADDRESS,
            Self::Store(error) => error.code(),
            Self::Pki(error) => error.code(),
            Self::Admin(error) => error.code(),
            Self::DatabaseUrl { .. } => code::INVALID_CONFIG,
            Self::Failed(error) => error.code(),
            Self::Thread(_) | Self::GaveUp { .. } | Self::Vanished => code::INTERNAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_had_says_why() {
        let text = |kind: io::ErrorKind| {
            let error = HubError::Address { addr: ([192, 0, 2, 1], 50001).into(), source: kind.into() };
            assert_eq!(format!("{error:?}"), format!("{error} (E_EVENTFLOW_ADDRESS)"));
            error.to_string()
        };
        let (used, foreign) = (text(io::ErrorKind::AddrInUse), text(io::ErrorKind::AddrNotAvailable));
        assert!(used.contains("192.0.2.1:50001") && used.contains("stop what listens there"), "{used}");
        assert!(
            foreign.contains("this machine has no such address") && !foreign.contains("stop"),
            "{foreign}"
        );
    }
}
