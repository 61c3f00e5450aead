//! What is revoked: seen by handshakes and the listener, brought up to date by looks at the database.

use tokio::sync::watch;

use crate::{
    pki::{CertificateRow, Revoked},
    store::{REVOKED_PAGE, Store, StoreError},
};

/// A look goes back this far behind the latest revocation that was seen, in seconds: clocks differ, and a revocation
/// of a certificate's last minutes is dated back.
const OVERLAP: i64 = 3_600;
/// One look of so many reads everything anew: for what was dated further back, or is revoked no longer.
const WHOLE: u32 = 12;

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

    /// Reads what a database says, page by page.
    pub(super) async fn read(self, store: &Store) -> Result<Vec<CertificateRow>, StoreError> {
        let (mut since, mut rows) = (self.since, Vec::new());
        loop {
            let page = store.revoked_certificates(since, self.now).await?;
            let last = page.last().and_then(|row| row.revoked);
            let is_full = page.len() >= REVOKED_PAGE;
            rows.extend(page);
            match last {
                // Within one second of a full page some may be passed over: 10,000 revocations in it are needed.
                Some(last) if is_full => since = last.max(since + 1),
                _ => return Ok(rows),
            }
        }
    }
}

impl Watch {
    /// Begins with what a whole look found.
    #[must_use]
    pub(super) fn new(rows: &[CertificateRow], now: i64) -> Self {
        let mut watch =
            Self { revoked: watch::Sender::new(Revoked::default()), seen: 0, looks: 0, added: false };
        watch.take(Look::whole(now), rows);
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
    pub(super) fn take(&mut self, look: Look, rows: &[CertificateRow]) -> usize {
        // A date in the future would hide what comes before it.
        let latest = rows.iter().filter_map(|row| row.revoked).max().unwrap_or_default().min(look.now);
        self.seen = self.seen.max(latest);
        let forgets = look.since == 0 && !self.added;
        let mut fresh = 0;
        self.revoked.send_modify(|revoked| {
            let known = if forgets { std::mem::take(revoked) } else { Revoked::default() };
            revoked.forget_expired(look.now);
            fresh = rows.iter().filter(|row| revoked.add(row) && !known.has(row)).count();
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
    use crate::pki::{Fingerprint, testing::*, unix_seconds};

    /// A revoked leaf as its row, and what its bearer shows.
    async fn leaf(now: i64) -> (CertificateRow, Box<[Fingerprint]>) {
        let bundle = bundle(&authority().await);
        let (leaf, end) = bundle.leaf().unwrap();
        let row = CertificateRow { revoked: Some(now), ..CertificateRow::keyless(SPOKE_ID, leaf, end) };
        (row, Fingerprint::of_chain(bundle.identity().unwrap().chain()))
    }

    #[tokio::test]
    async fn looks_overlap_and_one_of_many_is_whole() {
        let now = unix_seconds(SystemTime::now());
        let (row, shown) = leaf(now).await;
        let mut watch = Watch::new(&[], now);
        assert_eq!(watch.look(now), Look { since: 0, now }, "nothing was seen yet");
        let look = watch.look(now);
        assert_eq!(watch.take(look, std::slice::from_ref(&row)), 1);
        assert_eq!(watch.take(look, std::slice::from_ref(&row)), 0, "it is new once");
        assert!(watch.revoked().borrow().any_of(&shown));
        for _ in 3..WHOLE {
            let look = watch.look(now);
            assert_eq!(look.since, now - OVERLAP);
            watch.take(look, &[]);
        }
        assert!(watch.revoked().borrow().any_of(&shown));
        let look = watch.look(now);
        assert_eq!(look, Look::whole(now));
        watch.take(look, &[]);
        assert!(!watch.revoked().borrow().any_of(&shown), "it isn't revoked any more");
    }

    #[tokio::test]
    async fn what_is_revoked_here_is_not_forgotten_by_a_look_that_began_before() {
        let now = unix_seconds(SystemTime::now());
        let (row, shown) = leaf(now).await;
        let mut watch = Watch::new(&[], now);
        for _ in 1..WHOLE {
            watch.look(now);
        }
        let look = watch.look(now);
        assert_eq!(look, Look::whole(now));
        watch.add(&[row]);
        watch.take(look, &[]);
        assert!(watch.revoked().borrow().any_of(&shown));
    }
}
