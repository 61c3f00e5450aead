//! How far the keeper has looked in each domain, and where it has to look again. Pure.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use crate::store::{Fate, KeepMark, Looked};

/// Domains whose places are kept; what is beyond is looked at from its oldest event on each time.
const MOST_DOMAINS: usize = 10_000;
/// What waits for somebody is looked at again after this time at the latest.
const LONGEST: i64 = 60 * 60 * 1_000;
/// What is kept for ever as it stands may stand otherwise by then.
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// The places of all domains.
#[derive(Debug)]
pub struct Walk {
    places: BTreeMap<String, Place>,
    /// The first wait before what somebody waits for is looked at again, in milliseconds; it doubles.
    shortest: i64,
    /// The domain at which the last pass had enough.
    resume: Option<String>,
}

/// One domain's.
#[derive(Debug, Clone)]
struct Place {
    /// Everything up to here was looked at.
    after: Option<KeepMark>,
    /// Of that, something may be due again.
    again: Option<Again>,
    /// The next wait for what somebody waits for, in milliseconds.
    wait: i64,
}

/// Where to look again, and when.
#[derive(Debug, Clone)]
struct Again {
    /// Behind this event; none: from the oldest on.
    after: Option<KeepMark>,
    at: i64,
}

impl Walk {
    /// Nothing was looked at yet.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        let shortest = i64::try_from(interval.as_millis()).unwrap_or(LONGEST).clamp(1, LONGEST);
        Self { places: BTreeMap::new(), shortest, resume: None }
    }

    /// Where a pass goes on: behind this domain, or from the first on.
    #[must_use]
    pub fn resume(&mut self) -> Option<String> {
        self.resume.take()
    }

    /// The pass had enough: the next one begins with this domain.
    pub fn stop_before(&mut self, domain: &str) {
        self.resume = Some(domain.to_owned());
    }

    /// Behind which event of the domain to look now; none: from the oldest on.
    pub fn begin(&mut self, domain: &str, now: i64) -> Option<KeepMark> {
        let place = self.places.get_mut(domain)?;
        if let Some(again) = place.again.take_if(|again| again.at <= now) {
            place.after = again.after;
            place.wait = place.wait.saturating_mul(2).min(LONGEST);
        }
        place.after.clone()
    }

    /// These events behind `before` were looked at, of which those that `went` are settled.
    pub fn looked(
        &mut self,
        domain: &str,
        mut before: Option<KeepMark>,
        rows: &[Looked],
        went: impl Fn(&Looked) -> bool,
        now: i64,
    ) {
        if !self.places.contains_key(domain) && self.places.len() >= MOST_DOMAINS {
            return;
        }
        let shortest = self.shortest;
        let new = || Place { after: None, again: None, wait: shortest };
        let place = self.places.entry(domain.to_owned()).or_insert_with(new);
        if rows.iter().any(&went) {
            place.wait = shortest;
        }
        for row in rows {
            let at = match row.fate {
                // What has expired is kept for a while now.
                Fate::Expires => now.saturating_add(shortest),
                _ if went(row) => {
                    before = Some(row.mark.clone());
                    continue;
                }
                Fate::Due(at) => at,
                Fate::Stays => now.saturating_add(DAY),
                Fate::Goes(_) | Fate::Waits | Fate::Open(None) => now.saturating_add(place.wait),
                Fate::Open(Some(at)) => at.min(now.saturating_add(place.wait)),
            };
            let again = place.again.get_or_insert_with(|| Again { after: before.clone(), at });
            again.at = again.at.min(at);
            before = Some(row.mark.clone());
        }
        place.after = before;
    }

    /// Forgets the domains that have no events any more: of these there are some, between the two, both excluded.
    pub fn only(&mut self, after: Option<&str>, upto: Option<&str>) {
        let within =
            |domain: &str| after.is_none_or(|after| domain > after) && upto.is_none_or(|upto| domain < upto);
        self.places.retain(|domain, _| !within(domain));
    }

    /// Domains that it has a place of.
    #[must_use]
    pub fn domains(&self) -> usize {
        self.places.len()
    }
}
