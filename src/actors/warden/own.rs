//! The hub's own certificates, what TLS is served with, and the operator's bundle.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{sync::watch, task::spawn_blocking};
use tokio_rustls::TlsAcceptor;

use super::Office;
use crate::{
    pki::{
        self, Authority, Bundle, Fingerprint, PkiError, Revoked, authority,
        tls::{PeerCheck, REVOKED, server_config_with},
        unix_seconds,
    },
    wire::HubAddress,
};

/// What the hub's own certificates are for.
#[derive(Debug, Clone)]
pub struct OwnConfig {
    /// The file of the operator's bundle, if there is one.
    pub bundle: Option<PathBuf>,
    /// Where hubs listen, for that bundle.
    pub hubs: Vec<HubAddress>,
}

/// The hub's own certificates as they stand.
#[derive(Debug, Clone)]
pub struct Established {
    authority: Arc<Authority>,
    /// The operator's.
    pub(super) bundle: Bundle,
    /// From when and until when the hub's leaf holds.
    leaf_holds: (i64, i64),
    /// From when on everything holds.
    holds_from: i64,
    /// When they or the operator's bundle are due for renewal.
    pub(super) due: SystemTime,
}

impl Established {
    /// The authority that they make up.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) fn shared_authority(&self) -> Arc<Authority> {
        self.authority.clone()
    }

    /// Seconds until the leaf ends to hold; 0 if it doesn't hold yet.
    pub(super) fn left(&self, now: SystemTime) -> i64 {
        let (now, (from, end)) = (unix_seconds(now), self.leaf_holds);
        if from > now { 0 } else { end.saturating_sub(now) }
    }

    /// Whether something is to be renewed: it is due, or doesn't hold yet since the clock was set back.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        self.due <= now || self.holds_from > unix_seconds(now)
    }

    /// Whether one of the certificates is another than before.
    fn differs(&self, other: &Self) -> bool {
        !self.authority.certificates().eq(other.authority.certificates())
    }
}

/// Opens the hub's certificates at its start; makes those that are missing or due, and the operator's bundle.
pub(super) async fn establish(
    office: &Office,
    own: &OwnConfig,
    revoked: &watch::Receiver<Revoked>,
) -> Result<Established, PkiError> {
    let now = SystemTime::now();
    let authority =
        authority::establish(&office.store, &office.vault, &office.names, office.lifetimes, now).await?;
    complete(office, own, authority, None, revoked).await
}

/// Renews what is due; with what new links are let in by, if that changes.
pub(super) async fn renew(
    office: &Office,
    own: &OwnConfig,
    standing: &Established,
    revoked: &watch::Receiver<Revoked>,
) -> Result<(Established, Option<TlsAcceptor>), PkiError> {
    let now = SystemTime::now();
    let Office { store, vault, names, lifetimes, .. } = office;
    let authority = authority::renew(store, vault, names, *lifetimes, now, &standing.authority).await?;
    let bundle = Some(standing.bundle.clone());
    let established = complete(office, own, authority, bundle, revoked).await?;
    let changes = established.differs(standing);
    let tls = changes.then(|| acceptor(office, &established, revoked.clone())).transpose()?;
    Ok((established, tls))
}

pub(super) async fn complete(
    office: &Office,
    own: &OwnConfig,
    authority: Authority,
    standing: Option<Bundle>,
    revoked: &watch::Receiver<Revoked>,
) -> Result<Established, PkiError> {
    let authority = Arc::new(authority);
    let bundle = {
        let (own, authority, revoked) = (own.clone(), authority.clone(), revoked.borrow().clone());
        let name = office.names.spoke_name.clone();
        let ensuring = spawn_blocking(move || {
            let now = SystemTime::now();
            let OwnConfig { bundle, hubs } = &own;
            match bundle {
                Some(path) => pki::ensure_operator_bundle(path, &authority, &name, hubs, &revoked, now),
                None => pki::operator_bundle(standing.as_ref(), &authority, &name, hubs, &revoked, now),
            }
        });
        ensuring.await.map_err(|error| PkiError::Rows(Box::new(error)))??
    };
    office.record(&bundle).await?;
    let due = authority.renew_at().min(bundle.renew_at()?);
    let leaf_holds = authority.hub_leaf_holds()?;
    let holds_from = authority.holds_from()?.max(bundle.holds_from()?);
    // What lives a second is due while it is made.
    let due = due.max(SystemTime::now() + LEAST);
    Ok(Established { authority, bundle, leaf_holds, holds_from, due })
}

/// The shortest time between two renewals.
const LEAST: Duration = Duration::from_millis(500);

/// What new links are let in by: with these certificates, and nobody whose own are revoked.
pub(super) fn acceptor(
    office: &Office,
    established: &Established,
    revoked: watch::Receiver<Revoked>,
) -> Result<TlsAcceptor, PkiError> {
    let check: PeerCheck = Arc::new(move |uid, chain| {
        if !revoked.borrow().any_of(&Fingerprint::of_chain(chain)) {
            return Ok(());
        }
        Err(PkiError::Revoked { certificate: uid.to_string(), remedy: REVOKED.to_owned() })
    });
    let names = &office.names;
    let config = server_config_with(&established.authority, &names.hub_id, &names.hub_name, Some(check))?;
    Ok(TlsAcceptor::from(config))
}
