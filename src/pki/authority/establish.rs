//! The walk from the root to the leaf: what stands is kept, what's missing or due is made.

use std::{
    collections::HashSet,
    sync::Mutex,
    time::{Duration, SystemTime},
};

use rustls::pki_types::CertificateDer;
use tokio::task;
use tracing::{info, warn};

use super::{
    Authority, CertificateRow, CertificateRows, DAY, Lifetimes, Names, ROOT_ID,
    issue::{Pair, Role, issue},
    signer::early_root,
    to_pem,
};
use crate::pki::{BACKDATE, Identity, PkiError, Vault, from_unix_seconds, unix_seconds, x509};

/// How often a row is read again after somebody else inserted or retired it.
const ATTEMPTS: usize = 5;
/// A certificate that lives a day or more is made anew this long before its end, as npm Eventflow does.
const MARGIN: Duration = Duration::from_secs(600);

/// Opens the hub's certificates, and makes those that are missing, due or orphaned by a new issuer.
///
/// The hub's leaf is due when two thirds of its life are over; root and intermediates, which others share,
/// only ten minutes before their end, or at two thirds if they live less than a day. What a clock that was ahead
/// made, and doesn't hold yet, is made anew, but not the root. Keys are opened and derived on blocking tasks of
/// the tokio runtime that this must run in.
///
/// # Errors
/// [`PkiError::Name`] for names that no certificate can bear, [`PkiError::AuthorityGone`] if the root doesn't hold yet,
/// [`PkiError::Rows`] if the database fails, [`PkiError::Vault`] if a key can't be opened, [`PkiError::Contended`] if others keep changing the rows.
pub async fn establish(
    rows: &impl CertificateRows,
    vault: &Vault,
    names: &Names,
    lifetimes: Lifetimes,
    now: SystemTime,
) -> Result<Authority, PkiError> {
    names.check()?;
    let mut ids = vec![ROOT_ID, names.hub_name.as_str(), names.hub_id.as_str()];
    let one_name = names.hub_name.eq_ignore_ascii_case(&names.spoke_name);
    if !one_name {
        ids.push(&names.spoke_name);
    }
    derive_in_parallel(rows, vault, &ids).await?;

    let keeper = Keeper::new(rows, vault, now);
    let root = keeper.keep(Role::Root, ROOT_ID, lifetimes.root, None).await?;
    let hubs = keeper.keep(Role::Intermediate, &names.hub_name, lifetimes.intermediate, Some(&root)).await?;
    let leaf = keeper.keep(Role::Leaf, &names.hub_id, lifetimes.hub_leaf, Some(&hubs)).await?;
    let hub_chain = vec![leaf.cert.clone(), hubs.cert.clone()];
    let due_of_hubs = due(&hubs.cert, Role::Intermediate)?;
    let spokes = if one_name {
        hubs
    } else {
        keeper.keep(Role::Intermediate, &names.spoke_name, lifetimes.intermediate, Some(&root)).await?
    };
    let renew_at = due(&root.cert, Role::Root)?
        .min(due_of_hubs)
        .min(due(&spokes.cert, Role::Intermediate)?)
        .min(due(&leaf.cert, Role::Leaf)?);
    Ok(Authority {
        root: root.cert,
        hub: Identity::new(hub_chain, leaf.key)?,
        spokes,
        spoke_name: names.spoke_name.clone(),
        spoke_leaf: lifetimes.spoke_leaf,
        renew_at,
        early: keeper.early.into_inner().unwrap_or_default(),
    })
}

/// As [`establish`], for a hub that runs with `standing`. A root that vanished from the table before its time is
/// not made anew: every spoke trusts the one that was.
///
/// # Errors
/// As [`establish`]; [`PkiError::AuthorityGone`] if the root vanished.
pub async fn renew(
    rows: &impl CertificateRows,
    vault: &Vault,
    names: &Names,
    lifetimes: Lifetimes,
    now: SystemTime,
    standing: &Authority,
) -> Result<Authority, PkiError> {
    if due(&standing.root, Role::Root)? > now {
        super::signer::standing(rows, ROOT_ID, now).await?;
    }
    establish(rows, vault, names, lifetimes, now).await
}

