//! What is to become of an event: pure.

use super::wants;
use crate::{
    event::{Domain, EventId, Kept, Name, Policy, Uid},
    store::Binding,
};

/// After so long without a word, in milliseconds, an npm spoke that claimed an event isn't waited for.
pub const UNHEARD_OF: i64 = 60 * 60 * 1_000;

/// What is to become of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was kept long enough.
    Goes(Kept),
    /// Nobody wanted it for long enough.
    Expires,
    /// Nothing before this time, in milliseconds since 1970.
    Due(i64),
    /// Nobody wants it so far, or it isn't published: either may change at any time. If it doesn't, nothing before this
    /// time; none: ever.
    Open(Option<i64>),
    /// Somebody is to get it, or has it, or it is scheduled.
    Waits,
    /// It is kept for ever, as it stands.
    Stays,
}

/// What is known of an event.
#[derive(Debug, Clone)]
pub(in crate::store) struct Facts {
    pub(in crate::store) id: EventId,
    /// When it was stored, or ran if it was scheduled, in milliseconds since 1970 as all times here.
    pub(in crate::store) stored: i64,
    pub(in crate::store) domain: Domain,
    pub(in crate::store) name: Name,
    /// It waits for its time.
    pub(in crate::store) scheduled: bool,
    /// None: it wasn't published.
    pub(in crate::store) standing: Option<Standing>,
    pub(in crate::store) groups: Vec<GroupEnd>,
}

/// How a published event stands in the default group.
#[derive(Debug, Clone)]
pub(in crate::store) struct Standing {
    /// Who serves it.
    pub(in crate::store) hub: Option<Uid>,
    pub(in crate::store) seq: Option<u64>,
    pub(in crate::store) published: i64,
    /// How and when it ended.
    pub(in crate::store) end: Option<(Kept, i64)>,
    /// When somebody claimed it in the database.
    pub(in crate::store) claimed: Option<i64>,
    /// It was one of ours.
    pub(in crate::store) ours: bool,
    /// A delivery ended without outcome.
    pub(in crate::store) tried: bool,
}

/// How an event stands in a named group that has a row for it.
#[derive(Debug, Clone)]
pub(in crate::store) struct GroupEnd {
    pub(in crate::store) group: String,
    /// When it ended, and whether well; none: it is tried again.
    pub(in crate::store) end: Option<(Kept, i64)>,
}

impl Facts {
    /// What is to become of it on a hub that is in charge of what these have dispatched, by what the bindings want.
    pub(in crate::store) fn fate(
        &self,
        hubs: &[Uid],
        bindings: &[Binding],
        policy: &Policy,
        now: i64,
    ) -> Fate {
        if self.scheduled {
            return Fate::Waits;
        }
        let Some(standing) = &self.standing else {
            return open(kept(Kept::Persisted, self.stored, policy, now));
        };
        let ours = standing.hub.as_ref().is_some_and(|hub| hubs.contains(hub));
        if standing.end.is_none() && !ours {
            // Whoever serves it knows who has it.
            return Fate::Waits;
        }
        let wanted: Vec<String> =
            standing.seq.into_iter().flat_map(|seq| wants(bindings, self, seq)).collect();
        let has_ended = |group: &str| self.groups.iter().any(|end| end.group == group && end.end.is_some());
        let named_waits = wanted.iter().any(|group| !group.is_empty() && !has_ended(group));
        if named_waits || self.groups.iter().any(|end| end.end.is_none()) {
            return Fate::Waits;
        }
        let named = self.groups.iter().filter_map(|end| end.end).reduce(later);
        let by_default = match (standing.end, standing.claimed) {
            (Some(end), _) => Some(end),
            // An npm spoke's claim is never taken back.
            (None, Some(claimed)) if !standing.ours => {
                if now < claimed.saturating_add(UNHEARD_OF) {
                    return Fate::Due(claimed.saturating_add(UNHEARD_OF));
                }
                Some((Kept::Unknown, claimed))
            }
            (None, claimed) => {
                let pending = wanted.iter().any(String::is_empty);
                if pending || claimed.is_some() || standing.ours || standing.tried {
                    return Fate::Waits;
                }
                None
            }
        };
        match (by_default, named) {
            // Only named groups wanted it.
            (None | Some((Kept::Expired, _)), Some((how, at))) => kept(how, at, policy, now),
            (Some(one), Some(other)) => {
                let (how, at) = later(one, other);
                kept(how, at, policy, now)
            }
            (Some((how, at)), None) => kept(how, at, policy, now),
            (None, None) => orphan(standing.published, policy, now),
        }
    }
}

/// The end of two groups: the later of both, and dead if one of them is; else as the first one.
fn later(one: (Kept, i64), other: (Kept, i64)) -> (Kept, i64) {
    let how = if other.0 == Kept::Dead { Kept::Dead } else { one.0 };
    (how, one.1.max(other.1))
}

fn kept(how: Kept, at: i64, policy: &Policy, now: i64) -> Fate {
    match policy.keep(how).end(at) {
        None => Fate::Stays,
        Some(end) if end <= now => Fate::Goes(how),
        Some(end) => Fate::Due(end),
    }
}

fn orphan(published: i64, policy: &Policy, now: i64) -> Fate {
    let kept = kept(Kept::Orphan, published, policy, now);
    let expires = policy.expire_after.end(published);
    match (kept, expires) {
        (Fate::Goes(_), _) => kept,
        (_, Some(end)) if end <= now => Fate::Expires,
        (Fate::Due(one), Some(other)) => Fate::Open(Some(one.min(other))),
        (Fate::Due(end), None) | (_, Some(end)) => Fate::Open(Some(end)),
        (_, None) => Fate::Open(None),
    }
}

/// The same, if it may change before its time.
fn open(fate: Fate) -> Fate {
    match fate {
        Fate::Due(end) => Fate::Open(Some(end)),
        Fate::Stays => Fate::Open(None),
        other => other,
    }
}
