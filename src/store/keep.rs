//! What retention looks at: the events of one domain after the other, oldest first, by the index that their log has.

mod fate;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use chrono::NaiveDateTime;
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Value};

pub(super) use fate::{Facts, GroupEnd, Standing};
pub use fate::{Fate, UNHEARD_OF};

use super::{
    Binding, Store, StoreError,
    engine::Ask,
    sql::{fill, marks, pieces, refused, rounded, signed, unsigned},
    time,
};
use crate::event::{Domain, EventId, Kept, Name, Policies, Uid};

/// Where a walk through the events of a domain stands: behind this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepMark {
    /// In milliseconds since 1970.
    at: i64,
    id: EventId,
}

impl KeepMark {
    /// Behind the event of this time, in milliseconds since 1970, and this id.
    #[must_use]
    pub fn at(at: i64, id: EventId) -> Self {
        Self { at, id }
    }
}

/// An event that retention looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Which.
    pub id: EventId,
    /// Its number on its hub, if it was published.
    pub seq: Option<u64>,
    /// Its place in the walk.
    pub mark: KeepMark,
    /// What is to become of it.
    pub fate: Fate,
}

/// The columns that [`facts_of`] reads.
const FACTS: &str = "e.id, @utc(e.timestamp), e.domain, e.name, \
    EXISTS (SELECT 1 FROM event_scheduled s WHERE s.event_id = e.id AND s.executed IS NULL), \
    p.event_id IS NOT NULL, p.v1_hub, p.seq, @utc(p.published), p.success, p.failed, p.orphan, p.consumed_spoke, \
    EXISTS (SELECT 1 FROM v1_claim c WHERE c.event_id = e.id), \
    EXISTS (SELECT 1 FROM v1_attempt a WHERE a.event_id = e.id AND a.grp = '') \
    FROM event e LEFT JOIN event_published p ON p.event_id = e.id";

impl Store {
    /// The first domain behind this one, by its letters.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn next_domain(&self, after: &str) -> Result<Option<Domain>, StoreError> {
        let sql = "SELECT domain FROM event WHERE domain > ? ORDER BY domain LIMIT 1";
        let row = self.readers.row(sql, vec![after.into()]).await;
        let domain = row.and_then(|row| row.map(|row| row.try_get_by_index::<String>(0)).transpose());
        Ok(domain.map_err(refused("list the domains"))?.map(Domain::from_stored))
    }

    /// What is to become of the next events of a domain, by what stands in the database: those behind the mark whose
    /// time is `until` at most, in milliseconds since 1970; at most `limit`. Fewer: that was all.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn keep_page(
        &self,
        (hub, domain): (&Uid, &Domain),
        after: Option<&KeepMark>,
        until: i64,
        limit: usize,
        (policies, now): (&Policies, i64),
    ) -> Result<Vec<Looked>, StoreError> {
        let refused = refused("look for what is kept long enough");
        let mut values: Vec<Value> = vec![domain.as_str().into(), time::value(until)];
        let mut behind = "";
        if let Some(KeepMark { at, id }) = after {
            // Times first, by the index; of the same time what comes later by its id.
            behind = "AND e.timestamp >= @local(?) AND (e.timestamp > @local(?) OR e.id > ?)";
            values.extend([time::value(*at), time::value(*at), id.as_str().into()]);
        }
        values.push(signed(limit as u64).into());
        let tail = format!(
            "WHERE e.domain = ? AND e.timestamp <= @local(?) {behind} ORDER BY e.timestamp, e.id LIMIT ?"
        );
        let facts = read(&self.readers, &tail, values).await.map_err(&refused)?;
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let bindings = self.bindings().await?;
        let hubs = self.served_hubs(hub).await?;
        let policy = policies.of(domain);
        let look = |facts: Facts| Looked {
            seq: facts.standing.as_ref().and_then(|standing| standing.seq),
            fate: facts.fate(&hubs, &bindings, policy, now),
            mark: KeepMark::at(facts.stored, facts.id.clone()),
            id: facts.id,
        };
        Ok(facts.into_iter().map(look).collect())
    }

    /// Those of these events that one answers which isn't among them.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn answered(&self, ids: &[EventId]) -> Result<HashSet<EventId>, StoreError> {
        answered(&self.readers, ids).await.map_err(refused("look for answers"))
    }
}

/// The facts of these events that are there.
pub(super) async fn facts(db: &impl ConnectionTrait, ids: &[EventId]) -> Result<Vec<Facts>, DbErr> {
    let mut all = Vec::with_capacity(ids.len());
    for piece in pieces(ids) {
        let mut values = piece.iter().map(|id| id.as_str().into()).collect();
        fill(&mut values, piece.len(), 1);
        all.extend(read(db, &format!("WHERE e.id IN ({})", marks(rounded(piece.len()))), values).await?);
    }
    Ok(all)
}

async fn read(db: &impl ConnectionTrait, tail: &str, values: Vec<Value>) -> Result<Vec<Facts>, DbErr> {
    let rows = db.rows(format!("SELECT {FACTS} {tail}"), values).await?;
    let mut all = rows.iter().map(facts_of).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<_> = all.iter().map(|facts| facts.id.clone()).collect();
    let mut groups = group_ends(db, &ids).await?;
    for facts in &mut all {
        facts.groups = groups.remove(&facts.id).unwrap_or_default();
    }
    Ok(all)
}

