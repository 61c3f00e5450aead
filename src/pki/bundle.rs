//! The file that a spoke without database access lives on: its chain, its key, the root, and where hubs are.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

use super::{DEFAULT_HUB_NAME, FreshKey, Identity, PkiError, Secret, files, x509};
use crate::{event::Uid, wire::HubAddress};

const REMEDY: &str = "issue a new bundle on the hub's machine (`eventflow cert issue`; the operator's is renewed by its \
                      hub, while that runs)";

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
    /// Where it was read.
    #[serde(skip)]
    pub(super) origin: Origin,
}

/// The file that a bundle was read from, if it was. It is no part of what the bundle says: two with different
/// origins can be equal.
#[derive(Debug, Clone, Default, Eq)]
pub(super) struct Origin(Option<PathBuf>);

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Bundle {
    /// Credentials that come from elsewhere than a file, as PEM: leaf and intermediate, the leaf's key, the root.
    #[must_use]
    pub fn new(cert: impl Into<String>, key: Secret, root: impl Into<String>) -> Self {
        let (cert, root) = (cert.into(), root.into());
        Self { cert, key, root, hub_name: None, hubs: Vec::new(), origin: Origin::default() }
    }

    /// Reads a bundle and checks it as [`Bundle::check`] does, as of now.
    ///
    /// # Errors
    /// [`PkiError::Bundle`] says what is missing or wrong, and what to do.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, PkiError> {
        let path = path.as_ref();
        let mut bundle = Self::load(path)?;
        bundle.check(SystemTime::now()).map_err(|error| match error {
            PkiError::Expired { certificate, ended, remedy } => {
                let certificate = format!("{certificate} in the bundle {}", absolute(path).display());
                PkiError::Expired { certificate, ended, remedy }
            }
            error => refused(path, format!("can't be used: {error}")),
        })?;
        // Through links: what is replaced one day is the file that they lead to.
        bundle.origin = Origin(fs::canonicalize(path).ok());
        Ok(bundle)
    }

    /// The file that it was read from, if it was; links are resolved.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.origin.0.as_deref()
    }

    /// The same credentials renewed: what a hub answered for the public half of `key`.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if the answer can't be used, or is for somebody else.
    pub fn renewed(&self, key: &FreshKey, cert: String, root: String) -> Result<Self, PkiError> {
        let renewed = Self { cert, key: key.private_key().clone(), root, ..self.clone() };
        renewed.check(SystemTime::now())?;
        let (was, is) = (self.uid()?, renewed.uid()?);
        if was != is {
            let reason = format!("came as the renewal of that of {was}: it is not used");
            return Err(PkiError::certificate(is.as_str(), reason));
        }
        Ok(renewed)
    }

    /// When two thirds of the leaf's life are over: then it is to be renewed.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if the leaf can't be read.
    pub fn renew_at(&self) -> Result<SystemTime, PkiError> {
        let chain = x509::pem_chain(&self.cert, "the bundle")?;
        Ok(x509::two_thirds(&x509::parse(&chain[0], "the bundle")?))
    }

    /// From when on the leaf holds, in seconds since 1970 (UTC).
    #[cfg(feature = "hub")]
    pub(crate) fn holds_from(&self) -> Result<i64, PkiError> {
        let chain = x509::pem_chain(&self.cert, "the bundle")?;
        Ok(x509::lifetime(&x509::parse(&chain[0], "the bundle")?).0)
    }

    /// The leaf alone, PEM, and when it ends to hold, in seconds since 1970 (UTC).
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if the leaf can't be read.
    pub fn leaf(&self) -> Result<(String, i64), PkiError> {
        let chain = x509::pem_chain(&self.cert, "the bundle")?;
        let end = x509::lifetime(&x509::parse(&chain[0], "the bundle")?).1;
        Ok((super::key::pem("CERTIFICATE", &chain[0]), end))
    }

    /// Reads a bundle without a look at what it holds: one that can't be used any more still says whose it is.
    ///
    /// # Errors
    /// [`PkiError::Bundle`] if the file isn't there, can't be read or is no bundle.
    pub fn load(path: &Path) -> Result<Self, PkiError> {
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
        let text = self.to_toml()?;
        files::write_private(path, text.expose().as_bytes()).map_err(|source| PkiError::File {
            action: "write",
            path: path.to_owned(),
            source,
        })
    }

    /// Replaces the file that it was read from, as [`Bundle::write_atomically`] does, if that still is the same
    /// party's.
    ///
    /// # Errors
    /// [`PkiError::File`]; [`PkiError::Bundle`] if it wasn't read from a file, or somebody put another bundle there.
    pub fn write_back(&self) -> Result<(), PkiError> {
        let Some(path) = self.path() else {
            return Err(refused(Path::new(""), "wasn't read from a file: write it to one".to_owned()));
        };
        match Self::load(path).and_then(|there| there.uid()) {
            Ok(uid) if uid != self.uid()? => {
                let reason = format!("is now that of {uid}, and stays: name another file for this one");
                Err(refused(path, reason))
            }
            _ => self.write_atomically(path),
        }
    }

    /// The text of its file. A comment at its top says whose it is and until when.
    ///
    /// # Errors
    /// [`PkiError::Bundle`] if a part can't stand in TOML; what a hub issued can.
    pub fn to_toml(&self) -> Result<Secret, PkiError> {
        let text = toml::to_string_pretty(self).map(Secret::new).map_err(|error| {
            refused(self.path().unwrap_or(Path::new("")), format!("can't be written as TOML ({error})"))
        })?;
        Ok(Secret::new(format!("{}{}", self.heading().unwrap_or_default(), text.expose())))
    }

    /// Whose it is and until when, as a comment; none if its certificate can't be read.
    fn heading(&self) -> Option<String> {
        let (uid, (_, end)) = (self.uid().ok()?, self.leaf().ok()?);
        let end = x509::display_time(u64::try_from(end).ok()?);
        Some(format!("# {uid}, until {end}\n"))
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
    PkiError::Bundle { bundle: absolute(path).display().to_string(), reason }
}

/// Absolute, since the folder that a program was started in is often the reason.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
#[cfg(feature = "hub")]
mod tests;
