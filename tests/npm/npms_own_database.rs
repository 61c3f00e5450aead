//! A small database that the npm stack really made and used: `../shared/fixtures/npm-database-mariadb.sql`. Our hub uses
//! what stands there and makes what is missing. Without that file each test says that it was skipped.

use std::{io::Write, path::Path};

use eventflow::{
    config::{CertificateSettings, HubConfig, Keep, Secret},
    spoke::{Consume, Publish},
};
use sea_orm::sqlx::Row;
use tokio::time::timeout;

use crate::{
    scratch::{PATIENCE, Scratch, until},
    stack::{deployment::Deployment, openssl},
    world::{PHRASE, World},
};

/// npm's rounds.
const MILLION: u32 = 1_000_000;
/// The event whose time came while no hub ran it.
const OVERDUE: &str = "mx30fywa-yplhamoxbik";

/// The dump as a database; none: skipped.
async fn restored() -> Option<(Scratch, Deployment)> {
    // Beside the repository, or beside the folder that it is in.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1);
    let mut files = above.map(|folder| folder.join("shared/fixtures/npm-database-mariadb.sql"));
    let Some(dump) = files.find_map(|file| std::fs::read_to_string(file).ok()) else {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let line = format!("{test} is SKIPPED: there is no ../shared/fixtures/npm-database-mariadb.sql\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    };
    let scratch = Scratch::new().await?;
    if scratch.is_zoned {
        // Its times are in UTC, as that server was.
        scratch.drop_database().await;
        return None;
    }
    let npm = Deployment::new(&scratch.url, PHRASE, MILLION);
    npm.database.restore(&dump).await;
    Some((scratch, npm))
}

fn as_npm(config: &mut HubConfig) {
    config.certificates = CertificateSettings::with_phrase(Secret::new(PHRASE));
    config.schedules.npm_overdue = Keep::Forever;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_uses_what_stands_makes_what_is_missing_and_runs_what_is_overdue_once() {
    let Some((scratch, npm)) = restored().await else { return };
    let certificates = "select id, cert from certificate where version = 0 order by id";
    let pairs = async |npm: &Deployment| -> Vec<(String, String)> {
        let rows = npm.database.rows(certificates, &[]).await;
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let before = pairs(&npm).await;
    let world = World::on(scratch, npm, as_npm).await;
    let own = world.hub.info().id.to_string();

    // What stands is used, and the hub's leaf is made under it.
    let after = pairs(&world.npm).await;
    let (kept, made): (Vec<_>, Vec<_>) = after.iter().cloned().partition(|pair| before.contains(pair));
    assert_eq!(kept, before, "npm's stay as they are");
    let missing: Vec<&str> = made.iter().map(|(id, _)| id.as_str()).filter(|id| *id != own).collect();
    assert!(
        missing.iter().all(|id| id.ends_with(".EVENTFLOW-SPOKE")),
        "besides it the operator's: {missing:?}"
    );
    let cert = |id: &str| after.iter().find(|pair| pair.0 == id).map(|pair| pair.1.clone()).unwrap();
    let (root, above, leaf) = (cert("EVENTFLOW-ROOT-CA"), cert("EVENTFLOW-HUB"), cert(&own));
    let text = openssl::described(&leaf);
    assert!(text.contains("Signature Algorithm: ED448"), "npm's intermediate has signed it: {text}");
    assert!(openssl::verifies(&root, &above, &leaf));

    // Logs.
    let ours = world.ours().await;
    let log = ours.log("d1", "p1").collect(10).await.unwrap();
    let told: Vec<_> =
        log.iter().map(|event| (&*event.id, &*event.name, event.data.as_str(), event.timestamp)).collect();
    assert_eq!(
        told,
        [
            ("mx30fy8k-kuswcgzf5p", "e1", r#"{"a":1}"#, 1_796_027_569_942),
            ("mx30fyv1-zojf166bhp", "success", r#"{"b":1}"#, 1_796_027_570_750)
        ]
    );
    let (_, trace) = ours.show("mx30fy8k-kuswcgzf5p").await.unwrap();
    assert_eq!(trace.state, "success");

    // The overdue schedule, once.
    let mut claims = ours.claims(Consume::new("d1", "e1")).await.unwrap();
    let claim = timeout(PATIENCE, claims.next()).await.expect("it runs").unwrap();
    assert_eq!((&*claim.event().id, &*claim.event().pid), (OVERDUE, "p9"));
    claim.ack().await.unwrap();
    let ran = "select concat_ws(' ', s.executed, p.seq, p.success, p.v1_hub) from event_scheduled s \
               join event_published p on p.event_id = s.event_id where s.executed is not null";
    until("its outcome stands", || async { world.npm.database.get::<String>(ran, &[]).await.is_some() })
        .await;
    let first: String = world.npm.database.get(ran, &[]).await.unwrap();
    assert_eq!(world.hub.metrics().hub.schedules_executed, 1);
    ours.close().await;

    let world = world.restarted(async |_| {}).await;
    let ours = world.ours().await;
    ours.publish(Publish::new("d1", "e1", "p10")).await.unwrap();
    let mut claims = ours.claims(Consume::new("d1", "e1")).await.unwrap();
    let claim = timeout(PATIENCE, claims.next()).await.expect("the new one").unwrap();
    assert_eq!(&*claim.event().pid, "p10", "the old one doesn't come again");
    claim.ack().await.unwrap();
    assert_eq!(world.npm.database.get::<String>(ran, &[]).await, Some(first), "nor is it run again");
    assert_eq!(world.hub.metrics().hub.schedules_executed, 0);
    ours.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_due_too_long_ago_is_left_alone() {
    let Some((scratch, npm)) = restored().await else { return };
    let config = |config: &mut HubConfig| {
        as_npm(config);
        config.schedules.npm_overdue = Keep::For(std::time::Duration::ZERO);
    };
    let world = World::on(scratch, npm, config).await;
    let ours = world.ours().await;
    // What comes later runs, so that the older one has been looked at.
    let sql = "insert into event_scheduled (event_id, scheduled) values (?, utc_timestamp())";
    let id = world.npm.database.persist(("d1", "e1", "p10"), "{}").await;
    world.npm.database.persist_published(&id, "NPM-1.EVENTFLOW-SPOKE").await;
    assert_eq!(world.npm.database.run(sql, &[&id]).await, 1);
    let mut claims = ours.claims(Consume::new("d1", "e1")).await.unwrap();
    let claim = timeout(PATIENCE, claims.next()).await.expect("it runs").unwrap();
    assert_eq!(claim.event().id.as_str(), id);
    claim.ack().await.unwrap();
    let waits = "select count(*) from event_scheduled where executed is null and event_id = ?";
    assert_eq!(world.npm.database.get::<i64>(waits, &[OVERDUE]).await, Some(1));
    let listed = ours.schedules().collect(10).await.unwrap();
    assert_eq!(listed.iter().map(|listed| listed.id.as_str()).collect::<Vec<_>>(), [OVERDUE]);
    ours.close().await;
    world.end().await;
}
