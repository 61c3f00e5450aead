//! What is moved, compared with the schema; and rows of all tables, there and back.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::ConnectionTrait;

use super::{
    super::{
        StoreError,
        engine::Engine,
        tests::{AT, binding, event, finish, fresh, hub, id, one, publish, retry, rows, sql, texts},
        *,
    },
    table::{LEFT_OUT, LEFT_OUT_COLUMNS, TABLES},
};
use crate::event::{Outcome, Uid};

/// All columns of all tables of the database, but for those of SQLite itself.
async fn schema(store: &Store) -> BTreeMap<String, BTreeSet<String>> {
    let query = match store.writer.engine() {
        Engine::Sqlite => {
            "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
        }
        Engine::Postgres => {
            "SELECT concat(table_name, ''), concat(column_name, '') FROM information_schema.columns \
             WHERE table_schema = current_schema()"
        }
        Engine::MySql => {
            "SELECT concat(table_name, ''), concat(column_name, '') FROM information_schema.columns \
             WHERE table_schema = database()"
        }
    };
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows(store, query).await {
        let (table, column): (String, String) =
            (row.try_get_by_index(0).unwrap(), row.try_get_by_index(1).unwrap());
        tables.entry(table).or_default().insert(column);
    }
    tables
}

/// A new table, or a new column, is forgotten by nobody: it is moved, or this list says that it isn't.
#[tokio::test]
async fn every_table_and_column_of_the_schema_is_moved_or_left_out_by_name() {
    let store = fresh().await;
    let engine = store.writer.engine();
    let mut moved: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for table in TABLES.iter().filter(|table| table.is_on(engine)) {
        let columns = table.columns.iter().map(|column| column.name.to_owned());
        moved.entry(table.of.to_owned()).or_default().extend(columns);
    }
    for (table, column) in LEFT_OUT_COLUMNS {
        moved.entry(table.to_owned()).or_default().insert(column.to_owned());
    }
    let mut found = schema(&store).await;
    for table in LEFT_OUT {
        assert!(found.remove(table).is_some(), "{table} is left out, and isn't there");
    }
    assert_eq!(moved, found);
}

/// What an export of the store writes.
async fn exported(store: &Store) -> (TransferHead, Vec<Vec<u8>>) {
    let head = store.transfer_head("01J8Z3N0Q4X5V6W7Y8Z9A0B1C2".to_owned()).await.unwrap();
    let mut lines = Vec::new();
    let mut place = Some(TransferPlace::START);
    while let Some(at) = place {
        let page = store.transfer_page(&at).await.unwrap();
        lines.extend(page.lines);
        place = page.next;
    }
    (head, lines)
}

async fn imported(store: &Store, head: &TransferHead, lines: &[Vec<u8>]) -> TransferLayout {
    let layout = TransferLayout::of(head).unwrap();
    let done = store.import_begin(head).await.unwrap();
    let batch: Vec<_> = lines.iter().skip(done as usize).map(|line| layout.parse(line).unwrap()).collect();
    store.import_rows(&layout, head, batch, lines.len() as u64).await.unwrap();
    layout
}

/// One row or more of each table.
async fn filled() -> Store {
    let store = fresh().await;
    let answer = crate::event::Event { rid: Some(id("zz-asked")), ..event("answer") };
    store
        .commit(vec![
            publish(event("zz-asked"), 1),
            publish(answer, 2),
            publish(event("done"), 3),
            publish(event("failed"), 4),
            publish(event("again"), 5),
            Write::Bind(binding("", "orders", "*", 0)),
            Write::Bind(binding("mail", "orders.>", "*", 7)),
            Write::Cursor { hub: hub(), group: "mail".into(), seq: 1, known: None },
        ])
        .await;
    one(&store, finish("done", 3, Outcome::Success)).await.unwrap();
    one(&store, finish("failed", 4, Outcome::Dead)).await.unwrap();
    one(&store, retry("again", 5, "", (1, 1), AT + 60_000)).await.unwrap();
    sql(
        &store,
        "INSERT INTO event_cpid (event_id, domain, cpid) VALUES ('done', 'parcels', 'p-1'); \
         INSERT INTO event_eid (event_id, eid) VALUES ('done', 'customer-1'); \
         INSERT INTO v1_claim (event_id) VALUES ('again'); \
         INSERT INTO event_scheduled (event_id, scheduled) VALUES ('done', '2026-11-30 09:25:13'); \
         INSERT INTO v1_schedule (event_id, due) VALUES ('done', 1796030712007); \
         INSERT INTO v1_occurrence (event_id, name, due) VALUES ('done', 'nightly', NULL); \
         INSERT INTO v1_binding_start (binding_id, place, domain, start_seq) VALUES (1, 0, 'a', 3); \
         INSERT INTO v1_outcome (event_id, grp, round, hub, seq, outcome, consumer, ended, dead) \
         VALUES ('done', 'mail', 1, 'HUB-1', 3, 'dead', 'S', '2026-11-30 09:25:12', '2026-11-30 09:25:12'); \
         INSERT INTO v1_removed (hub, domain, first_seq, last_seq, events, removed) \
         VALUES ('HUB-1', 'old', 1, 2, 2, '2026-11-30 09:25:12'); \
         INSERT INTO v1_recurring (name, domain, event, pid, data, rule, zone, missed, window_ms, paused, due, ran, \
         left_out, publisher, made) VALUES ('nightly', 'a', 'b', NULL, '{}', '0 0 * * * *', 'UTC', 'once', 0, TRUE, \
         NULL, 3, 0, 'S', 5)",
    )
    .await;
    store
}

