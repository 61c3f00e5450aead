//! Certificates are changed under npm's lock, which all databases of a server share, and of each there is one, however
//! many hubs start at once.

use sea_orm::sqlx::{self, Connection, Row};

use crate::{
    scratch::{Scratch, until},
    stack::{deployment::Deployment, spoke::Spoke},
    world::{self, PHRASE, ROUNDS, World, stop},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hubs_at_once_make_one_root_and_one_intermediate() {
    let Some(scratch) = Scratch::new().await else { return };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let start = |at: usize| world::start(&folders[at], &scratch, |_| {});
    let (first, second) = tokio::join!(start(0), start(1));
    assert_eq!(first.bundle().root, second.bundle().root);
    let npm = Deployment::new(&scratch.url, PHRASE, ROUNDS);
    let rows =
        npm.database.rows("select id, version from certificate where version = 0 order by id", &[]).await;
    let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let made = |name: &str| rows.iter().filter(|id| *id == name).count();
    for name in ["EVENTFLOW-ROOT-CA", "EVENTFLOW-HUB", "EVENTFLOW-SPOKE"] {
        assert_eq!(made(name), 1, "{name}: {rows:?}");
    }
    for hub in [&first, &second] {
        assert_eq!(made(hub.info().id.as_str()), 1, "{rows:?}");
    }
    let replaced = "select count(*) from certificate where version > 0";
    assert_eq!(npm.database.get::<i64>(replaced, &[]).await, Some(0), "none was made and thrown away");
    // And npm's spokes find one chain.
    let spoke = Spoke::connected(&npm).await;
    until("it is connected to both", || async { spoke.hubs().await.len() == 2 }).await;
    spoke.close().await;
    stop(first).await;
    stop(second).await;
    npm.database.close().await;
    scratch.drop_database().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_while_npm_holds_the_lock() {
    let Some(scratch) = Scratch::new().await else { return };
    let npm = Deployment::new(&scratch.url, PHRASE, ROUNDS);
    let mut holder = npm.database.own_connection().await;
    let got =
        sqlx::query("select get_lock('eventflow:certificates', 30)").fetch_one(&mut holder).await.unwrap();
    assert_eq!(got.get::<i64, _>(0), 1);

    let world = tokio::spawn(World::on(scratch, npm.clone(), |_| {}));
    // The statement shows no value that is bound to it. Who makes the tables waits for another lock.
    let waits = "select count(*) from information_schema.processlist where db = database() \
                 and id <> connection_id() and state = 'User lock' and exists (select 1 from \
                 information_schema.tables where table_schema = database() and table_name = 'certificate')";
    until("our hub waits for it", || async { npm.database.get::<i64>(waits, &[]).await == Some(1) }).await;
    let written = "select count(*) from certificate";
    assert_eq!(npm.database.get::<i64>(written, &[]).await, Some(0));
    holder.close().await.unwrap();
    let world = world.await.unwrap();

    // It doesn't keep it.
    let user = "select is_used_lock('eventflow:certificates') in \
                (select id from information_schema.processlist where db = database())";
    until("it is given back", || async { npm.database.get::<i64>(user, &[]).await != Some(1) }).await;
    assert!(npm.database.get::<i64>(written, &[]).await > Some(3));
    world.end().await;
}
