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
