//! What waits for another attempt and what is dead, over all groups, counted now and then for the metrics: up to a number, so
//! that it costs little however much there is.

use sea_orm::DbErr;

use super::{
    Store, StoreError,
    adoption::served,
    engine::Ask,
    sql::{refused, signed, unsigned},
};
use crate::event::Uid;

/// What is counted, at most, of each kind: more than any alarm needs.
const MOST_COUNTED: u64 = 100_000;

/// What waits for another attempt, of one kind of group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retrying {
    /// How many events, up to 100,000.
    pub events: u64,
    /// The oldest of those that were counted, by number.
    pub oldest: Option<u64>,
}

/// How all groups of a hub stand, the default one by itself and the others together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// What waits for another attempt in the default group.
    pub retrying: Retrying,
    /// In named groups, once for each.
    pub retrying_named: Retrying,
    /// What is dead in the default group: how many events, up to 100,000.
    pub dead: u64,
    /// In named groups, once for each.
    pub dead_named: u64,
}

impl Store {
    /// Counts what waits for another attempt and what is dead on a hub, and on those that it has adopted, by indexes alone and up to 100,000 of each.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn census(&self, hub: &Uid) -> Result<Census, StoreError> {
        let count = async {
            let hubs = served(&self.readers, hub).await?;
            Ok(Census {
                retrying: self.count_some(hub, &retrying("grp = ''")).await?,
                retrying_named: self.count_some(hub, &retrying("grp > ''")).await?,
                dead: self.count_dead(&hubs, DEAD).await?,
                dead_named: self.count_dead(&hubs, DEAD_NAMED).await?,
            })
        };
        count.await.map_err(refused("count what waits for another attempt and what is dead"))
    }

    /// The sum over these hubs, up to that number.
    async fn count_dead(&self, hubs: &[Uid], rows: &str) -> Result<u64, DbErr> {
        let mut dead = 0;
        for hub in hubs {
            dead += self.count_some(hub, rows).await?.events;
        }
        Ok(dead.min(MOST_COUNTED))
    }

    /// How many rows there are, up to a number, and the lowest `seq` of those.
    async fn count_some(&self, hub: &Uid, rows: &str) -> Result<Retrying, DbErr> {
        let sql = format!("SELECT count(*), min(counted.seq) FROM ({rows} LIMIT ?) counted");
        let values = vec![hub.as_str().into(), signed(MOST_COUNTED).into()];
        let Some(row) = self.readers.row(sql, values).await? else {
            return Ok(Retrying::default());
        };
        let oldest = row.try_get_by_index::<Option<i64>>(1)?;
        Ok(Retrying { events: unsigned(row.try_get_by_index(0)?), oldest: oldest.map(unsigned) })
    }
}

/// By the index `v1_retry_due`, so that those come first that are due first.
fn retrying(groups: &str) -> String {
    format!("SELECT seq FROM v1_retry @index(v1_retry_due) WHERE hub = ? AND {groups} ORDER BY hub, grp, due")
}

/// As [`DeadRows`](super::dead::DeadRows) has them.
const DEAD: &str = "SELECT seq FROM event_published @index(event_published_failed) WHERE v1_hub = ? AND failed IS NOT NULL AND success IS NULL";

/// The same: what ended before the base round of its group doesn't count, nor what is left of a removed one.
const DEAD_NAMED: &str = "SELECT d.seq FROM v1_outcome d @index(v1_outcome_dead) WHERE d.hub = ? AND d.grp > '' AND d.dead IS NOT NULL \
    AND d.round >= (SELECT g.round FROM v1_group g WHERE g.name = d.grp)";

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    #[tokio::test]
    async fn it_reads_indexes_alone() {
        if engines::is_only_for_sqlite("EXPLAIN QUERY PLAN is SQLite's") {
            return;
        }
        let store = fresh().await;
        for (rows, index) in [
            (retrying("grp = ''"), "v1_retry_due (hub=? AND grp=?)"),
            (retrying("grp > ''"), "v1_retry_due (hub=? AND grp>?)"),
            (DEAD.to_owned(), "event_published_failed (v1_hub=?)"),
            (DEAD_NAMED.to_owned(), "v1_outcome_dead (hub=? AND grp>?)"),
        ] {
            let sql = format!("EXPLAIN QUERY PLAN {rows} LIMIT ?");
            let values = vec![hub().as_str().into(), 1.into()];
            let plan = store.writer.raw().rows(sql, values).await.unwrap();
            let plan: Vec<String> = plan.iter().map(|row| row.try_get_by_index(3).unwrap()).collect();
            assert!(plan[0].contains(index), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
        }
        assert_eq!(store.census(&hub()).await.unwrap(), Census::default());
    }
}
