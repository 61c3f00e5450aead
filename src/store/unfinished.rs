//! Which groups still want an event: what retention and expiry must leave alone.

use std::collections::{BTreeMap, HashMap};

use sea_orm::{ConnectionTrait, DbErr, QueryResult, Value};

use super::{
    Binding, Store, StoreError,
    engine::{Ask, small},
    sql::{fill, marks, pieces, refused, rounded, unsigned},
    time,
};
use crate::event::EventId;

impl Store {
    /// Those of these events that some group isn't done with, each with the groups (empty is the default one): a
    /// binding wants it and it has no outcome there, it waits for another attempt, or an npm spoke has claimed it and
    /// said nothing since. An event that isn't published is not among them.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn unfinished_groups(
        &self,
        ids: &[EventId],
    ) -> Result<BTreeMap<EventId, Vec<String>>, StoreError> {
        let bindings = self.bindings().await?;
        let bases = self.base_rounds().await?;
        let mut unfinished = BTreeMap::new();
        for piece in pieces(ids) {
            let read = self.unfinished(piece, &bindings, &bases, &mut unfinished);
            read.await.map_err(refused("look which groups are done with events"))?;
        }
        Ok(unfinished)
    }

    async fn unfinished(
        &self,
        ids: &[EventId],
        bindings: &[Binding],
        bases: &HashMap<String, u32>,
        unfinished: &mut BTreeMap<EventId, Vec<String>>,
    ) -> Result<(), DbErr> {
        let standings = standings(&self.readers, ids).await?;
        let marks = marks(rounded(ids.len()));
        // What no hub of ours has dispatched has no number: numbers are microseconds, so its time will do.
        let sql = format!(
            "SELECT e.id, e.domain, e.name, p.seq, @utc(p.published), p.consumed_spoke IS NOT NULL, \
             p.success IS NOT NULL OR p.failed IS NOT NULL OR p.orphan IS NOT NULL \
             FROM event e @join event_published p ON p.event_id = e.id WHERE e.id IN ({marks})"
        );
        for row in self.readers.rows(sql, values(ids)).await? {
            let id = EventId::from_stored(row.try_get_by_index::<String>(0)?);
            let (domain, name): (String, String) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
            let seq = match row.try_get_by_index::<Option<i64>>(3)? {
                Some(seq) => seq,
                None => time::millis(row.try_get_by_index(4)?).saturating_mul(1_000),
            };
            let (claimed, ended): (bool, bool) = (row.try_get_by_index(5)?, row.try_get_by_index(6)?);
            let of = standings.get(&id);
            let is_done = |group: &str| match of.and_then(|of| of.get(group)) {
                _ if group.is_empty() => ended,
                Some(standing) => standing.ended >= bases.get(group).copied().unwrap_or(1),
                None => false,
            };
            let mut groups: Vec<&str> = of
                .into_iter()
                .flatten()
                .filter(|(group, standing)| standing.waits && !(group.is_empty() && ended))
                .map(|(group, _)| group.as_str())
                .collect();
            if claimed && !ended {
                groups.push("");
            }
            let wanted = bindings.iter().filter(|binding| binding.wants(&domain, &name, unsigned(seq)));
            groups.extend(wanted.map(|binding| binding.group.as_str()).filter(|group| !is_done(group)));
            groups.sort_unstable();
            groups.dedup();
            if !groups.is_empty() {
                unfinished.insert(id, groups.into_iter().map(str::to_owned).collect());
            }
        }
        Ok(())
    }

    /// The base round of each group that has a row.
    pub(super) async fn base_rounds(&self) -> Result<HashMap<String, u32>, StoreError> {
        Ok(self.groups().await?.into_iter().map(|group| (group.name, group.round)).collect())
    }
}

/// How an event stands in a group.
#[derive(Default)]
struct Standing {
    /// The last round that has its outcome; 0: none.
    ended: u32,
    /// It waits for another attempt.
    waits: bool,
}

async fn standings(
    db: &impl ConnectionTrait,
    ids: &[EventId],
) -> Result<HashMap<EventId, HashMap<String, Standing>>, DbErr> {
    let mut all: HashMap<EventId, HashMap<String, Standing>> = HashMap::new();
    let marks = marks(rounded(ids.len()));
    let key = |row: &QueryResult| {
        Ok::<_, DbErr>((
            EventId::from_stored(row.try_get_by_index::<String>(0)?),
            row.try_get_by_index::<String>(1)?,
        ))
    };
    let outcomes = format!("SELECT event_id, grp, round FROM v1_outcome WHERE event_id IN ({marks})");
    for row in db.rows(outcomes, values(ids)).await? {
        let (id, group) = key(&row)?;
        let standing = all.entry(id).or_default().entry(group).or_default();
        standing.ended = standing.ended.max(small(&row, 2)?);
    }
    let retries = format!("SELECT event_id, grp FROM v1_retry WHERE event_id IN ({marks})");
    for row in db.rows(retries, values(ids)).await? {
        let (id, group) = key(&row)?;
        all.entry(id).or_default().entry(group).or_default().waits = true;
    }
    Ok(all)
}

fn values(ids: &[EventId]) -> Vec<Value> {
    let mut values = ids.iter().map(|id| id.as_str().into()).collect();
    fill(&mut values, ids.len(), 1);
    values
}
