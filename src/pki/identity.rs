//! Who a party is: the chain and key that it shows, and the rules that a peer's chain must follow.

use std::{fmt, sync::Arc};

use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};

use super::{PkiError, Secret, provider, x509};
use crate::event::Uid;

/// What one party proves itself by: its chain, leaf first, and the leaf's key. They are known to match.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    uid: Uid,
}

impl Identity {
    /// Takes a chain (leaf, then intermediate) and the leaf's key.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if the leaf breaks the rules of [`peer_uid`] or the key isn't its own.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, PkiError> {
        let uid = peer_uid(&chain)?;
        let identity = Self { chain, key, uid };
        identity.certified_key()?;
        Ok(identity)
    }

    /// The same from PEM texts.
    ///
    /// # Errors
    /// As [`Identity::new`]; also for a text that isn't PEM.
    pub fn from_pem(chain: &str, key: &Secret) -> Result<Self, PkiError> {
        Self::new(x509::pem_chain(chain, "this party")?, key_from_pem(key, "this party")?)
    }

    /// The chain, leaf first.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The leaf's private key.
    #[must_use]
    pub fn key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }

    /// The UID of the leaf.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// The form that rustls signs with.
    pub(super) fn certified_key(&self) -> Result<Arc<CertifiedKey>, PkiError> {
        certified_key(self.chain.clone(), &self.key, &self.uid)
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key(), uid: self.uid.clone() }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// Loads a key and checks that it belongs to the first certificate of `chain`.
pub(super) fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'static>,
    whose: &str,
) -> Result<Arc<CertifiedKey>, PkiError> {
    let key = provider().key_provider.load_private_key(key.clone_key()).map_err(|error| {
        PkiError::certificate(whose, format!("has a private key of a kind that can't be used ({error})"))
    })?;
    let certified = CertifiedKey::new(chain, key);
    certified.keys_match().map_err(|_| {
        PkiError::certificate(whose, "doesn't belong to the private key beside it: take both from one issue")
    })?;
    Ok(Arc::new(certified))
}

/// The private key of a PEM text (`PRIVATE KEY`, unencrypted).
pub(super) fn key_from_pem(pem: &Secret, whose: &str) -> Result<PrivateKeyDer<'static>, PkiError> {
    PrivateKeyDer::from_pem_slice(pem.expose().as_bytes()).map_err(|error| {
        PkiError::certificate(
            whose,
            format!("has a private key that is no PEM `PRIVATE KEY` ({})", x509::why_no_pem(&error)),
        )
    })
}

/// The identity that a presented chain claims, leaf first, after the rules that TLS libraries don't check:
/// the subject has exactly one UID, the SAN exactly one DNS name, both are equal (in any case), and the name
/// constraint of the presented issuer permits it.
///
/// It doesn't check the way to the root nor the dates: that is the verifier's.
///
/// # Errors
/// [`PkiError::Certificate`] names the rule that is broken.
pub fn peer_uid(chain: &[CertificateDer<'_>]) -> Result<Uid, PkiError> {
    let Some((leaf, issuers)) = chain.split_first() else {
        return Err(PkiError::certificate("the peer", "is missing: it must present leaf and intermediate"));
    };
    let leaf = x509::parse(leaf, "the peer")?;
    let shown = x509::display_name(&leaf);
    let refuse = |reason: String| Err(PkiError::certificate(shown.clone(), reason));

    let Some(uid) = x509::subject_uid(&leaf) else {
        return refuse("must have exactly one UID in its subject: get one issued by the hub".to_owned());
    };
    let uid = match Uid::parse(uid) {
        Ok(uid) => uid,
        Err(error) => return refuse(format!("has an unusable UID: {error}")),
    };
    let names = x509::dns_names(&leaf);
    let [name] = names.as_slice() else {
        return refuse(format!(
            "must have exactly one DNS name as its subject alternative name, it has {}: get one issued by the hub",
            names.len()
        ));
    };
    if !name.eq_ignore_ascii_case(&uid) {
        return refuse(format!("has the DNS name {name:?}, which is not its UID: get one issued by the hub"));
    }
    let mut permitted = false;
    for issuer in issuers {
        let issuer = x509::parse(issuer, "the peer's issuer")?;
        permitted |= x509::signed_by(&leaf, &issuer) && x509::permits(&issuer, name);
    }
    if !permitted {
        return refuse(
            "comes without the intermediate that issued it, or lies outside that one's name constraint: \
             present leaf and intermediate as the hub issued them"
                .to_owned(),
        );
    }
    Ok(uid)
}