#[tokio::test]
async fn what_goes_out_comes_in_and_goes_out_again_as_it_was() {
    let store = filled().await;
    let (head, lines) = exported(&store).await;
    assert_eq!(head.rows(), lines.len() as u64);
    for table in &head.tables {
        let is_empty = ["certificate", "v1_hub_lease"].contains(&table.name.as_str());
        assert!(table.rows > 0 || is_empty, "{} has no row in this test", table.name);
    }
    let states: Vec<_> = head.states.iter().map(|(state, count)| format!("{state} {count}")).collect();
    assert_eq!(
        states,
        [
            "default group, retrying 1",
            "group mail, dead 1",
            "published, dead 1",
            "published, pending 3",
            "published, success 1",
            "scheduled, waiting 1",
        ]
    );

    let other = Store::open(&tests::engines::config(tests::engines::empty().await)).await.unwrap();
    let layout = imported(&other, &head, &lines).await;
    assert!(matches!(other.transfer_head(String::new()).await, Err(StoreError::ImportUnfinished)));
    let (rows, states) = other.import_tally(&layout).await.unwrap();
    let marker = |table: &TransferTable| table.rows + u64::from(table.name == "v1_marker");
    assert_eq!(rows, head.tables.iter().map(marker).collect::<Vec<_>>());
    assert_eq!(states, head.states);
    other.import_end(&head).await.unwrap();

    let (again, same) = exported(&other).await;
    let leases = |line: &&Vec<u8>| !line.starts_with(b"[\"v1_hub_lease\"");
    let text = |line: &Vec<u8>| String::from_utf8(line.clone()).unwrap();
    assert_eq!(
        same.iter().filter(leases).map(text).collect::<Vec<_>>(),
        lines.iter().filter(leases).map(text).collect::<Vec<_>>()
    );
    assert_eq!((again.hubs, again.states), (head.hubs, head.states));

    // The database goes on where it was: numbers that it counts up, and its hub.
    let Ok(Written::Bound(bound)) = one(&other, Write::Bind(binding("new", "a", "*", 0))).await else {
        panic!("it is bound");
    };
    let highest = tests::number(&other, "SELECT max(id) FROM v1_binding WHERE grp <> 'new'").await;
    assert!(bound.id > highest, "{} after {highest}", bound.id);
    assert_eq!(other.take_hub(&tests::hub_row("HUB-1"), &seat()).await.unwrap(), 2);
    assert_eq!(other.last_seq(&Uid::parse("HUB-1").unwrap()).await.unwrap(), 5);
}

fn seat() -> Seat {
    Seat { host: "here".to_owned(), folder: "/data".to_owned() }
}

#[tokio::test]
async fn an_import_goes_on_where_it_was_and_takes_only_an_empty_database() {
    let store = filled().await;
    let (head, lines) = exported(&store).await;
    assert!(matches!(store.import_begin(&head).await, Err(StoreError::NotEmpty { .. })));

    let other = Store::open(&tests::engines::config(tests::engines::empty().await)).await.unwrap();
    let layout = TransferLayout::of(&head).unwrap();
    assert_eq!(other.import_begin(&head).await.unwrap(), 0);
    let rows = |lines: &[Vec<u8>]| lines.iter().map(|line| layout.parse(line).unwrap()).collect::<Vec<_>>();
    other.import_rows(&layout, &head, rows(&lines[..9]), 9).await.unwrap();
    assert_eq!(other.import_begin(&head).await.unwrap(), 9);
    let another = TransferHead { id: "01J8Z3N0Q4X5V6W7Y8Z9A0B1C3".to_owned(), ..head.clone() };
    assert!(matches!(other.import_begin(&another).await, Err(StoreError::ImportUnfinished)));
    assert!(other.is_import_unfinished().await.unwrap());

    // A row that the database doesn't take is named, and none of its batch is in.
    let mut wrong = lines[9..].to_vec();
    wrong.insert(1, lines[8].clone());
    let refused = other.import_rows(&layout, &head, rows(&wrong), 99).await.unwrap_err();
    assert_eq!(refused.at, Some(1), "{}", refused.error);
    assert_eq!(other.import_begin(&head).await.unwrap(), 9);
    other.import_rows(&layout, &head, rows(&lines[9..]), lines.len() as u64).await.unwrap();
    assert_eq!(other.import_tally(&layout).await.unwrap().1, head.states);
    other.import_end(&head).await.unwrap();
    assert!(!other.is_import_unfinished().await.unwrap());
}

