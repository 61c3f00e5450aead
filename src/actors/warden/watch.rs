//! What is revoked: seen by handshakes and the listener, brought up to date by looks at the database.

use tokio::sync::watch;

use crate::{
    pki::{CertificateRow, Revoked},
    store::{Store, StoreError},
};

/// A look goes back this far behind the latest revocation that was seen, in seconds: clocks differ, and a revocation
/// of a certificate's last minutes is dated back.
const OVERLAP: i64 = 3_600;
/// One look of so many reads everything anew: for what was dated further back, or is revoked no longer.
const WHOLE: u32 = 12;
/// Rows that are read at once.
const PAGE: usize = 1_000;

/// The set of revoked certificates, and how far it was looked.
#[derive(Debug)]
pub struct Watch {
    revoked: watch::Sender<Revoked>,
    /// The time of the latest revocation that was seen, in seconds since 1970.
    seen: i64,
    looks: u32,
    /// Something was added that the look under way may not have seen.
    added: bool,
}

/// A look to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// In seconds since 1970; 0: a whole one.
    since: i64,
    now: i64,
}

impl Look {
    /// Everything that is revoked.
    pub(super) fn whole(now: i64) -> Self {
        Self { since: 0, now }
    }

    /// Reads what a database says.
    pub(super) async fn read(self, store: &Store) -> Result<Found, StoreError> {
        self.read_by(PAGE, store).await
    }

    /// The same, in pages of so many rows: of each only what is to be remembered is kept.
    async fn read_by(self, size: usize, store: &Store) -> Result<Found, StoreError> {
        let (mut found, mut page) = (Found::default(), Vec::<CertificateRow>::new());
        loop {
            let after = page.last().map(|row| (row.version, row.id.as_str()));
            page = store.revoked_certificates(self.since, self.now, after, size as u64).await?;
            page.iter().for_each(|row| found.add(row));
            if page.len() < size {
                return Ok(found);
            }
        }
    }
}

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Found {
    revoked: Revoked,
    /// The time of the latest revocation, in seconds since 1970.
    latest: i64,
}

impl Found {
    fn add(&mut self, row: &CertificateRow) {
        self.revoked.add(row);
        self.latest = self.latest.max(row.revoked.unwrap_or_default());
    }
}

impl Watch {
    /// Begins with what a whole look found.
    #[must_use]
    pub(super) fn new(found: Found, now: i64) -> Self {
        let mut watch =
            Self { revoked: watch::Sender::new(Revoked::default()), seen: 0, looks: 0, added: false };
        watch.take(Look::whole(now), found);
        watch
    }

    /// For those who judge peers.
    pub(super) fn revoked(&self) -> watch::Receiver<Revoked> {
        self.revoked.subscribe()
    }

    /// Begins a look.
    pub(super) fn look(&mut self, now: i64) -> Look {
        self.looks = (self.looks + 1) % WHOLE;
        self.added = false;
        if self.looks == 0 { Look::whole(now) } else { Look { since: (self.seen - OVERLAP).max(0), now } }
    }

    /// Takes what a look found; how many of it are new.
    pub(super) fn take(&mut self, look: Look, found: Found) -> usize {
        // A date in the future would hide what comes before it.
        self.seen = self.seen.max(found.latest.min(look.now));
        let forgets = look.since == 0 && !self.added;
        let mut fresh = 0;
        self.revoked.send_modify(|revoked| {
            fresh = revoked.lacks(&found.revoked);
            if forgets {
                *revoked = found.revoked;
            } else {
                revoked.forget_expired(look.now);
                revoked.merge(found.revoked);
            }
        });
        fresh
    }

    /// Takes rows that were revoked here.
    pub(super) fn add(&mut self, rows: &[CertificateRow]) {
        self.added = true;
        self.revoked.send_modify(|revoked| rows.iter().for_each(|row| _ = revoked.add(row)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{
        pki::{CertificateRows, Fingerprint, testing::*, unix_seconds},
        store::{Place, StoreConfig},
    };

    /// A revoked leaf as its row, and what its bearer shows.
    async fn leaf(now: i64) -> (CertificateRow, Box<[Fingerprint]>) {
        let bundle = bundle(&authority().await);
        let (leaf, end) = bundle.leaf().unwrap();
        let row = CertificateRow { revoked: Some(now), ..CertificateRow::keyless(SPOKE_ID, leaf, end) };
        (row, Fingerprint::of_chain(bundle.identity().unwrap().chain()))
    }

    fn found(row: &CertificateRow) -> Found {
        let mut found = Found::default();
        found.add(row);
        found
    }

    #[tokio::test]
    async fn more_revocations_in_one_second_than_a_page_has_are_seen() {
        let now = unix_seconds(SystemTime::now());
        let store = Store::open(&StoreConfig::new(Place::Memory)).await.unwrap();
        let (row, shown) = leaf(now).await;
        for version in 1..8 {
            for id in ["A", "B"] {
                let cert = if (version, id) == (7, "B") { row.cert.clone() } else { "rubbish".to_owned() };
                let row = CertificateRow { version, id: id.to_owned(), cert, ..row.clone() };
                assert!(store.insert(row).await.unwrap());
            }
        }
        for size in [1, 2, 3, 14, 15] {
            for look in [Look::whole(now), Look { since: now, now }] {
                let found = look.read_by(size, &store).await.unwrap();
                assert!(found.revoked.any_of(&shown) && found.latest == now, "{size} {look:?}");
            }
        }
    }

    #[tokio::test]
    async fn looks_overlap_and_one_of_many_is_whole() {
        let now = unix_seconds(SystemTime::now());
        let (row, shown) = leaf(now).await;
        let mut watch = Watch::new(Found::default(), now);
        assert_eq!(watch.look(now), Look { since: 0, now }, "nothing was seen yet");
        let look = watch.look(now);
        assert_eq!(watch.take(look, found(&row)), 1);
        assert_eq!(watch.take(look, found(&row)), 0, "it is new once");
        assert!(watch.revoked().borrow().any_of(&shown));
        for _ in 3..WHOLE {
            let look = watch.look(now);
            assert_eq!(look.since, now - OVERLAP);
            watch.take(look, Found::default());
        }
        assert!(watch.revoked().borrow().any_of(&shown));
        let look = watch.look(now);
        assert_eq!(look, Look::whole(now));
        watch.take(look, Found::default());
        assert!(!watch.revoked().borrow().any_of(&shown), "it isn't revoked any more");
    }

    #[tokio::test]
    async fn what_is_revoked_here_is_not_forgotten_by_a_look_that_began_before() {
        let now = unix_seconds(SystemTime::now());
        let (row, shown) = leaf(now).await;
        let mut watch = Watch::new(Found::default(), now);
        for _ in 1..WHOLE {
            watch.look(now);
        }
        let look = watch.look(now);
        assert_eq!(look, Look::whole(now));
        watch.add(&[row]);
        watch.take(look, Found::default());
        assert!(watch.revoked().borrow().any_of(&shown));
    }
}