/// With npm's rows each salt costs a second: all of them at once, before the rows are opened one by one.
async fn derive_in_parallel(
    rows: &impl CertificateRows,
    vault: &Vault,
    ids: &[&str],
) -> Result<(), PkiError> {
    let mut salts = HashSet::new();
    for id in ids {
        if let Some(row) = rows.current(id).await.map_err(rows_failed)? {
            salts.extend([row.key_salt, row.pass_salt]);
        }
    }
    let mut tasks = task::JoinSet::new();
    for salt in salts {
        let vault = vault.clone();
        tasks.spawn_blocking(move || vault.prepare(&salt));
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(task_failed)?;
    }
    Ok(())
}

/// Keeps one row after the other.
pub(super) struct Keeper<'a, R> {
    pub(super) rows: &'a R,
    pub(super) vault: &'a Vault,
    pub(super) now: SystemTime,
    /// What was made anew since it didn't hold yet, in words.
    early: Mutex<Vec<String>>,
}

impl<'a, R> Keeper<'a, R> {
    pub(super) fn new(rows: &'a R, vault: &'a Vault, now: SystemTime) -> Self {
        Self { rows, vault, now, early: Mutex::default() }
    }
}

impl<R: CertificateRows> Keeper<'_, R> {
    pub(super) async fn keep(
        &self,
        role: Role,
        id: &str,
        life: Duration,
        issuer: Option<&Pair>,
    ) -> Result<Pair, PkiError> {
        for _ in 0..ATTEMPTS {
            if let Some(row) = self.rows.current(id).await.map_err(rows_failed)? {
                match self.unfit(role, &row, issuer)? {
                    None => return self.open(row).await,
                    Some(reason) => {
                        self.tell(id, &reason);
                        self.rows.retire(&row).await.map_err(rows_failed)?;
                    }
                }
            }
            let span = span(life, self.now, issuer)?;
            let made = issue_aside(role, id, issuer, span).await?;
            let row = self.seal(id, &made, span.1).await?;
            if self.rows.insert(row).await.map_err(rows_failed)? {
                return Ok(made);
            }
            // Somebody else was first: theirs counts, ours is thrown away.
        }
        Err(PkiError::Contended { certificate: id.to_owned() })
    }

    /// Says why a certificate is made anew. A clock that was set back is for a person to know.
    fn tell(&self, certificate: &str, reason: &Unfit) {
        if let Unfit::Early { from } = *reason {
            let (from, now) = x509::display_start(from, self.now);
            warn!(
                certificate,
                from, now, "the certificate doesn't hold yet: the clock was set back; it is made anew"
            );
            if let Ok(mut early) = self.early.lock() {
                early.push(format!("{certificate} held only from {from} on, at {now}"));
            }
        } else {
            info!(certificate, %reason, "the certificate is made anew");
        }
    }

    /// Why a row can't be used, if so.
    fn unfit(
        &self,
        role: Role,
        row: &CertificateRow,
        issuer: Option<&Pair>,
    ) -> Result<Option<Unfit>, PkiError> {
        let der = single(row)?;
        let certificate = x509::parse(&der, &row.id)?;
        if role == Role::Intermediate && !certificate.is_ca() {
            let reason = "is the id of a leaf that stands, and can't stand above others: choose another";
            return Err(PkiError::Name { name: row.id.clone(), reason });
        }
        if role == Role::Root
            && let Some(error) = early_root(&row.id, &der, self.now)?
        {
            return Err(error);
        }
        let by_dates = unfit(&der, role, self.now)?;
        let (None, Some(issuer)) = (by_dates, issuer) else { return Ok(by_dates) };
        if !x509::knows_signature(&certificate) {
            // Others may live on it: it isn't this hub's to replace.
            let kind = certificate.signature_algorithm.algorithm.to_id_string();
            let reason = format!(
                "is signed in a way that isn't known here ({kind}), and stays as it is: let who made it sign with \
                 SHA-256, SHA-384 or SHA-512 (npm's EVENTFLOW_CERT_HASH), or set `revoked` of its row, and a new one \
                 is made"
            );
            return Err(PkiError::certificate(row.id.as_str(), reason));
        }
        let issuer = x509::parse(&issuer.cert, "the issuer")?;
        Ok((!x509::signed_by(&certificate, &issuer)).then_some(Unfit::Orphaned))
    }

    pub(super) async fn open(&self, row: CertificateRow) -> Result<Pair, PkiError> {
        let cert = single(&row)?;
        let vault = self.vault.clone();
        let key = task::spawn_blocking(move || vault.open(&row)).await.map_err(task_failed)??;
        Ok(Pair { cert, key })
    }

    async fn seal(&self, id: &str, pair: &Pair, validity: i64) -> Result<CertificateRow, PkiError> {
        let (vault, id) = (self.vault.clone(), id.to_owned());
        let (pem, key) = (to_pem("CERTIFICATE", &pair.cert), pair.key.clone_key());
        task::spawn_blocking(move || vault.seal(&id, pem, &key, validity)).await.map_err(task_failed)?
    }
}

