//! Root, intermediates and leaves: uses what stands in the database, makes what's missing or due.

#[cfg(test)]
mod clock_tests;
mod establish;
mod issue;
#[cfg(test)]
mod kinds_tests;
mod rows;
mod shape;
mod sign;
mod signer;
#[cfg(test)]
mod tests;

use std::{
    fmt::{self, Write},
    time::{Duration, SystemTime},
};

use rustls::pki_types::CertificateDer;
#[cfg(test)]
use rustls::pki_types::PrivateKeyDer;
use sha2::{Digest, Sha256};

use establish::span;
pub use establish::{establish, renew};
use issue::{Pair, Role, issue};
pub use rows::{CertificateRow, CertificateRows};
pub use signer::{Leaf, Signer};

pub use super::ids::ROOT_ID;
use super::{
    Bundle, DEFAULT_HUB_NAME, DEFAULT_SPOKE_NAME, Identity, PkiError, Secret, check_name, new_id, x509,
};
use crate::wire::HubAddress;

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// How long new certificates hold; none outlives its issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// The root.
    pub root: Duration,
    /// Each intermediate.
    pub intermediate: Duration,
    /// The hub's own leaf.
    pub hub_leaf: Duration,
    /// Leaves issued to spokes.
    pub spoke_leaf: Duration,
}

impl Default for Lifetimes {
    /// Those of a hub on SQLite: 10 years, 1 year, 7 days, 90 days.
    fn default() -> Self {
        Self { root: 3_650 * DAY, intermediate: 365 * DAY, hub_leaf: 7 * DAY, spoke_leaf: 90 * DAY }
    }
}

/// Whose certificates an authority keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The hub's id; its leaf's UID.
    pub hub_id: String,
    /// The configured name of the hubs.
    pub hub_name: String,
    /// The configured name of the spokes.
    pub spoke_name: String,
}

impl Default for Names {
    /// The default names and a new id.
    fn default() -> Self {
        Self {
            hub_id: new_id(DEFAULT_HUB_NAME),
            hub_name: DEFAULT_HUB_NAME.to_owned(),
            spoke_name: DEFAULT_SPOKE_NAME.to_owned(),
        }
    }
}

impl Names {
    fn check(&self) -> Result<(), PkiError> {
        check_name(&self.hub_name)?;
        check_name(&self.spoke_name)?;
        check_id(&self.hub_id, &self.hub_name)
    }
}

/// The certificates of one hub, opened, and the power to issue for spokes.
pub struct Authority {
    root: CertificateDer<'static>,
    hub: Identity,
    spokes: Pair,
    spoke_name: String,
    spoke_leaf: Duration,
    renew_at: SystemTime,
    early: Vec<String>,
}

/// A leaf that was issued: to use at once, and as PEM to hand out.
#[derive(Debug, Clone)]
pub struct Issued {
    /// Chain and key.
    pub identity: Identity,
    /// PEM: the leaf, then its intermediate.
    pub cert: String,
    /// PEM: the private key, not encrypted.
    pub key: Secret,
}

impl Authority {
    /// What the hub proves itself by.
    #[must_use]
    pub fn hub_identity(&self) -> &Identity {
        &self.hub
    }

