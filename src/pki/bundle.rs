//! The file that a spoke without database access lives on: its chain, its key, the root, and where hubs are.

use std::{io, path::Path, time::SystemTime};

use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

use super::{DEFAULT_HUB_NAME, Identity, PkiError, Secret, files, x509};
use crate::{event::Uid, wire::HubAddress};

const REMEDY: &str = "issue a new bundle on the hub's machine (a restart of the hub renews the operator's)";

/// A party's credentials, TOML on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// PEM: the leaf, then its intermediate.
    pub cert: String,
    /// PEM: the leaf's private key, PKCS#8, not encrypted; hence mode 0600.
    pub key: Secret,
    /// PEM: the root, the only certificate that is trusted.
    pub root: String,
    /// The configured name of the hubs, for when no id among `hubs` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_name: Option<String>,
    /// Where hubs listen.
    #[serde(default)]
    pub hubs: Vec<HubAddress>,
}

impl Bundle {
    /// Reads a bundle and checks it as [`Bundle::check`] does, as of now.
    ///
    /// # Errors
    /// [`PkiError::Bundle`] says what is missing or wrong, and what to do.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, PkiError> {
        let path = path.as_ref();
        let bundle = Self::load(path)?;
        bundle.check(SystemTime::now()).map_err(|error| refused(path, format!("can't be used: {error}")))?;
        Ok(bundle)
    }

    /// Reads a bundle without a look at what it holds.
    pub(super) fn load(path: &Path) -> Result<Self, PkiError> {
        let text = Secret::new(std::fs::read_to_string(path).map_err(|error| {
            match error.kind() {
                io::ErrorKind::NotFound => refused(
                    path,
                    "isn't there: a hub writes one into its data folder at its first start. Name that folder \
                     (`--data-folder`, EVENTFLOW_DATA), or the file itself (`--bundle`, EVENTFLOW_BUNDLE); on \
                     another machine, copy the file there first"
                        .to_owned(),
                ),
                _ => refused(path, format!("can't be read ({error}): check its owner and mode")),
            }
        })?);
        // Only the message: the error's text shows lines of the file, which may be the key's.
        toml::from_str(text.expose())
            .map_err(|error| refused(path, format!("is no bundle ({}): {REMEDY}", error.message())))
    }

    /// Writes the bundle with mode 0600; a reader sees the old file or the new one.
    ///
    /// # Errors
    /// [`PkiError::File`].
    pub fn write_atomically(&self, path: impl AsRef<Path>) -> Result<(), PkiError> {
        let path = path.as_ref();
        let text = toml::to_string_pretty(self)
            .map(Secret::new)
            .map_err(|error| refused(path, format!("can't be written as TOML ({error})")))?;
        files::write_private(path, text.expose().as_bytes()).map_err(|source| PkiError::File {
            action: "write",
            path: path.to_owned(),
            source,
        })
    }

    /// Checks all that can be known without a hub: the parts are there and fit together, the chain ends at
    /// the root, and each certificate holds at `now`.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] names the certificate, the reason and the remedy.
    pub fn check(&self, now: SystemTime) -> Result<(), PkiError> {
        let identity = self.identity()?;
        let root = self.root_certificate()?;
        let chain = identity.chain().iter().chain([&root]).collect::<Vec<_>>();
        for (at, der) in chain.iter().enumerate() {
            let certificate = x509::parse(der, "the bundle")?;
            x509::check_dates(&certificate, now, REMEDY)?;
            if let Some(issuer) = chain.get(at + 1)
                && !x509::signed_by(&certificate, &x509::parse(issuer, "the bundle's issuer")?)
            {
                let reason = format!("isn't signed by the next one of the bundle's chain: {REMEDY}");
                return Err(PkiError::certificate(x509::display_name(&certificate), reason));
            }
        }
        Ok(())
    }

    /// Chain and key.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if they are no valid PEM, don't belong together, or break the rules for leaves.
    pub fn identity(&self) -> Result<Identity, PkiError> {
        Identity::from_pem(&self.cert, &self.key)
    }

    /// The UID of the leaf.
    ///
    /// # Errors
    /// As [`Bundle::identity`].
    pub fn uid(&self) -> Result<Uid, PkiError> {
        self.identity().map(|identity| identity.uid().clone())
    }

    /// The root.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if it's no single certificate.
    pub fn root_certificate(&self) -> Result<CertificateDer<'static>, PkiError> {
        let mut chain = x509::pem_chain(&self.root, "the root")?;
        match (chain.pop(), chain.is_empty()) {
            (Some(root), true) => Ok(root),
            _ => {
                Err(PkiError::certificate("the root", format!("must be the only one in its part: {REMEDY}")))
            }
        }
    }

    /// The configured name of the hubs: what follows the first dot of a hub's id, else the bundle's
    /// `hub_name`, else the default.
    #[must_use]
    pub fn hub_name(&self) -> &str {
        self.hubs
            .iter()
            .find_map(|hub| hub.id.as_deref().and_then(name_of))
            .or(self.hub_name.as_deref())
            .unwrap_or(DEFAULT_HUB_NAME)
    }
}

/// The configured name in an id: what follows its first dot.
pub(super) fn name_of(id: &str) -> Option<&str> {
    id.split_once('.').map(|(_, name)| name).filter(|name| !name.is_empty())
}

fn refused(path: &Path, reason: String) -> PkiError {
    // Absolute, since the folder that a program was started in is often the reason.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    PkiError::Bundle { bundle: path.display().to_string(), reason }
}

#[cfg(test)]
#[cfg(feature = "hub")]
mod tests;