/// Signs on a blocking task: some kinds of keys take their time.
async fn issue_aside(
    role: Role,
    id: &str,
    issuer: Option<&Pair>,
    span: (i64, i64),
) -> Result<Pair, PkiError> {
    let (id, issuer) = (id.to_owned(), issuer.cloned());
    task::spawn_blocking(move || issue(role, &id, issuer.as_ref(), span)).await.map_err(task_failed)?
}

/// Start and end of a new certificate, in seconds since 1970 (UTC).
pub(super) fn span(life: Duration, now: SystemTime, issuer: Option<&Pair>) -> Result<(i64, i64), PkiError> {
    let life = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
    let mut end = unix_seconds(now).saturating_add(life);
    if let Some(issuer) = issuer {
        end = end.min(x509::lifetime(&x509::parse(&issuer.cert, "the issuer")?).1);
    }
    Ok((unix_seconds(now - BACKDATE), end))
}

/// Why a certificate can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    #[error("its time is over, or nearly")]
    Over,
    /// It was made by a clock that was ahead. The time is in seconds since 1970 (UTC).
    #[error("it doesn't hold yet")]
    Early { from: i64 },
    #[error("its issuer is another one now")]
    Orphaned,
}

/// Why a certificate can't be used by its dates, if so.
pub(super) fn unfit(
    der: &CertificateDer<'_>,
    role: Role,
    now: SystemTime,
) -> Result<Option<Unfit>, PkiError> {
    let from = x509::lifetime(&x509::parse(der, "this hub")?).0;
    Ok(if from > unix_seconds(now) {
        Some(Unfit::Early { from })
    } else {
        (due(der, role)? <= now).then_some(Unfit::Over)
    })
}

/// When a certificate is to be made anew.
pub(super) fn due(der: &CertificateDer<'_>, role: Role) -> Result<SystemTime, PkiError> {
    let certificate = x509::parse(der, "this hub")?;
    let (start, end) = x509::lifetime(&certificate);
    let life = end - start - seconds(BACKDATE);
    let two_thirds = role == Role::Leaf || life < seconds(DAY);
    Ok(if two_thirds { x509::two_thirds(&certificate) } else { from_unix_seconds(end - seconds(MARGIN)) })
}

/// For the constants above, which are small.
fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// A row's certificate; rows hold one each.
pub(super) fn single(row: &CertificateRow) -> Result<CertificateDer<'static>, PkiError> {
    let mut chain = x509::pem_chain(&row.cert, &row.id)?;
    Ok(chain.swap_remove(0))
}

pub(super) fn rows_failed(error: impl std::error::Error + Send + Sync + 'static) -> PkiError {
    PkiError::Rows(Box::new(error))
}

/// A blocking task ends early only when the runtime stops.
pub(super) fn task_failed(error: task::JoinError) -> PkiError {
    PkiError::Rows(Box::new(error))
}