    /// The root: what both sides trust.
    #[must_use]
    pub fn root(&self) -> &CertificateDer<'static> {
        &self.root
    }

    /// The root as PEM.
    #[must_use]
    pub fn root_pem(&self) -> String {
        to_pem("CERTIFICATE", &self.root)
    }

    /// SHA-256 of the root, hexadecimal pairs with colons, to compare by eye.
    #[must_use]
    pub fn root_fingerprint(&self) -> String {
        let mut text = String::with_capacity(95);
        for (at, byte) in Sha256::digest(&self.root).iter().enumerate() {
            // Writing to a string doesn't fail.
            let _ = write!(text, "{}{byte:02X}", if at == 0 { "" } else { ":" });
        }
        text
    }

    /// When [`establish`] has something to renew, at the latest: call it again then.
    #[must_use]
    pub fn renew_at(&self) -> SystemTime {
        self.renew_at
    }

    /// From when and until when the hub's own leaf holds, in seconds since 1970 (UTC).
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if it can't be read, which it was when it was made.
    pub fn hub_leaf_holds(&self) -> Result<(i64, i64), PkiError> {
        Ok(x509::lifetime(&x509::parse(&self.hub.chain()[0], "this hub")?))
    }

    /// From when on all of its certificates hold, in seconds since 1970 (UTC): later than now, if the clock was set
    /// back since they were made. Then [`establish`] makes those anew that it can.
    ///
    /// # Errors
    /// As [`Authority::hub_leaf_holds`].
    pub fn holds_from(&self) -> Result<i64, PkiError> {
        let mut latest = i64::MIN;
        for der in self.certificates() {
            latest = latest.max(x509::lifetime(&x509::parse(der, "this hub")?).0);
        }
        Ok(latest)
    }

    /// What was made anew since it didn't hold yet: of each certificate its id, from when on it held and what the clock
    /// said.
    #[must_use]
    pub fn early(&self) -> &[String] {
        &self.early
    }

    /// All certificates that this hub needs: its chain, the root, the spokes' intermediate.
    pub fn certificates(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.hub.chain().iter().chain([&self.root, &self.spokes.cert])
    }

    /// Issues a leaf for a spoke, with a new key. `uid` is an id under the spokes' configured name.
    ///
    /// # Errors
    /// [`PkiError::Issue`] if the id isn't under that name or the intermediate can't sign; [`PkiError::Random`].
    pub fn issue_spoke_leaf(&self, uid: &str, now: SystemTime) -> Result<Issued, PkiError> {
        check_id(uid, &self.spoke_name)?;
        let span = span(self.spoke_leaf, now, Some(&self.spokes))?;
        let leaf = issue(Role::Leaf, uid, Some(&self.spokes), span)?;
        let cert = to_pem("CERTIFICATE", &leaf.cert) + &to_pem("CERTIFICATE", &self.spokes.cert);
        let key = Secret::new(to_pem("PRIVATE KEY", leaf.key.secret_der()));
        let identity = Identity::new(vec![leaf.cert, self.spokes.cert.clone()], leaf.key)?;
        Ok(Issued { identity, cert, key })
    }

    /// Issues a leaf for a spoke as the bundle that it lives on.
    ///
    /// # Errors
    /// As [`Authority::issue_spoke_leaf`].
    pub fn issue_bundle(
        &self,
        uid: &str,
        hubs: Vec<HubAddress>,
        now: SystemTime,
    ) -> Result<Bundle, PkiError> {
        let Issued { cert, key, .. } = self.issue_spoke_leaf(uid, now)?;
        let hub_name = super::bundle::name_of(self.hub.uid()).map(str::to_owned);
        Ok(Bundle { hub_name, hubs, ..Bundle::new(cert, key, self.root_pem()) })
    }

    #[cfg(test)]
    pub(super) fn spoke_issuer(&self) -> (&CertificateDer<'static>, &PrivateKeyDer<'static>) {
        (&self.spokes.cert, &self.spokes.key)
    }

    /// The intermediate that stands above spokes.
    pub(super) fn spoke_intermediate(&self) -> &CertificateDer<'static> {
        &self.spokes.cert
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("hub", &self.hub)
            .field("spoke_name", &self.spoke_name)
            .finish_non_exhaustive()
    }
}

fn check_id(id: &str, name: &str) -> Result<(), PkiError> {
    let usable = id.len() <= 64 && rustls::pki_types::DnsName::try_from(id).is_ok();
    if usable && x509::lies_under(id, name) {
        return Ok(());
    }
    let reason = format!("an id is at most 64 characters, a DNS name, and ends with .{name}");
    Err(PkiError::Issue { certificate: id.chars().take(80).collect(), reason })
}

fn to_pem(label: &str, der: &[u8]) -> String {
    super::key::pem(label, der)
}
