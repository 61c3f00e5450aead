//! Leaves for spokes, issued on their public keys under what stands in the certificate table.

use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use tokio::task;

use super::{
    CertificateRow, CertificateRows, Lifetimes, ROOT_ID, check_id,
    establish::{Keeper, rows_failed, single, span, task_failed, unfit},
    issue::{Pair, Role, certify_public},
    to_pem,
};
use crate::pki::{PkiError, Vault, check_name, key::read_public_key, unix_seconds, x509};

/// The intermediate of one configured name, opened, and the root above it: as they stand in the table now.
pub struct Signer {
    root: CertificateDer<'static>,
    issuer: Pair,
    name: String,
}

/// A leaf, and what its bearer needs beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// PEM: the leaf alone.
    pub leaf: String,
    /// PEM: the leaf, then its intermediate.
    pub cert: String,
    /// PEM: the root.
    pub root: String,
    /// When it ends to hold, in seconds since 1970 (UTC).
    pub not_after: i64,
}

impl Signer {
    /// Opens the intermediate of `name`. One whose time is over, or nearly, is made anew; what is missing isn't: who
    /// renews a leaf trusts the authority that was.
    ///
    /// # Errors
    /// [`PkiError::AuthorityGone`] if the root or the intermediate is missing or revoked, the root has expired, or the
    /// intermediate isn't signed by it; [`PkiError::Name`] if the name can't stand above leaves; [`PkiError::Rows`],
    /// [`PkiError::Vault`].
    pub async fn open(
        rows: &impl CertificateRows,
        vault: &Vault,
        name: &str,
        lifetimes: Lifetimes,
        now: SystemTime,
    ) -> Result<Self, PkiError> {
        check_name(name)?;
        let root = single(&standing(rows, ROOT_ID, now).await?)?;
        let row = current(rows, name).await?;
        if unfit(&single(&row)?, Role::Intermediate, now)?.is_some() {
            return Self::open_or_make(rows, vault, name, lifetimes, now).await;
        }
        let issuer = Keeper::new(rows, vault, now).open(row).await?;
        let (above, below) = (x509::parse(&root, ROOT_ID)?, x509::parse(&issuer.cert, name)?);
        if !x509::signed_by(&below, &above) {
            let reason = "isn't signed by the root that stands now: restart the hub, which makes a new one";
            return Err(gone(name, reason.to_owned()));
        }
        Ok(Self { root, issuer, name: name.to_owned() })
    }

    /// The same; an intermediate that is missing or due is made, the root isn't.
    ///
    /// # Errors
    /// As [`Signer::open`]; [`PkiError::Name`] if the name can't stand in a certificate.
    pub async fn open_or_make(
        rows: &impl CertificateRows,
        vault: &Vault,
        name: &str,
        lifetimes: Lifetimes,
        now: SystemTime,
    ) -> Result<Self, PkiError> {
        check_name(name)?;
        let root = standing(rows, ROOT_ID, now).await?;
        let keeper = Keeper::new(rows, vault, now);
        let root = keeper.open(root).await?;
        let issuer = keeper.keep(Role::Intermediate, name, lifetimes.intermediate, Some(&root)).await?;
        Ok(Self { root: root.cert, issuer, name: name.to_owned() })
    }

