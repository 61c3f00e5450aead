//! Which certificates are revoked, as a hub keeps it in memory.

use std::collections::{BTreeSet, HashMap};

use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use tracing::{error, warn};

use super::{CertificateRow, PkiError, authority::DAY, x509};

/// Certificates that are remembered at most; of more, those that end first are forgotten.
const MOST: usize = 100_000;
/// A row that is revoked in the last ten minutes of its certificate is npm Eventflow's way to renew it.
const EXPIRY: i64 = 600;

/// Stands for one certificate: the hash of what its issuer signed. Signatures of some kinds can be written in
/// more than one way, so that a hash of the whole could be evaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a certificate.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if it can't be parsed.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, PkiError> {
        let parsed = x509::parse(certificate, "the peer")?;
        Ok(Self(Sha256::digest(parsed.tbs_certificate.as_ref()).into()))
    }

    /// Those of a presented chain, leaf first. What can't be parsed isn't in it: no handshake gets so far.
    #[must_use]
    pub fn of_chain(chain: &[CertificateDer<'_>]) -> Box<[Self]> {
        chain.iter().filter_map(|certificate| Self::of(certificate).ok()).collect()
    }
}

/// The revoked certificates that would hold otherwise.
#[derive(Debug, Default, Clone)]
pub struct Revoked {
    ends: HashMap<Fingerprint, i64>,
    by_end: BTreeSet<(i64, Fingerprint)>,
}

impl Revoked {
    /// Whether one of these is revoked.
    #[must_use]
    pub fn any_of(&self, chain: &[Fingerprint]) -> bool {
        chain.iter().any(|fingerprint| self.ends.contains_key(fingerprint))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many of another set's certificates aren't among them.
    #[must_use]
    pub fn lacks(&self, other: &Self) -> usize {
        other.ends.keys().filter(|fingerprint| !self.ends.contains_key(fingerprint)).count()
    }

    /// Takes a revoked row. True: it says something new.
    pub fn add(&mut self, row: &CertificateRow) -> bool {
        is_cut(row) && fingerprint(row).is_some_and(|fingerprint| self.insert(fingerprint, row.validity))
    }

    /// Takes what another set has.
    pub fn merge(&mut self, other: Self) {
        for (fingerprint, end) in other.ends {
            self.insert(fingerprint, end);
        }
    }

    fn insert(&mut self, fingerprint: Fingerprint, end: i64) -> bool {
        if self.ends.insert(fingerprint, end).is_some() {
            return false;
        }
        self.by_end.insert((end, fingerprint));
        while self.ends.len() > MOST
            && let Some((_, first)) = self.by_end.pop_first()
        {
            error!(
                most = MOST,
                "more certificates are revoked than are remembered: the one that ends first is forgotten"
            );
            self.ends.remove(&first);
        }
        true
    }

    /// Forgets what has expired before `now` (seconds since 1970): handshakes refuse it by its date.
    pub fn forget_expired(&mut self, now: i64) {
        while let Some((end, fingerprint)) = self.by_end.first().copied()
            && end < now
        {
            self.by_end.pop_first();
            self.ends.remove(&fingerprint);
        }
    }
}

/// What to write into `revoked` (seconds since 1970) so that every hub takes it for a revocation: one of the last
/// ten minutes would look like npm's renewal.
#[must_use]
pub fn revocation_time(row: &CertificateRow, now: i64) -> i64 {
    if is_short(row) { now } else { now.min(row.validity - EXPIRY - 1) }
}

/// Whether a revoked row means that its bearer is to be refused.
fn is_cut(row: &CertificateRow) -> bool {
    row.revoked.is_some_and(|revoked| row.validity - revoked > EXPIRY || is_short(row))
}

/// Certificates that live less than a day aren't npm's: its ten minutes don't apply to them.
fn is_short(row: &CertificateRow) -> bool {
    let Some(life) = single(row).and_then(|certificate| {
        let (start, end) = x509::lifetime(&x509::parse(&certificate, &row.id).ok()?);
        u64::try_from(end - start).ok()
    }) else {
        return false;
    };
    life < DAY.as_secs()
}

fn fingerprint(row: &CertificateRow) -> Option<Fingerprint> {
    let found = single(row).and_then(|certificate| Fingerprint::of(&certificate).ok());
    if found.is_none() {
        warn!(certificate = row.id, "the revoked certificate can't be read, and is passed over");
    }
    found
}

fn single(row: &CertificateRow) -> Option<CertificateDer<'static>> {
    x509::pem_chain(&row.cert, &row.id).ok()?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::pki::{Lifetimes, authority::establish, testing::*, unix_seconds};

    /// A leaf of this life as its row, revoked so long before its end.
    async fn revoked(life: Duration, before: i64) -> (CertificateRow, Box<[Fingerprint]>) {
        let (rows, now) = (MemoryRows::default(), SystemTime::now());
        let lifetimes = Lifetimes { spoke_leaf: life, ..Lifetimes::default() };
        let authority = establish(&rows, &vault(), &names(), lifetimes, now).await.unwrap();
        let leaf = authority.issue_spoke_leaf(SPOKE_ID, now).unwrap();
        let end = unix_seconds(now + life);
        let pem = leaf.cert.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap();
        let row = CertificateRow {
            revoked: Some(end - before),
            ..CertificateRow::keyless(SPOKE_ID, pem.to_owned(), end)
        };
        (row, Fingerprint::of_chain(leaf.identity.chain()))
    }

    #[tokio::test]
    async fn a_revoked_certificate_is_known_until_it_expires() {
        let (row, chain) = revoked(90 * DAY, 601).await;
        let mut set = Revoked::default();
        assert!(!set.any_of(&chain));
        assert!(set.add(&row) && !set.add(&row), "it is new once");
        assert!(set.any_of(&chain) && set.len() == 1);
        set.forget_expired(row.validity);
        assert!(!set.is_empty());
        set.forget_expired(row.validity + 1);
        assert!(set.is_empty() && !set.any_of(&chain));
    }

    #[tokio::test]
    async fn npms_renewal_revokes_nothing() {
        let mut set = Revoked::default();
        assert!(!set.add(&revoked(90 * DAY, 600).await.0));
        assert!(!set.add(&revoked(90 * DAY, 0).await.0));
        let live = CertificateRow { revoked: None, ..revoked(90 * DAY, 0).await.0 };
        assert!(!set.add(&live));
        // A leaf of a minute is always in its last ten: there the rule doesn't hold.
        assert!(set.add(&revoked(Duration::from_secs(60), 30).await.0));
    }

    #[tokio::test]
    async fn what_is_revoked_here_is_revoked_everywhere() {
        for (life, before) in [(90 * DAY, 5), (90 * DAY, 100_000), (Duration::from_secs(60), 5)] {
            let (row, _) = revoked(life, 0).await;
            let revoked = revocation_time(&row, row.validity - before);
            assert!(is_cut(&CertificateRow { revoked: Some(revoked), ..row.clone() }), "{life:?} {before}");
        }
    }

    #[test]
    fn a_row_that_is_no_certificate_is_passed_over() {
        let row =
            CertificateRow { revoked: Some(1), ..CertificateRow::keyless("A", "rubbish".to_owned(), 10_000) };
        assert!(!Revoked::default().add(&row));
    }
}