/// How the named groups stand to these events, and whether any group tries one again. What a redrive, or a group that
/// began anew or was removed, has made history doesn't count; nor does what the default group has there, which is history too.
async fn group_ends(
    db: &impl ConnectionTrait,
    ids: &[EventId],
) -> Result<HashMap<EventId, Vec<GroupEnd>>, DbErr> {
    let mut all: HashMap<EventId, Vec<GroupEnd>> = HashMap::new();
    for piece in pieces(ids) {
        let events = marks(rounded(piece.len()));
        let sql = format!(
            "SELECT o.event_id, o.grp, o.outcome, o.ended FROM v1_outcome o \
             JOIN v1_group g ON g.name = o.grp \
             WHERE o.event_id IN ({events}) AND o.grp <> '' AND o.round >= g.round \
             AND NOT (o.outcome = 'dead' AND o.dead IS NULL) \
             UNION ALL SELECT r.event_id, r.grp, NULL, NULL FROM v1_retry r WHERE r.event_id IN ({events})"
        );
        let mut values = Vec::with_capacity(rounded(piece.len()) * 2);
        for _ in 0..2 {
            values.extend(piece.iter().map(|id| Value::from(id.as_str())));
            fill(&mut values, piece.len(), 1);
        }
        for row in db.rows(sql, values).await? {
            let id = EventId::from_stored(row.try_get_by_index::<String>(0)?);
            let group = row.try_get_by_index(1)?;
            let outcome: Option<String> = row.try_get_by_index(2)?;
            let end = match outcome.as_deref() {
                None => None,
                Some("dead") => Some(Kept::Dead),
                Some("expired") => Some(Kept::Expired),
                Some(_) => Some(Kept::Success),
            };
            let at: Option<NaiveDateTime> = row.try_get_by_index(3)?;
            let end = end.zip(at.map(time::millis));
            all.entry(id).or_default().push(GroupEnd { group, end });
        }
    }
    Ok(all)
}

fn facts_of(row: &QueryResult) -> Result<Facts, DbErr> {
    let time_at = |index| row.try_get_by_index(index).map(|at: Option<_>| at.map(time::millis));
    let standing = if row.try_get_by_index(5)? {
        let ends = [(9, Kept::Success), (10, Kept::Dead), (11, Kept::Expired)];
        let mut end = None;
        for (index, kept) in ends {
            end = end.or(time_at(index)?.map(|at| (kept, at)));
        }
        Some(Standing {
            hub: row.try_get_by_index::<Option<String>>(6)?.map(Uid::from_stored),
            seq: row.try_get_by_index::<Option<i64>>(7)?.map(unsigned),
            published: time::millis(row.try_get_by_index(8)?),
            end,
            claimed: time_at(12)?,
            ours: row.try_get_by_index(13)?,
            tried: row.try_get_by_index(14)?,
        })
    } else {
        None
    };
    Ok(Facts {
        id: EventId::from_stored(row.try_get_by_index::<String>(0)?),
        stored: time::millis(row.try_get_by_index(1)?),
        domain: Domain::from_stored(row.try_get_by_index::<String>(2)?),
        name: Name::from_stored(row.try_get_by_index::<String>(3)?),
        scheduled: row.try_get_by_index(4)?,
        standing,
        groups: Vec::new(),
    })
}

/// Those of these events that have an answer which stays: one that isn't among them, or is among them and has itself an
/// answer which stays.
pub(super) async fn answered(db: &impl ConnectionTrait, ids: &[EventId]) -> Result<HashSet<EventId>, DbErr> {
    let among: HashSet<&EventId> = ids.iter().collect();
    let mut stays = HashSet::new();
    let mut asked: HashMap<EventId, EventId> = HashMap::new();
    for piece in pieces(ids) {
        let sql = format!("SELECT id, rid FROM event WHERE rid IN ({})", marks(rounded(piece.len())));
        let mut values = piece.iter().map(|id| id.as_str().into()).collect();
        fill(&mut values, piece.len(), 1);
        for row in db.rows(sql, values).await? {
            let answer = EventId::from_stored(row.try_get_by_index::<String>(0)?);
            let question = EventId::from_stored(row.try_get_by_index::<String>(1)?);
            if among.contains(&answer) {
                asked.insert(answer, question);
            } else {
                stays.insert(question);
            }
        }
    }
    // What stays is itself an answer that stays.
    let mut next: Vec<EventId> = stays.iter().cloned().collect();
    while let Some(answer) = next.pop() {
        if let Some(question) = asked.get(&answer).filter(|question| !stays.contains(*question)) {
            stays.insert(question.clone());
            next.push(question.clone());
        }
    }
    Ok(stays)
}

/// Whether a binding of this group wants what has this domain, name and number.
fn wants(bindings: &[Binding], facts: &Facts, seq: u64) -> impl Iterator<Item = String> {
    let mut groups: Vec<String> = bindings
        .iter()
        .filter(|binding| binding.wants(&facts.domain, &facts.name, seq))
        .map(|binding| binding.group.clone())
        .collect();
    groups.sort_unstable();
    groups.dedup();
    groups.into_iter()
}
