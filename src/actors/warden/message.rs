//! What the warden is asked and told.

use std::time::Duration;

use crate::{
    actors::{
        listener::Listener,
        mail::{Handle, mail},
        monitor::Monitor,
    },
    event::{Fault, Uid},
    pki::{Bundle, Fingerprint},
    wire::Renewed,
};

/// Who cuts links and who keeps the log: comes once, when the cast is complete.
#[derive(Debug)]
pub struct Attend {
    /// Cuts links.
    pub listener: Handle<Listener>,
    /// Keeps the log.
    pub monitor: Handle<Monitor>,
}
mail!(Attend => ());

/// A link wants a new leaf for its own UID.
#[derive(Debug)]
pub struct Renew {
    /// Who it is, by its certificate.
    pub uid: Uid,
    /// The chain that it presented.
    pub shown: Box<[Fingerprint]>,
    /// The public key: SubjectPublicKeyInfo, DER in base64.
    pub key: String,
}
mail!(Renew => Result<Renewed, Fault>);

/// The operator wants a bundle for a spoke.
#[derive(Debug)]
pub struct Issue {
    /// The configured name; none: that of the hub's spokes.
    pub name: Option<String>,
    /// The whole id; none: a new one under the name.
    pub id: Option<String>,
    /// How long it is to hold; none: as configured.
    pub life: Option<Duration>,
}
mail!(Issue => Result<Handout, Fault>);

/// A bundle that was issued.
#[derive(Debug, Clone)]
pub struct Handout {
    /// The id in it.
    pub id: String,
    /// When its leaf ends to hold, in seconds since 1970.
    pub not_after: i64,
    /// Chain, key, root and hubs.
    pub bundle: Bundle,
}

/// The operator revokes all certificates of a spoke.
#[derive(Debug)]
pub struct Revoke {
    /// Its id.
    pub id: String,
}
mail!(Revoke => Result<Revocation, Fault>);

/// What was revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// The versions of the id's certificates that held until now.
    pub versions: Vec<u32>,
    /// The links of this hub that were cut.
    pub links: usize,
}
