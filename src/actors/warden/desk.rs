//! Issues, renews and revokes leaves of spokes.

use std::time::{Duration, SystemTime};

use serde_json::json;

use super::{Handout, Issue};
use crate::{
    event::{Fault, Uid, code},
    pki::{
        Bundle, CertificateFacts, CertificateKind, CertificateRow, Fingerprint, FreshKey, Lifetimes, Names,
        PkiError, Revoked, Vault,
        authority::{Leaf, Signer},
        new_id, revocation_time,
        tls::REVOKED,
        unix_seconds,
    },
    store::{LogLine, Store, StoreError},
    wire::{HubAddress, Renewed},
};

/// A leaf holds so long at least, and at most.
const LIVES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(36_500 * 86_400));

/// What leaves are issued with.
#[derive(Debug)]
pub struct Office {
    /// Keeps the certificates.
    pub store: Store,
    /// Opens their keys.
    pub vault: Vault,
    /// Whose they are.
    pub names: Names,
    /// How long new ones hold.
    pub lifetimes: Lifetimes,
    /// Where hubs listen, for bundles.
    pub hubs: Vec<HubAddress>,
}

impl Office {
    /// A new leaf for a link's own UID. The one before stays good until its end.
    pub(super) async fn renew(&self, uid: &Uid, shown: &[Fingerprint], key: &str) -> Result<Renewed, Fault> {
        let now = SystemTime::now();
        let name = self.spoke_name(uid)?;
        let signer = Signer::open(&self.store, &self.vault, &name, self.lifetimes, now).await?;
        let leaf = signer.certify(uid, key, self.lifetimes.spoke_leaf, now).await?;
        let judge = |standing: &[CertificateRow]| {
            let mut revoked = Revoked::default();
            standing.iter().for_each(|row| _ = revoked.add(row));
            match revoked.any_of(shown) {
                true => Err(revoked_fault(uid)),
                false => Ok(()),
            }
        };
        self.place(uid, &leaf, "certificate renewed", judge).await?;
        Ok(Renewed { cert: leaf.cert, root: leaf.root, not_after: leaf.not_after.saturating_mul(1_000) })
    }

    /// A bundle with a key that nobody keeps.
    pub(super) async fn issue(&self, wish: Issue) -> Result<Handout, Fault> {
        let name = self.issued_name(wish.name.as_deref())?;
        let id = match wish.id {
            Some(id) => id,
            None => new_id(&name),
        };
        let id = Uid::parse(id).map_err(|error| unusable(error.to_string()))?;
        let life = wish.life.unwrap_or(self.lifetimes.spoke_leaf);
        if life < LIVES.0 || life > LIVES.1 {
            return Err(unusable(
                "a certificate lives between a second and 100 years: choose another lifetime",
            ));
        }
        let now = SystemTime::now();
        let signer = Signer::open_or_make(&self.store, &self.vault, &name, self.lifetimes, now).await?;
        let key = FreshKey::generate()?;
        let leaf = signer.certify(&id, key.public_key(), life, now).await.map_err(|error| match error {
            PkiError::Issue { .. } => unusable(error.to_string()),
            error => error.into(),
        })?;
        let judge = |standing: &[CertificateRow]| match standing
            .iter()
            .any(|row| row.version == 0 && row.revoked.is_none())
        {
            true => Err(Fault::refused(
                code::CERTIFICATE_EXISTS,
                format!(
                    "the certificate of {id} stands already: its bearer renews it by itself. To give out another \
                     one revoke it first, or leave the id out and a new one is made"
                ),
            )),
            false => Ok(()),
        };
        self.place(&id, &leaf, "certificate issued", judge).await?;
        let mut bundle = Bundle::new(leaf.cert, key.private_key().clone(), leaf.root);
        bundle.hubs.clone_from(&self.hubs);
        bundle.hub_name = Some(self.names.hub_name.clone());
        Ok(Handout { id: id.to_string(), not_after: leaf.not_after, bundle })
    }

    /// Revokes what an id has. Only leaves of spokes: under the others stands more than their bearer.
    pub(super) async fn revoke(&self, id: &str) -> Result<Vec<CertificateRow>, Fault> {
        let now = unix_seconds(SystemTime::now());
        let unknown = || {
            let text = format!(
                "no certificate of {id:?} holds: GET /certificates (`eventflow cert list`) shows which there are"
            );
            Fault::refused(code::CERTIFICATE_NOT_FOUND, text)
        };
        let page = self.store.certificate_page(Some((id, 0)), 1).await?;
        let current = crate::pki::CertificateRows::current(&self.store, id).await?;
        let known = current.into_iter().chain(page.into_iter().filter(|row| row.id == id)).next();
        let known = known.ok_or_else(unknown)?;
        self.may_revoke(&known)?;
        let line = self.line("certificates revoked", id, json!({ "id": id }));
        let revoked = self.store.revoke_certificates(id, now, line, |row| revocation_time(row, now)).await?;
        if revoked.is_empty() { Err(unknown()) } else { Ok(revoked) }
    }

