//! What stands in a database, counted: rows by table, and events by state.

use std::collections::BTreeMap;

use sea_orm::{ConnectionTrait, DbErr};

use super::{
    super::{
        engine::{Ask, number},
        sql::unsigned,
    },
    table::{TABLES, Table},
};

/// The states: of what, or none if the first column is a group's name; and a statement that gives that, a word and a number.
const STATES: [(Option<&str>, &str); 5] = [
    (
        Some("published"),
        "SELECT '', CASE WHEN p.success IS NOT NULL THEN 'success' WHEN p.failed IS NOT NULL THEN 'dead' \
         WHEN p.orphan IS NOT NULL THEN 'expired' WHEN p.consumed_spoke IS NOT NULL THEN 'claimed' \
         ELSE 'pending' END AS state, count(*) FROM event_published p GROUP BY state",
    ),
    (
        Some("stored"),
        "SELECT '', 'unpublished', count(*) FROM event e \
         WHERE NOT EXISTS (SELECT 1 FROM event_published p WHERE p.event_id = e.id)",
    ),
    (
        Some("scheduled"),
        "SELECT '', CASE WHEN s.executed IS NULL THEN 'waiting' ELSE 'run' END AS state, count(*) \
         FROM event_scheduled s GROUP BY state",
    ),
    (
        None,
        "SELECT o.grp, CASE WHEN o.outcome = 'dead' AND o.dead IS NULL THEN 'redriven' ELSE o.outcome END AS state, \
         count(*) FROM v1_outcome o GROUP BY o.grp, state",
    ),
    (None, "SELECT r.grp, 'retrying', count(*) FROM v1_retry r GROUP BY r.grp"),
];

/// The rows of a table.
pub(super) async fn rows(db: &impl ConnectionTrait, table: &Table) -> Result<u64, DbErr> {
    let only = if table.only.is_empty() { String::new() } else { format!(" WHERE {}", table.only) };
    let row = db.row(format!("SELECT count(*) FROM {} t{only}", table.of), Vec::new()).await?;
    row.map_or(Ok(0), |row| number(&row, 0).map(unsigned))
}

/// The first table that has rows, and how many.
pub(super) async fn first_used(db: &impl ConnectionTrait) -> Result<Option<(&'static str, u64)>, DbErr> {
    for table in TABLES.iter().filter(|table| table.is_on(db.engine())) {
        let rows = rows(db, table).await?;
        if rows > 0 {
            return Ok(Some((table.of, rows)));
        }
    }
    Ok(None)
}

/// How many are in which state; those of which there are none are left out.
pub(super) async fn states(db: &impl ConnectionTrait) -> Result<BTreeMap<String, u64>, DbErr> {
    let mut states = BTreeMap::new();
    for (of, sql) in STATES {
        for row in db.rows(sql, Vec::new()).await? {
            let (group, state): (String, String) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
            let count = unsigned(number(&row, 2)?);
            let of = match of {
                Some(of) => of.to_owned(),
                None if group.is_empty() => "default group".to_owned(),
                None => format!("group {group}"),
            };
            if count > 0 {
                states.insert(format!("{of}, {state}"), count);
            }
        }
    }
    Ok(states)
}
