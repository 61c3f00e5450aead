//! With many rows, each read of what waits, retries or is dead finds its rows by an index: no walk through a table, no
//! sorting.

use super::{reads::plan, *};
use crate::store::groups;

/// 200,000 events of two domains: of each twenty, in both groups, one is open, one dead and one waits.
const MANY: &str = "
    WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 200000)
    INSERT INTO event (id, timestamp, domain, pid, name, data)
    SELECT printf('e%07d', n), '2026-11-30 09:25:12.007', 'orders' || (n % 2), 'p' || (n % 1000), 'created', '1' FROM n;
    INSERT INTO event_published (event_id, publisher, hub, consumed_hub, v1_hub, seq, success, failed)
    SELECT id, 'S', 'HUB-1', timestamp, 'HUB-1', CAST(substr(id, 2) AS INTEGER),
        CASE WHEN CAST(substr(id, 2) AS INTEGER) % 20 > 2 THEN timestamp END,
        CASE WHEN CAST(substr(id, 2) AS INTEGER) % 20 = 2 THEN timestamp END FROM event;
    INSERT INTO v1_outcome (event_id, grp, round, hub, seq, outcome, consumer, ended, dead)
    SELECT event_id, 'mail', 1, 'HUB-1', seq, iif(failed IS NULL, 'success', 'dead'), 'S',
        coalesce(failed, success), failed FROM event_published WHERE failed IS NOT NULL OR success IS NOT NULL;
    INSERT INTO v1_retry (event_id, grp, hub, seq, pid, round, attempts, due)
    SELECT p.event_id, g.grp, 'HUB-1', p.seq, e.pid, 1, 1, p.seq * 7 % 1000
    FROM event_published p JOIN event e ON e.id = p.event_id, (SELECT '' AS grp UNION ALL SELECT 'mail') g
    WHERE p.seq % 20 = 1;
    INSERT INTO v1_attempt (event_id, grp, round, number, consumer, reason, error)
    SELECT event_id, grp, 1, 1, 'S', 'nack', '' FROM v1_retry;
    ANALYZE";

#[tokio::test]
async fn the_reads_of_groups_use_their_indexes() {
    if engines::is_only_for_sqlite("EXPLAIN QUERY PLAN is SQLite's") {
        return;
    }
    let store = fresh().await;
    for is_analyzed in [false, true] {
        if is_analyzed {
            sql(&store, MANY).await;
        }
        for name in ["", "mail"] {
            of_group(&store, GroupKey { name, round: 1 }).await;
        }
    }
}

async fn of_group(store: &Store, group: GroupKey<'_>) {
    let hub = hub();
    let is_default = group.is_default();
    let open_index = if is_default { "event_published_open" } else { "event_published_seq" };
    let dead_index = if is_default { "event_published_failed" } else { "v1_outcome_dead" };

    let (text, values) = open::until_sql(&hub, group, 1);
    finds(store, text, values, &[open_index]).await;
    for (domain, name) in [("*", "*"), ("orders1", "created"), ("orders.>", "*.created")] {
        let (domain, name) = (Pattern::parse(domain).unwrap(), Pattern::parse(name).unwrap());
        let patterns = (&domain, &name);
        let mut values = Vec::new();
        let tail = open::open_tail(&hub, group, 1, Some(99), patterns, &mut values);
        let (columns, own) = open::columns(group);
        let values = [own, values, vec![9i64.into()]].concat();
        finds(store, format!("SELECT {columns} {tail} LIMIT ?"), values, &[open_index, "v1_attempt_event"])
            .await;

        let rows = dead::DeadRows { hubs: std::slice::from_ref(&hub), group: group.name };
        let (text, values) = dead::page_of_dead(rows, patterns, 1, Some(99), 9);
        let plan = plan(store, text, values).await;
        // The page itself is what is gone through.
        assert!(plan.contains(dead_index), "{plan}");
        let walks = plan.lines().filter(|line| line.contains("SCAN") && !line.contains("SCAN x")).count();
        assert!(walks == 0 && !plan.contains("ORDER BY"), "{plan}");
    }
    let mut values = Vec::new();
    let rows = open::open_rows(&hub, group, 1, Some(99), &mut values);
    values.push(9i64.into());
    let text = format!("SELECT p.seq, e.domain, e.name {rows} ORDER BY p.seq LIMIT ?");
    finds(store, text, values, &[open_index]).await;

    let mut values = Vec::new();
    let tail = retries::retries_after(&hub, group.name, (5, 5), &mut values);
    values.push(500i64.into());
    let text = format!("SELECT {} {tail} AND r.due <= ? ORDER BY r.due, r.seq LIMIT 9", events::EVENT);
    finds(store, text, values, &["v1_retry_due (hub=? AND grp=? AND due>? AND due<?)"]).await;

    let values = vec![hub.as_str().into(), group.name.into()];
    finds(store, groups::RETRYING.to_owned(), values, &["COVERING INDEX v1_retry_due"]).await;
    let (text, values) = dead::DeadRows { hubs: std::slice::from_ref(&hub), group: group.name }.count();
    finds(store, text, values, &[dead_index]).await;
    let (text, values) = groups::retrying(&hub, group, ("p1", 5), 9);
    finds(store, text, values, &["COVERING INDEX v1_retry_pid"]).await;
    let (text, values) = groups::dead(std::slice::from_ref(&hub), group, 5, 9);
    finds(store, text, values, &[dead_index]).await;
}

/// By these indexes, and without a walk or a sort.
async fn finds(store: &Store, text: String, values: Vec<sea_orm::Value>, indexes: &[&str]) {
    let plan = plan(store, text.clone(), values).await;
    for index in indexes {
        assert!(plan.contains(index), "{text}\n{plan}");
    }
    assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{text}\n{plan}");
}