    /// Keeps a row for a bundle that was written, so that it can be listed and revoked.
    pub(super) async fn record(&self, bundle: &Bundle) -> Result<(), PkiError> {
        let failed = |error: StoreError| PkiError::Rows(Box::new(error));
        let (uid, (leaf, not_after)) = (bundle.uid()?, bundle.leaf()?);
        let known = crate::pki::CertificateRows::current(&self.store, &uid).await.map_err(failed)?;
        if known.is_some_and(|row| row.cert == leaf) {
            return Ok(());
        }
        let row = CertificateRow::keyless(&uid, leaf, not_after);
        let now = unix_seconds(SystemTime::now());
        let line =
            self.line("certificate issued", &uid, json!({ "id": uid.as_str(), "not_after": not_after }));
        let placed = self.store.place_leaf(row, now, line, |_| Ok::<_, PkiError>(())).await;
        placed.map_err(failed)?
    }

    async fn place(
        &self,
        uid: &Uid,
        leaf: &Leaf,
        what: &str,
        judge: impl FnOnce(&[CertificateRow]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let row = CertificateRow::keyless(uid, leaf.leaf.clone(), leaf.not_after);
        let line = self.line(what, uid, json!({ "id": uid.as_str(), "not_after": leaf.not_after }));
        self.store.place_leaf(row, unix_seconds(SystemTime::now()), line, judge).await?
    }

    fn line(&self, what: &str, id: &str, details: serde_json::Value) -> LogLine {
        LogLine {
            agent: self.names.hub_id.clone(),
            message: format!("{what}: {id}"),
            details: details.to_string(),
        }
    }

    /// The configured name that a spoke's id is under: what follows its first dot.
    fn spoke_name(&self, uid: &Uid) -> Result<String, Fault> {
        let name = uid.split_once('.').map_or("", |(_, name)| name);
        if self.is_hubs(name) {
            let text = format!("{uid} is a hub: hubs renew their certificates by themselves");
            return Err(Fault::refused(code::CERTIFICATE_PROTECTED, text));
        }
        Ok(self.spelled(name))
    }

    fn issued_name(&self, name: Option<&str>) -> Result<String, Fault> {
        match name {
            None => Ok(self.names.spoke_name.clone()),
            Some(name) if self.is_hubs(name) => {
                let text = format!(
                    "a certificate under {name:?} would pass for a hub's: the name must not be, or end with, {}",
                    self.names.hub_name
                );
                Err(Fault::refused(code::INVALID_CONFIG_NAME, text))
            }
            Some(name) => Ok(self.spelled(name)),
        }
    }

    /// A name as the id of its intermediate spells it: the hub's own as configured, others in upper case, as in ids.
    fn spelled(&self, name: &str) -> String {
        let own = &self.names.spoke_name;
        if name.eq_ignore_ascii_case(own) { own.clone() } else { name.to_ascii_uppercase() }
    }

    fn is_hubs(&self, name: &str) -> bool {
        let (name, hub) = (name.to_ascii_lowercase(), self.names.hub_name.to_ascii_lowercase());
        name == hub || name.ends_with(&format!(".{hub}"))
    }

    fn may_revoke(&self, row: &CertificateRow) -> Result<(), Fault> {
        let id = &row.id;
        let kind = CertificateFacts::of(row)?.kind;
        let is_hub = id.split_once('.').is_some_and(|(_, name)| self.is_hubs(name));
        let text = match kind {
            CertificateKind::Root | CertificateKind::Intermediate => format!(
                "{id} stands above other certificates: without it no spoke could connect. If its key is lost, stop \
                 all hubs, set `revoked` of its row in the table `certificate`, start them and issue new bundles"
            ),
            CertificateKind::Leaf if is_hub => format!(
                "{id} is a hub's own certificate, which is renewed by itself: to shut a hub out, stop it and set \
                 `revoked` of its row in the table `certificate`"
            ),
            CertificateKind::Leaf => return Ok(()),
        };
        Err(Fault::refused(code::CERTIFICATE_PROTECTED, text))
    }
}

fn unusable(text: impl Into<String>) -> Fault {
    Fault::refused(code::INVALID_CERTIFICATE, text)
}

fn revoked_fault(uid: &Uid) -> Fault {
    PkiError::Revoked { certificate: uid.to_string(), remedy: REVOKED.to_owned() }.into()
}
