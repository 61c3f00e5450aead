//! Schedules that others put into the database, beside the hub.

use std::path::Path;

use sea_orm::{ConnectionTrait, DatabaseConnection};

use super::*;

/// Another connection, as an application or an npm spoke has.
async fn other(database: &Path) -> DatabaseConnection {
    engine::open(database).await
}

/// The three rows of an npm spoke, due now and so many seconds.
async fn npm_schedule(db: &DatabaseConnection, id: &str, seconds: i64) {
    let insert = format!(
        "BEGIN IMMEDIATE; \
         INSERT INTO event (id, domain, pid, name, data) VALUES ('{id}', 'alarms', 'p', 'rang', '1'); \
         INSERT INTO event_published (event_id, publisher) VALUES ('{id}', 'NPM-1'); \
         INSERT INTO event_scheduled (event_id, scheduled) \
         VALUES ('{id}', strftime('%Y-%m-%d %H:%M:%S', 'now', '{seconds} seconds')); COMMIT"
    );
    db.execute_unprepared(&insert).await.unwrap();
}

#[tokio::test]
async fn rows_that_others_insert_run_once_within_a_look() {
    if engine::is_only_for_sqlite("rows that it inserts are written in SQLite's words") {
        return;
    }
    let hub = TestHub::with(|config| config.schedules.poll = Duration::from_millis(100)).await;
    let spoke = hub.spoke().await;
    let seen = watch(&spoke).await;
    let db = other(&hub.database()).await;
    for (id, seconds) in [("past", -100), ("now", 0), ("soon", 1), ("far", 1_000)] {
        npm_schedule(&db, id, seconds).await;
    }
    until("those that are due came", || async { seen.lock().unwrap().len() == 3 }).await;
    let (_, trace) = spoke.show("soon").await.unwrap();
    assert_eq!(trace.publisher.as_ref().map(|uid| uid.as_str()), Some("NPM-1"));
    let due = trace.scheduled.unwrap();
    assert!(i64::try_from(trace.seq.unwrap()).unwrap() >= due * 1_000 && due % 1_000 == 0, "{trace:?}");
    assert_eq!(spoke.show("far").await.unwrap().1.state, "scheduled");
    // A further look finds nothing to run again.
    let looks = || async {
        let scheduler = hub.handle.metrics();
        scheduler.hub.schedules_executed
    };
    npm_schedule(&db, "last", 0).await;
    until("another one", || async { looks().await == 4 }).await;
    assert!(seen.lock().unwrap().values().all(|times| *times == 1));
    db.close().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_great_many_that_are_overdue_run_in_order_while_the_hub_serves_others() {
    if engine::is_only_for_sqlite("rows that it inserts are written in SQLite's words") {
        return;
    }
    let count: u64 = if load::is_long() { 100_000 } else { 5_500 };
    let hub = TestHub::start().await;
    let database = hub.database();
    let folder = hub.stop().await;
    let db = other(&database).await;
    // In no order, over ten seconds, some in the same moment.
    let rows = format!(
        "BEGIN IMMEDIATE; \
         INSERT INTO event (id, domain, pid, name, data) WITH RECURSIVE n(i) AS \
         (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count}) \
         SELECT 'alarm-' || i, 'alarms', 'p', 'rang', '1' FROM n; \
         INSERT INTO event_published (event_id, publisher) SELECT id, 'NPM-1' FROM event; \
         INSERT INTO v1_schedule (event_id, due) \
         SELECT id, unixepoch('now') * 1000 - 60000 + abs(random()) % 10000 FROM event; \
         INSERT INTO event_scheduled (event_id, scheduled) \
         SELECT event_id, strftime('%Y-%m-%d %H:%M:%S', (due + 999) / 1000, 'unixepoch') FROM v1_schedule; COMMIT"
    );
    db.execute_unprepared(&rows).await.unwrap();
    let hub = TestHub::on(folder, |_| {}).await;
    let mut raw = hub.v1().await;
    let began = std::time::Instant::now();
    let deadline = if load::is_long() { 20 * PATIENCE } else { 2 * PATIENCE };
    let mut asked = 0;
    while hub.handle.metrics().hub.schedules_executed < count {
        assert!(began.elapsed() < deadline, "they take too long");
        asked += 1;
        let (req, id) = (asked.to_string(), format!("other-{asked}"));
        let answer = raw.ask(&["publish", &req, &id, "others", "made", "p", "", "1"]).await;
        assert_eq!(answer[2], "committed");
    }
    println!("{count} overdue in {:.1} s, {asked} publishes beside them", began.elapsed().as_secs_f64());
    assert_eq!(hub.handle.metrics().hub.schedules_executed, count);
    let query = "SELECT count(*) FROM (SELECT p.seq, lag(p.seq) OVER (ORDER BY v.due, v.event_id) AS before \
                 FROM event_published p JOIN v1_schedule v USING (event_id)) WHERE seq < before";
    let row = engine::statement(&db, query, []);
    let unordered: i64 = db.query_one_raw(row).await.unwrap().unwrap().try_get_by_index(0).unwrap();
    assert_eq!(unordered, 0, "the oldest first");
    db.close().await.unwrap();
    drop(raw);
    hub.stop().await;
}
