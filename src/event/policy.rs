//! What each domain wants of its events: for how long they wait for a consumer, and how long they are kept after their
//! end. Pure: it takes times, and reads no clock.

#[cfg(test)]
mod tests;

use std::{cmp::Ordering, time::Duration};

use super::Pattern;

/// How long something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// For so long.
    For(Duration),
    /// For ever.
    Forever,
}

impl PartialOrd for Keep {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Keep {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::For(one), Self::For(other)) => one.cmp(other),
            (Self::For(_), Self::Forever) => Ordering::Less,
            (Self::Forever, Self::For(_)) => Ordering::Greater,
            (Self::Forever, Self::Forever) => Ordering::Equal,
        }
    }
}

impl Keep {
    /// When what is kept from `from` on may go, in milliseconds since 1970; none: never.
    #[must_use]
    pub fn end(self, from: i64) -> Option<i64> {
        match self {
            Self::For(keep) => Some(from.saturating_add(millis(keep))),
            Self::Forever => None,
        }
    }

    /// What is from before this moment may go at `now`, both in milliseconds since 1970; none: nothing may.
    #[must_use]
    pub fn begin(self, now: i64) -> Option<i64> {
        match self {
            Self::For(keep) => Some(now.saturating_sub(millis(keep))),
            Self::Forever => None,
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// How an event stands for retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kept {
    /// Each group that wanted it has ended it well.
    Success,
    /// A group has given it up.
    Dead,
    /// Nobody wanted it for as long as its domain waits.
    Expired,
    /// An npm spoke claimed it, and nothing was heard of it since.
    Unknown,
    /// Nobody has wanted it so far.
    Orphan,
    /// It was stored and not published.
    Persisted,
}

impl Kept {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Success, Self::Dead, Self::Expired, Self::Unknown, Self::Orphan, Self::Persisted];

    /// In a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Dead => "dead",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
            Self::Orphan => "orphan",
            Self::Persisted => "persisted",
        }
    }
}

/// What is wanted of the events of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long an event that no binding of the default group wanted is offered to one that comes later.
    pub orphan_keep: Keep,
    /// How old an event that no binding wants must be to expire.
    pub expire_after: Keep,
    /// How long an event is kept after each group has ended it well.
    pub keep_success: Keep,
    /// How long after a group has given it up.
    pub keep_dead: Keep,
    /// How long after it expired.
    pub keep_expired: Keep,
    /// How long after an npm spoke claimed it of which nothing was heard since.
    pub keep_unknown: Keep,
    /// How long after it was published, if nobody wants it.
    pub keep_orphan: Keep,
    /// How long after it was stored, if it was never published.
    pub keep_persisted: Keep,
}

impl Default for Policy {
    /// Late consumers get the orphans of a day; nothing expires, and everything is kept.
    fn default() -> Self {
        let keep = Keep::Forever;
        Self {
            orphan_keep: Keep::For(Duration::from_secs(24 * 60 * 60)),
            expire_after: keep,
            keep_success: keep,
            keep_dead: keep,
            keep_expired: keep,
            keep_unknown: keep,
            keep_orphan: keep,
            keep_persisted: keep,
        }
    }
}

impl Policy {
    /// How long what stands so is kept after its end.
    #[must_use]
    pub fn keep(&self, kept: Kept) -> Keep {
        match kept {
            Kept::Success => self.keep_success,
            Kept::Dead => self.keep_dead,
            Kept::Expired => self.keep_expired,
            Kept::Unknown => self.keep_unknown,
            Kept::Orphan => self.keep_orphan,
            Kept::Persisted => self.keep_persisted,
        }
    }

    /// How old an event is at least when anything is to be done with it.
    #[must_use]
    pub fn least(&self) -> Keep {
        Kept::ALL.into_iter().map(|kept| self.keep(kept)).fold(self.expire_after, Ord::min)
    }
}

/// The policies of all domains: of those whose pattern matches a domain the first holds, else the last one, for all
/// others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies {
    entries: Vec<(Pattern, Policy)>,
    others: Policy,
}

/// From where a new binding of the default group is offered the orphans of some domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainStart {
    /// Which domains: of several starts whose pattern matches the first holds.
    pub domain: Pattern,
    /// From this sequence number on.
    pub seq: u64,
}

/// Where a new binding starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The lowest number of any domain.
    pub seq: u64,
    /// Where the domains that the binding is for differ: each of them has a match. Else empty.
    pub domains: Vec<DomainStart>,
}

impl Policies {
    /// These, of which the first that matches holds, and one for all other domains.
    #[must_use]
    pub fn new(entries: Vec<(Pattern, Policy)>, others: Policy) -> Self {
        Self { entries, others }
    }

    /// That of a domain, with its place among the entries; none: it is that of the others.
    #[must_use]
    pub fn find(&self, domain: &str) -> (Option<usize>, &Policy) {
        let at = self.entries.iter().position(|(pattern, _)| pattern.matches(domain));
        (at, at.and_then(|at| self.entries.get(at)).map_or(&self.others, |(_, policy)| policy))
    }

    /// That of a domain.
    #[must_use]
    pub fn of(&self, domain: &str) -> &Policy {
        self.find(domain).1
    }

    /// The entries in their order, and at last that of all other domains, whose pattern is `*`.
    pub fn iter(&self) -> impl Iterator<Item = (Pattern, &Policy)> {
        let entries = self.entries.iter().map(|(pattern, policy)| (pattern.clone(), policy));
        entries.chain([(Pattern::any(), &self.others)])
    }

    /// Whether nothing ever expires or is removed.
    #[must_use]
    pub fn keeps_all(&self) -> bool {
        self.iter().all(|(_, policy)| policy.least() == Keep::Forever)
    }

    /// Where a binding of the default group for these domains starts that is made at `now`, in milliseconds since
    /// 1970: sequence numbers are microseconds.
    #[must_use]
    pub fn start(&self, domains: &Pattern, now: i64) -> Start {
        let mut starts = Vec::new();
        for (domain, policy) in self.iter().filter(|(pattern, _)| pattern.overlaps(domains)) {
            let begin = policy.orphan_keep.begin(now).unwrap_or(0);
            let seq = u64::try_from(begin).unwrap_or(0).saturating_mul(1_000);
            let last = domain.covers(domains);
            starts.push(DomainStart { domain, seq });
            if last {
                break;
            }
        }
        let seq = starts.iter().map(|start| start.seq).min().unwrap_or(0);
        if starts.iter().all(|start| start.seq == seq) {
            starts.clear();
        }
        Start { seq, domains: starts }
    }
}

/// Whether what has this domain and number isn't from before its domain's start. Without starts it never is.
#[must_use]
pub fn has_started(starts: &[DomainStart], domain: &str, seq: u64) -> bool {
    starts.iter().find(|start| start.domain.matches(domain)).is_none_or(|start| seq >= start.seq)
}