    /// Issues a leaf on a public key (SubjectPublicKeyInfo, DER in base64). It ends with its issuer, if that is
    /// sooner. Signs on a blocking task of the tokio runtime that this must run in.
    ///
    /// # Errors
    /// [`PkiError::Issue`] if the id isn't under the name; [`PkiError::PublicKey`] or [`PkiError::PublicKeyKind`]
    /// if the key can't be served.
    pub async fn certify(
        &self,
        uid: &str,
        public_key: &str,
        life: Duration,
        now: SystemTime,
    ) -> Result<Leaf, PkiError> {
        check_id(uid, &self.name)?;
        let key = read_public_key(public_key)?;
        let span = span(life, now, Some(&self.issuer))?;
        let (uid, issuer) = (uid.to_owned(), self.issuer.clone());
        let signing = task::spawn_blocking(move || certify_public(&uid, &key, &issuer, span));
        let leaf = to_pem("CERTIFICATE", &signing.await.map_err(task_failed)??);
        let cert = leaf.clone() + &to_pem("CERTIFICATE", &self.issuer.cert);
        Ok(Leaf { leaf, cert, root: to_pem("CERTIFICATE", &self.root), not_after: span.1 })
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The current row of an issuer, if its certificate holds.
pub(super) async fn standing(
    rows: &impl CertificateRows,
    id: &str,
    now: SystemTime,
) -> Result<CertificateRow, PkiError> {
    let row = current(rows, id).await?;
    let der = single(&row)?;
    match x509::check_dates(&x509::parse(&der, id)?, now, "") {
        Ok(()) => Ok(row),
        Err(PkiError::Expired { ended, .. }) => {
            Err(gone(id, format!("expired at {ended}: restart the hub, which makes a new one")))
        }
        Err(error) => Err(early_root(id, &der, now)?.unwrap_or(error)),
    }
}

/// Why a root that doesn't hold yet can't be used. It isn't made anew: every spoke trusts it, and it's rather the clock
/// that is wrong.
pub(super) fn early_root(
    id: &str,
    root: &CertificateDer<'_>,
    now: SystemTime,
) -> Result<Option<PkiError>, PkiError> {
    let start = x509::lifetime(&x509::parse(root, id)?).0;
    let reason = |(from, now): (String, String)| {
        format!(
            "holds only from {from} on, and the clock of this machine says {now}: set the clock right. If it is \
             right, and the root was made while it was ahead, stop all hubs, set `revoked` of its row in the table \
             `certificate`, start them and issue new bundles"
        )
    };
    Ok((start > unix_seconds(now)).then(|| gone(id, reason(x509::display_start(start, now)))))
}

async fn current(rows: &impl CertificateRows, id: &str) -> Result<CertificateRow, PkiError> {
    let row = rows.current(id).await.map_err(rows_failed)?;
    row.ok_or_else(|| {
        let reason = "is gone from the certificate table or was revoked: restore its row from a backup. A restart of \
                      the hub, or issuing a bundle, makes a new one; under a new root every spoke needs a new bundle";
        gone(id, reason.to_owned())
    })
}

fn gone(id: &str, reason: String) -> PkiError {
    PkiError::AuthorityGone { certificate: id.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{Bundle, FreshKey, authority::establish, testing::*};

    const NAME: &str = "EVENTFLOW-SPOKE";

    async fn established() -> (MemoryRows, Bundle) {
        let (rows, now) = (MemoryRows::default(), SystemTime::now());
        let authority = establish(&rows, &vault(), &names(), Lifetimes::default(), now).await.unwrap();
        let bundle = bundle(&authority);
        (rows, bundle)
    }

    #[tokio::test]
    async fn a_leaf_on_a_public_key_renews_a_bundle() {
        let (rows, bundle) = established().await;
        let now = SystemTime::now();
        let signer = Signer::open(&rows, &vault(), NAME, Lifetimes::default(), now).await.unwrap();
        let key = FreshKey::generate().unwrap();
        let leaf = signer.certify(SPOKE_ID, key.public_key(), 30 * DAY, now).await.unwrap();
        let renewed = bundle.renewed(&key, leaf.cert.clone(), leaf.root.clone()).unwrap();
        assert_eq!(renewed.leaf().unwrap(), (leaf.leaf.clone(), leaf.not_after));
        assert_eq!(renewed.root, bundle.root);
        assert!(renewed.renew_at().unwrap() < bundle.renew_at().unwrap(), "30 days are fewer than 90");
        // The key is another's, or the id is.
        let other = FreshKey::generate().unwrap();
        let error = bundle.renewed(&other, leaf.cert, leaf.root).unwrap_err();
        assert!(error.to_string().contains("doesn't belong to the private key"), "{error}");
        let leaf =
            signer.certify("QUIET-LYNX-MX000003.EVENTFLOW-SPOKE", key.public_key(), DAY, now).await.unwrap();
        let error = bundle.renewed(&key, leaf.cert, leaf.root).unwrap_err();
        assert!(error.to_string().contains("came as the renewal of that of"), "{error}");
    }

    #[tokio::test]
    async fn the_rules_hold_for_public_keys_too() {
        let (rows, _) = established().await;
        let now = SystemTime::now();
        let signer = Signer::open(&rows, &vault(), NAME, Lifetimes::default(), now).await.unwrap();
        let key = FreshKey::generate().unwrap();
        let error = signer.certify(HUB_ID, key.public_key(), DAY, now).await.unwrap_err();
        assert!(error.to_string().contains("ends with .EVENTFLOW-SPOKE"), "{error}");
        let error = signer.certify(SPOKE_ID, "rubbish", DAY, now).await.unwrap_err();
        assert_eq!(error.code(), "E_EVENTFLOW_INVALID_PUBLIC_KEY");
        let leaf = signer.certify(SPOKE_ID, key.public_key(), 100_000 * DAY, now).await.unwrap();
        let intermediate = rows.current(NAME).await.unwrap().unwrap();
        assert_eq!(leaf.not_after, intermediate.validity, "none outlives its issuer");
    }

    #[tokio::test]
    async fn nothing_is_issued_under_the_root_or_a_leaf() {
        let (rows, _) = established().await;
        let (lives, now) = (Lifetimes::default(), SystemTime::now());
        let leaf = rows.current(HUB_ID).await.unwrap();
        for name in [ROOT_ID, "a.eventflow-root-ca", HUB_ID] {
            let made = Signer::open_or_make(&rows, &vault(), name, lives, now).await;
            assert_eq!(made.unwrap_err().code(), "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME", "{name}");
        }
        assert_eq!(rows.current(HUB_ID).await.unwrap(), leaf);
        let error = Signer::open(&rows, &vault(), ROOT_ID, lives, now).await.unwrap_err();
        assert_eq!(error.code(), "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME");
    }

    #[tokio::test]
    async fn nothing_is_issued_under_an_authority_that_is_gone() {
        let key = FreshKey::generate().unwrap();
        for gone in [ROOT_ID, NAME] {
            let (rows, _) = established().await;
            rows.0.lock().unwrap().retain(|row| row.id != gone);
            let error = Signer::open(&rows, &vault(), NAME, Lifetimes::default(), SystemTime::now())
                .await
                .unwrap_err();
            assert_eq!(error.code(), "E_EVENTFLOW_AUTHORITY_GONE");
            assert!(error.to_string().contains(gone) && error.to_string().contains("backup"), "{error}");
        }
        let (rows, _) = established().await;
        let late = SystemTime::now() + 3_700 * DAY;
        let error = Signer::open(&rows, &vault(), NAME, Lifetimes::default(), late).await.unwrap_err();
        assert_eq!(error.code(), "E_EVENTFLOW_AUTHORITY_GONE");
        assert!(error.to_string().contains("expired at"), "{error}");
        // An intermediate that is due has a successor at once.
        let late = SystemTime::now() + 400 * DAY;
        let signer = Signer::open(&rows, &vault(), NAME, Lifetimes::default(), late).await.unwrap();
        signer.certify(SPOKE_ID, key.public_key(), DAY, late).await.unwrap();
        // It can be made, if the root stands; so can one of another name.
        for name in [NAME, "BILLING"] {
            let signer =
                Signer::open_or_make(&rows, &vault(), name, Lifetimes::default(), late).await.unwrap();
            signer.certify(&format!("A.{name}"), key.public_key(), DAY, late).await.unwrap();
        }
        rows.0.lock().unwrap().retain(|row| row.id != ROOT_ID);
        let made = Signer::open_or_make(&rows, &vault(), "OTHER", Lifetimes::default(), late).await;
        assert_eq!(made.unwrap_err().code(), "E_EVENTFLOW_AUTHORITY_GONE");
    }
}