#[tokio::test]
async fn pages_are_cut_by_the_size_of_their_rows_and_begin_behind_any_line() {
    let store = fresh().await;
    // 3 MiB each: one page holds one of them.
    let data = format!("\"{}\"", "x".repeat(3 << 20));
    let large = |id: &str| crate::event::Event {
        data: crate::event::Data::parse(data.clone()).unwrap(),
        ..event(id)
    };
    store.commit(vec![publish(large("a"), 1), publish(large("b"), 2), publish(event("c"), 3)]).await;
    let events: Vec<Vec<u8>> = {
        let mut pages = Vec::new();
        let mut place = Some(TransferPlace::START);
        while let Some(at) = place {
            let page = store.transfer_page(&at).await.unwrap();
            let events = page.lines.iter().filter(|line| line.starts_with(b"[\"event\""));
            let events: Vec<Vec<u8>> = events.cloned().collect();
            if !events.is_empty() {
                pages.push(events);
            }
            place = page.next;
        }
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        pages.concat()
    };
    let place = TransferPlace::after(&events[0]).unwrap();
    assert_eq!(store.transfer_page(&place).await.unwrap().lines, events[1..]);
    for damaged in [&b""[..], b"[]", b"{}", b"[\"event\"]", b"[\"nothing\",1]", b"[\"event\",1,1,1,1,1,1]"] {
        assert_eq!(TransferPlace::after(damaged), None);
    }
}

#[tokio::test]
async fn lines_that_are_none_are_told_apart() {
    let store = fresh().await;
    let (head, _) = exported(&store).await;
    let layout = TransferLayout::of(&head).unwrap();
    for (line, told) in [
        (&b"nonsense"[..], "no JSON array"),
        (b"[]", "no table's name"),
        (b"[\"nothing\",1]", "names no table \"nothing\""),
        (b"[\"v1_hub_seq\",\"a\"]", "it has 1 values, and a row of v1_hub_seq has 2"),
        (b"[\"v1_hub_seq\",\"a\",\"b\"]", "its seq is not a whole number"),
        (b"[\"v1_hub_seq\",1,1]", "its hub_id is not a text"),
    ] {
        let why = layout.parse(line).unwrap_err();
        assert!(why.contains(told), "{why}");
    }
    let mut newer = head.clone();
    newer.tables[0].columns.push("shoe_size".to_owned());
    assert!(TransferLayout::of(&newer).unwrap_err().contains("shoe_size"));
    let newer = TransferHead { format: 2, ..head };
    assert!(TransferLayout::of(&newer).unwrap_err().contains("its format is 2"));
}

#[tokio::test]
async fn a_database_that_is_not_up_to_date_is_refused_unless_it_may_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let config = tests::engines::kept(&folder).await;
    let status = Store::migration_status(&config).await.unwrap();
    let is_new = status.applied.is_empty();
    let untouched = StoreConfig { migrate: false, ..config.clone() };
    if is_new {
        let error = Store::open(&untouched).await.unwrap_err();
        assert!(matches!(&error, StoreError::SchemaPending { pending, .. } if *pending == status.pending));
        assert!(error.to_string().contains("`eventflow migrate up`"), "{error}");
    }
    let store = Store::open(&config).await.unwrap();
    let status = Store::migration_status(&config).await.unwrap();
    assert_eq!((status.pending.len(), status.unknown()), (0, None));
    assert_eq!(status.npm_tables.len(), 8);
    assert!(status.applied.iter().all(|applied| applied.known && applied.at > 1_790_000_000_000));
    Store::open(&untouched).await.unwrap().close().await;

    sql(&store, "INSERT INTO v1_migration (version, applied_at) VALUES ('m29990101_000001_later', 0)").await;
    let status = Store::migration_status(&config).await.unwrap();
    assert_eq!(status.unknown().map(|newer| newer.name.as_str()), Some("m29990101_000001_later"));
    for config in [&untouched, &config] {
        assert!(matches!(Store::open(config).await, Err(StoreError::SchemaNewer { .. })));
    }
    store.writer.raw().execute_unprepared("DELETE FROM v1_migration WHERE version > 'm2999'").await.unwrap();
    assert_eq!(
        texts(&store, "SELECT version FROM v1_migration WHERE version > 'm2999'").await,
        Vec::<String>::new()
    );
}
