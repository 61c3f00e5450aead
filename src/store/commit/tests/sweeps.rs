//! That a sweep of retention is done whole or not at all, and once.

use std::{sync::Arc, time::Duration};

use super::*;
use crate::{
    event::{Domain, Keep, Policies, Policy},
    store::{Sweep, Swept},
};

const HOUR: i64 = 3_600_000;

/// Two of them go and the third expires: all were done with, or left alone, for longer than an hour.
fn wanted() -> Sweep {
    let hour = Keep::For(Duration::from_secs(3_600));
    let policy = Policy { keep_success: hour, expire_after: hour, ..Policy::default() };
    Sweep {
        hub: hub(),
        domain: Domain::parse("orders").unwrap(),
        ids: ["a", "b", "alone"].map(id).to_vec(),
        policies: Arc::new(Policies::new(Vec::new(), policy)),
        at: AT + 100 * HOUR,
    }
}

async fn swept(store: &Store) -> Swept {
    match one(store, Write::Sweep(wanted())).await.unwrap() {
        Written::Swept(swept) => swept,
        other => panic!("{other:?}"),
    }
}

/// Events, their publishings and attempts, those that have expired, and events of which gaps tell.
async fn stands(store: &Store) -> [i64; 5] {
    let text = "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM event_published), \
                (SELECT count(*) FROM v1_attempt), (SELECT count(orphan) FROM event_published), \
                (SELECT coalesce(sum(events), 0) FROM v1_removed)";
    let row = store.readers.query_one_raw(sql::statement(text, vec![])).await.unwrap().unwrap();
    [0, 1, 2, 3, 4].map(|at| row.try_get_by_index(at).unwrap())
}

#[tokio::test]
async fn a_sweep_that_is_cut_off_before_its_commit_leaves_nothing_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    for (at, name) in (1..).zip(["a", "b", "alone"]) {
        one(&store, publish(event(name), at)).await.unwrap();
    }
    for (at, name) in (1..).zip(["a", "b"]) {
        one(&store, Write::Attempt(attempt(name, 1))).await.unwrap();
        one(&store, finish(name, at, Outcome::Success)).await.unwrap();
    }
    let before = [3, 3, 2, 0, 0];
    assert_eq!(stands(&store).await, before);
    // Each table that it writes fails in its turn.
    for write in ["UPDATE ON event_published", "DELETE ON event", "INSERT ON v1_removed"] {
        let trouble =
            format!("CREATE TRIGGER trouble BEFORE {write} BEGIN SELECT RAISE(ABORT, 'trouble'); END");
        // Whole: a trigger has a semicolon within.
        store.writer.raw().execute_unprepared(&trouble).await.unwrap();
        assert_eq!(code_of(&one(&store, Write::Sweep(wanted())).await), code::DB_FAULT, "{write}");
        assert_eq!(stands(&store).await, before, "{write}");
        sql(&store, "DROP TRIGGER trouble").await;
    }
    let transaction = store.writer.begin().await.unwrap();
    let mut answers = vec![Ok(Written::Done)];
    super::super::sweeps::write(&transaction.db(), &[Write::Sweep(wanted())], &mut answers).await.unwrap();
    let Ok(Written::Swept(swept_there)) = &answers[0] else { panic!("{answers:?}") };
    assert_eq!((swept_there.removed.len(), swept_there.expired.len()), (2, 1));
    // The process ends here: nobody commits.
    drop(transaction);
    store.close().await;

    let store = file(&in_file(&folder)).await;
    assert_eq!(stands(&store).await, before);
    assert_eq!(&swept(&store).await, swept_there);
    // And here: nobody was told.
    store.close().await;

    let store = file(&in_file(&folder)).await;
    assert_eq!(stands(&store).await, [1, 1, 0, 1, 2]);
    assert_eq!(swept(&store).await, Swept::default());
}
