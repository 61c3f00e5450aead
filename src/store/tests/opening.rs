//! Opening and reopening, settings, trouble with files.

use super::*;
use crate::event::code;

async fn pragma(db: &impl ConnectionTrait, name: &str) -> String {
    let row = db.query_one_raw(sql::statement(format!("PRAGMA {name}"), Vec::new())).await.unwrap().unwrap();
    row.try_get_by_index::<String>(0)
        .or_else(|_| row.try_get_by_index::<i64>(0).map(|n| n.to_string()))
        .unwrap()
}

#[tokio::test]
async fn the_live_writer_syncs_before_it_answers() {
    if engines::is_only_for_sqlite("settings of SQLite's connections") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    assert_eq!(store.synchronous().await.unwrap(), 2);
    assert_eq!(pragma(store.writer.raw(), "journal_mode").await, "wal");
    assert_eq!(pragma(store.writer.raw(), "wal_autocheckpoint").await, "2000");
}

#[tokio::test]
async fn relaxed_durability_is_normal() {
    if engines::is_only_for_sqlite("settings of SQLite's connections") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&StoreConfig { durability: Durability::Relaxed, ..in_file(&folder) }).await;
    assert_eq!(store.synchronous().await.unwrap(), 1);
}

#[tokio::test]
async fn foreign_keys_hold_on_every_connection() {
    if engines::is_only_for_sqlite("settings of SQLite's connections") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    assert_eq!(pragma(store.writer.raw(), "foreign_keys").await, "1");
    assert_eq!(pragma(&store.readers, "foreign_keys").await, "1");
}

#[tokio::test]
async fn readers_cannot_write() {
    if engines::is_only_for_sqlite("settings of SQLite's connections") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    assert!(store.readers.execute_unprepared("DELETE FROM event").await.is_err());
}

#[tokio::test]
async fn a_reopened_database_has_kept_everything() {
    let folder = tempfile::tempdir().unwrap();
    let config = engines::kept(&folder).await;
    let store = file(&config).await;
    one(&store, publish(event("e-1"), 7)).await.unwrap();
    one(&store, finish("e-1", 7, Outcome::Success)).await.unwrap();
    one(&store, publish(event("e-2"), 8)).await.unwrap();
    let bound = one(&store, Write::Bind(binding("", "*", "*", 1))).await.unwrap();
    // Not closed: as after a crash.
    drop(store);

    let store = Store::open(&config).await.unwrap();
    assert_eq!(store.event(&id("e-1")).await.unwrap(), Some(event("e-1")));
    assert_eq!(store.trace(&id("e-1")).await.unwrap().unwrap().1.state, "success");
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 8);
    let (open, _) = open_page(&store, 0, 10, 1_000_000).await;
    assert_eq!(open.iter().map(|open| open.seq).collect::<Vec<_>>(), [8]);
    assert_eq!(store.bindings().await.unwrap().into_iter().map(Written::Bound).collect::<Vec<_>>(), [bound]);
    assert_eq!(store.register_hub(&hub_row("HUB-1")).await.unwrap(), 2);
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_for_this_user_alone() {
    if engines::is_only_for_sqlite("files of the database") {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inner/eventflow.db");
    let store = file(&StoreConfig::new(Place::File(path.clone()))).await;
    one(&store, publish(event("e-1"), 1)).await.unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for name in ["eventflow.db", "eventflow.db-wal", "eventflow.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = engines::kept(&folder).await;
    let store = file(&config).await;
    sql(&store, "INSERT INTO v1_migration (version, applied_at) VALUES ('m29990101_000001_later', 0)").await;
    drop(store);
    let error = Store::open(&config).await.unwrap_err();
    assert_eq!(error.code(), code::DB_SCHEMA_NEWER);
    assert!(error.to_string().contains("m29990101_000001_later"), "{error}");
    assert!(error.to_string().contains(&config.place.to_string()), "{error}");
}

#[tokio::test]
async fn a_folder_that_is_a_file_is_named() {
    if engines::is_only_for_sqlite("files of the database") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for path in [file.join("eventflow.db"), file.join("deeper/eventflow.db"), folder.path().to_owned()] {
        let error = Store::open(&StoreConfig::new(Place::File(path.clone()))).await.unwrap_err();
        assert_eq!(error.code(), code::DATA_FOLDER, "{}", path.display());
        assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    if engines::is_only_for_sqlite("files of the database") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = in_file(&folder);
    std::fs::write(folder.path().join("eventflow.db"), "not a database".repeat(1_000)).unwrap();
    let error = Store::open(&config).await.unwrap_err();
    assert_eq!(error.code(), code::DB_FAULT);
    assert!(error.to_string().contains("eventflow.db"), "{error}");
}

#[tokio::test]
async fn a_database_that_npm_made_is_taken_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let config = engines::kept(&folder).await;
    let store = file(&config).await;
    sql(&store, "INSERT INTO event (id, domain, pid, name, data) VALUES (' odd ', 'd', 'p', 'n', '{ }')")
        .await;
    sql(&store, "INSERT INTO event_published (event_id, publisher) VALUES (' odd ', 'NPM')").await;
    let (event, trace) = store.trace(&EventId::from_stored(" odd ")).await.unwrap().unwrap();
    assert_eq!(event.data.as_str(), "{ }");
    assert!((time::now() - event.timestamp).abs() < 60_000);
    assert_eq!((trace.state.as_str(), trace.seq), ("orphan", None));
}

#[tokio::test]
async fn what_goes_into_a_deleted_file_is_not_acknowledged() {
    if engines::is_only_for_sqlite("files of the database") {
        return;
    }
    for file_name in ["", "-wal"] {
        let folder = tempfile::tempdir().unwrap();
        let config = in_file(&folder);
        let store = file(&config).await;
        one(&store, publish(event("e-1"), 7)).await.unwrap();
        std::fs::remove_file(format!("{}{file_name}", config.place)).unwrap();
        let error = one(&store, publish(event("e-2"), 8)).await.unwrap_err();
        assert_eq!(error.code(), code::DB_UNAVAILABLE, "{error}");
        assert!(error.is_retryable() && error.to_string().contains("deleted or replaced"), "{error}");
    }
}

#[tokio::test]
async fn a_damaged_file_is_named() {
    if engines::is_only_for_sqlite("files of the database") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = in_file(&folder);
    file(&config).await.close().await;
    let path = config.place.to_string();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..20_000].fill(0xA5);
    std::fs::write(&path, bytes).unwrap();
    let error = Store::open(&config).await.unwrap_err();
    assert_eq!(error.code(), code::DB_FAULT);
    assert!(error.to_string().contains(&path) && error.to_string().contains("backup"), "{error}");
}

#[tokio::test]
async fn a_server_outside_utc_is_refused_unless_it_is_meant() {
    let place = engines::empty().await;
    let opened = Store::open(&StoreConfig::new(place.clone())).await;
    if !engines::is_zoned() {
        opened.unwrap();
        return;
    }
    let error = opened.unwrap_err();
    assert_eq!(error.code(), code::INVALID_CONFIG);
    let text = error.to_string();
    assert!(text.contains("+05:30") && text.contains(&place.to_string()), "{text}");
    assert!(text.contains("default_time_zone") && text.contains("mysql.npm_time_zone"), "{text}");
    Store::open(&engines::config(place)).await.unwrap();
}
