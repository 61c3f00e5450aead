//! Root, intermediates and leaves: uses what stands in the database, makes what's missing or due.

mod der;
mod issue;
mod rows;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    fmt::{self, Write},
    time::{Duration, SystemTime},
};

use rustls::pki_types::CertificateDer;
#[cfg(test)]
use rustls::pki_types::PrivateKeyDer;
use sha2::{Digest, Sha256};
use tokio::task;
use tracing::info;

use issue::{Pair, Role, issue};
pub use rows::{CertificateRow, CertificateRows};

use super::{
    BACKDATE, Bundle, DEFAULT_HUB_NAME, DEFAULT_SPOKE_NAME, Identity, PkiError, Secret, Vault, check_name,
    from_unix_seconds, new_id, unix_seconds, x509,
};
use crate::wire::HubAddress;

/// The UID of the root.
pub const ROOT_ID: &str = "EVENTFLOW-ROOT-CA";

/// How often a row is read again after somebody else inserted or retired it.
const ATTEMPTS: usize = 5;
/// A certificate that lives a day or more is made anew this long before its end, as npm Eventflow does.
const MARGIN: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(86_400);

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
        Ok(Bundle { cert, key, root: self.root_pem(), hub_name, hubs })
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

/// Opens the hub's certificates, and makes those that are missing, due or orphaned by a new issuer.
///
/// The hub's leaf is due when two thirds of its life are over; root and intermediates, which others share,
/// only ten minutes before their end, or at two thirds if they live less than a day. Keys are opened and
/// derived on blocking tasks of the tokio runtime that this must run in.
///
/// # Errors
/// [`PkiError::Name`] for names that no certificate can bear, [`PkiError::Rows`] if the database fails,
/// [`PkiError::Vault`] if a key can't be opened, [`PkiError::Contended`] if others keep changing the rows.
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

    let keeper = Keeper { rows, vault, now };
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
        renew_at: from_unix_seconds(renew_at),
    })
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
struct Keeper<'a, R> {
    rows: &'a R,
    vault: &'a Vault,
    now: SystemTime,
}

impl<R: CertificateRows> Keeper<'_, R> {
    async fn keep(
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
                        info!(certificate = id, reason, "the certificate is made anew");
                        self.rows.retire(&row).await.map_err(rows_failed)?;
                    }
                }
            }
            let span = span(life, self.now, issuer)?;
            let made = issue(role, id, issuer, span)?;
            let row = self.seal(id, &made, span.1).await?;
            if self.rows.insert(row).await.map_err(rows_failed)? {
                return Ok(made);
            }
            // Somebody else was first: theirs counts, ours is thrown away.
        }
        Err(PkiError::Contended { certificate: id.to_owned() })
    }

    /// Why a row can't be used any longer, if so.
    fn unfit(
        &self,
        role: Role,
        row: &CertificateRow,
        issuer: Option<&Pair>,
    ) -> Result<Option<&'static str>, PkiError> {
        let der = single(row)?;
        let certificate = x509::parse(&der, &row.id)?;
        if due(&der, role)? <= unix_seconds(self.now) {
            return Ok(Some("its time is over, or nearly"));
        }
        let Some(issuer) = issuer else { return Ok(None) };
        let issuer = x509::parse(&issuer.cert, "the issuer")?;
        Ok((!x509::signed_by(&certificate, &issuer)).then_some("its issuer is another one now"))
    }

    async fn open(&self, row: CertificateRow) -> Result<Pair, PkiError> {
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

/// Start and end of a new certificate, in seconds since 1970 (UTC).
fn span(life: Duration, now: SystemTime, issuer: Option<&Pair>) -> Result<(i64, i64), PkiError> {
    let life = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
    let mut end = unix_seconds(now).saturating_add(life);
    if let Some(issuer) = issuer {
        end = end.min(x509::lifetime(&x509::parse(&issuer.cert, "the issuer")?).1);
    }
    Ok((unix_seconds(now - BACKDATE), end))
}

/// When a certificate is to be made anew, in seconds since 1970 (UTC). Its life counts from its issue: the
/// back-dating doesn't.
fn due(der: &CertificateDer<'_>, role: Role) -> Result<i64, PkiError> {
    let (start, end) = x509::lifetime(&x509::parse(der, "this hub")?);
    let issued = start.saturating_add(seconds(BACKDATE)).min(end);
    let life = end - issued;
    Ok(if role == Role::Leaf || life < seconds(DAY) { issued + life / 3 * 2 } else { end - seconds(MARGIN) })
}

/// For the constants above, which are small.
fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// A row's certificate; rows hold one each.
fn single(row: &CertificateRow) -> Result<CertificateDer<'static>, PkiError> {
    let mut chain = x509::pem_chain(&row.cert, &row.id)?;
    Ok(chain.swap_remove(0))
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
    use pkcs8::der::pem::{LineEnding, encode_string};
    // Labels are ours and lengths small, the only things that it could refuse.
    encode_string(label, LineEnding::LF, der).unwrap_or_default()
}

fn rows_failed(error: impl std::error::Error + Send + Sync + 'static) -> PkiError {
    PkiError::Rows(Box::new(error))
}

/// A blocking task ends early only when the runtime stops.
fn task_failed(error: task::JoinError) -> PkiError {
    PkiError::Rows(Box::new(error))
}

/// When a leaf is to be made anew.
pub(super) fn leaf_due(der: &CertificateDer<'_>) -> Result<SystemTime, PkiError> {
    due(der, Role::Leaf).map(from_unix_seconds)
}
