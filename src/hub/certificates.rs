//! What the admin HTTP does about certificates: asks the warden, and reads the database.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::{
    actors::{
        mail::{Handle, MailError},
        warden::{Issue, Revoke, Warden},
    },
    admin::{
        Certificate, CertificatePage, Certificates, IssueCertificate, IssuedBundle, RevokedCertificates,
    },
    config,
    event::{Fault, code},
    pki::{CertificateFacts, CertificateRow, unix_seconds},
    store::Store,
};

/// How long the warden may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// Before a caller tries again.
const WAIT: Duration = Duration::from_secs(1);

/// Answers for a hub that is up.
#[derive(Debug)]
pub struct CertificateDesk {
    /// Issues and revokes.
    pub warden: Handle<Warden>,
    /// For lists.
    pub store: Store,
}

#[async_trait]
impl Certificates for CertificateDesk {
    async fn issue(&self, wish: IssueCertificate) -> Result<IssuedBundle, Fault> {
        let IssueCertificate { name, id, lifetime, days } = wish;
        let refused = |text: String| Fault::refused(code::INVALID_CERTIFICATE, text);
        let life = match (lifetime, days) {
            (Some(_), Some(_)) => return Err(refused("give lifetime or days, not both".to_owned())),
            (Some(text), None) => Some(
                config::read_duration(&text).map_err(|why| refused(format!("lifetime {text:?} {why}")))?,
            ),
            (None, days) => days.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        };
        let handout = self.warden.ask(Issue { name, id, life }, DEADLINE).await.map_err(unanswered)??;
        Ok(IssuedBundle {
            id: handout.id,
            not_after: handout.not_after.saturating_mul(1_000),
            bundle: handout.bundle.to_toml()?.expose().to_owned(),
        })
    }

    async fn list(&self, page: &str, limit: u32) -> Result<CertificatePage, Fault> {
        let after = match page.rsplit_once(':') {
            None if page.is_empty() => None,
            Some((id, version)) => Some((id, version.parse().map_err(|_| invalid_page(page))?)),
            None => return Err(invalid_page(page)),
        };
        let rows = self.store.certificate_page(after, u64::from(limit)).await?;
        let last = rows.last().filter(|_| rows.len() as u64 == u64::from(limit));
        let next = last.map(|row| format!("{}:{}", row.id, row.version));
        let now = unix_seconds(SystemTime::now());
        Ok(CertificatePage { certificates: rows.iter().map(|row| shown(row, now)).collect(), next })
    }

    async fn revoke(&self, id: &str) -> Result<RevokedCertificates, Fault> {
        let revoked = self.warden.ask(Revoke { id: id.to_owned() }, DEADLINE).await.map_err(unanswered)??;
        Ok(RevokedCertificates { id: id.to_owned(), versions: revoked.versions, links_cut: revoked.links })
    }
}

fn unanswered(error: MailError) -> Fault {
    Fault::retryable(code::HUB_BUSY, format!("the hub can't see to its certificates now: {error}"), WAIT)
}

fn invalid_page(page: &str) -> Fault {
    let text = format!("{page:?} is no page of certificates: give what the page before said as `next`");
    Fault::refused(code::INVALID_PAGE, text)
}

fn shown(row: &CertificateRow, now: i64) -> Certificate {
    let facts = CertificateFacts::of(row).ok();
    let millis = |seconds: i64| seconds.saturating_mul(1_000);
    Certificate {
        id: row.id.clone(),
        version: row.version,
        kind: facts.as_ref().map_or("unreadable", |facts| facts.kind.as_str()),
        state: match row {
            _ if row.revoked.is_some() => "revoked",
            _ if row.validity < now => "expired",
            _ if row.version > 0 => "replaced",
            _ => "current",
        },
        key_kept: row.has_key(),
        not_before: facts.map(|facts| millis(facts.not_before)),
        not_after: millis(row.validity),
        revoked: row.revoked.map(millis),
    }
}
