//! Promise: certificates are renewed in time, of spokes and of the hub, and no link is lost and no publish fails
//! by it.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use eventflow::{
    pki::{Bundle, FreshKey},
    spoke::{ConnectError, Publish, RenewError, Spoke, SpokeConfig},
};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{Raw, TestHub, admin::Admin, engine, until};

const INVALID_KEY: &str = "E_EVENTFLOW_INVALID_PUBLIC_KEY";
const UNSUPPORTED_KEY: &str = "E_EVENTFLOW_UNSUPPORTED_PUBLIC_KEY";
const AUTHORITY_GONE: &str = "E_EVENTFLOW_AUTHORITY_GONE";

async fn hub(life: Duration) -> TestHub {
    TestHub::with(|config| {
        config.certificates.hub_leaf = life;
        config.certificates.spoke_leaf = life;
    })
    .await
}

async fn connect(bundle: Bundle) -> Spoke {
    Spoke::connect(SpokeConfig::from_bundle(bundle)).await.expect("the spoke connects")
}

fn leaf(file: &Path) -> String {
    Bundle::read(file).expect("the file is whole at any time").leaf().unwrap().0
}

/// The leaf that the hub shows to new links.
async fn shown(hub: &TestHub, bundle: &Bundle) -> Vec<u8> {
    let raw = Raw::connect(bundle, hub.handle.info().address).await;
    raw.stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

async fn database(hub: &TestHub) -> DatabaseConnection {
    engine::open(&hub.database()).await
}

/// Publishes steadily, and each must be acked, until the spoke's file and the hub's leaf were renewed so often, for at
/// least so long.
async fn under_load(life: Duration, renewals: usize, least: Duration) {
    let hub = hub(life).await;
    let admin = Admin::of(&hub);
    let bundle =
        admin.issue(&hub, "bundle.toml", json!({ "lifetime": format!("{}s", life.as_secs()) })).await;
    let file = bundle.path().unwrap().to_owned();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let (began, spoke) = (Instant::now(), connect(bundle.clone()).await);
    let (mut files, mut hubs) = (vec![leaf(&file)], vec![shown(&hub, &bundle).await]);
    let mut published = 0;
    while files.len() <= renewals || hubs.len() <= renewals || began.elapsed() < least {
        let publish = Publish::new("orders", "created", "order-1").id(format!("e{published}"));
        spoke.publish(publish).await.expect("each publish is acked");
        published += 1;
        let now = leaf(&file);
        if files.last() != Some(&now) {
            files.push(now);
            hubs.push(shown(&hub, &Bundle::read(&file).unwrap()).await);
            hubs.dedup();
        }
        assert!(began.elapsed() < least + life * 30, "{} and {} renewals", files.len(), hubs.len());
        // Steadily, not as fast as it goes.
        sleep(Duration::from_millis(2)).await;
    }
    let status = spoke.status();
    assert_eq!((status.links_lost, status.publishes_retried), (0, 0), "{status:?}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // The first leaf is over, the file's holds.
    if began.elapsed() > life + Duration::from_secs(2) {
        assert_eq!(bundle.check(SystemTime::now()).unwrap_err().code(), "E_EVENTFLOW_CERTIFICATE_EXPIRED");
        let error = Spoke::connect(SpokeConfig::from_bundle(Bundle::read(&file).unwrap())).await;
        error.unwrap().close().await;
    }
    // The operator's was renewed too, by the hub itself.
    hub.bundle().check(SystemTime::now()).unwrap();
    let numbers = hub.handle.metrics().hub;
    assert_eq!(numbers.published, published);
    assert!(numbers.leaves_issued as usize >= files.len() && numbers.renewals_failed == 0, "{numbers:?}");
    assert!(numbers.leaf_left > 0 && numbers.leaf_left <= life.as_secs() as i64, "{}", numbers.leaf_left);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn leaves_of_seconds_are_renewed_again_and_again_and_no_publish_fails() {
    under_load(Duration::from_secs(4), 3, Duration::ZERO).await;
}

/// With EVENTFLOW_TEST_LONG=1: a leaf of a minute, five minutes long.
#[tokio::test]
async fn a_leaf_of_a_minute_lasts_for_five() {
    if std::env::var_os("EVENTFLOW_TEST_LONG").is_none() {
        eprintln!("skipped: EVENTFLOW_TEST_LONG isn't set");
        return;
    }
    under_load(Duration::from_secs(60), 5, Duration::from_secs(300)).await;
}

#[tokio::test]
async fn later_dials_use_what_was_renewed() {
    let hub = TestHub::start().await;
    let admin = Admin::of(&hub);
    let bundle = admin.issue(&hub, "bundle.toml", json!({ "lifetime": "6s" })).await;
    // Renewed from here on, leaves live 90 days: the one of the first link is soon over.
    let spoke = connect(bundle.clone()).await;
    let file = bundle.path().unwrap();
    let first = leaf(file);
    until("the file is renewed", || async { leaf(file) != first }).await;
    until("the first leaf is over", || async { bundle.check(SystemTime::now()).is_err() }).await;
    assert_eq!(spoke.status().links_lost, 0);
    // All links are cut by a restart of the core; the spoke comes back.
    hub.handle.inject_panic(eventflow::metrics::ActorKind::Registry);
    let back = spoke.status_when(|status| status.links_lost > 0 && status.hub.is_some()).await;
    assert!(!back.closed, "{back:?}");
    spoke.publish(Publish::new("orders", "created", "order-1")).await.unwrap();
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn renewing_by_hand_replaces_the_file_and_the_leaf_before_stays_good() {
    let hub = TestHub::start().await;
    let admin = Admin::of(&hub);
    let bundle = admin.issue(&hub, "bundle.toml", json!({})).await;
    let (file, id) = (PathBuf::from(bundle.path().unwrap()), bundle.uid().unwrap());
    let (spoke, first) = (connect(bundle.clone()).await, leaf(&file));
    let renewal = spoke.renew().await.unwrap();
    assert_eq!((renewal.id.as_str(), renewal.file.as_ref()), (id.as_str(), Some(&file)));
    assert_ne!(leaf(&file), first);
    let read = Bundle::read(&file).unwrap();
    assert_eq!((read.uid().unwrap(), &read.hubs, &read.root), (id.clone(), &bundle.hubs, &bundle.root));
    assert_eq!(renewal.not_after, read.leaf().unwrap().1 * 1_000);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    // Once a second is enough.
    assert_eq!(spoke.renew().await.unwrap(), renewal);
    let mut link = hub.v1().await;
    let key = FreshKey::generate().unwrap();
    assert_eq!(link.ask(&["renew", "1", key.public_key()]).await[2], "renewed");
    let again = link.ask(&["renew", "2", key.public_key()]).await;
    assert_eq!((&*again[0], &*again[2]), ("err", "E_EVENTFLOW_HUB_BUSY"), "{again:?}");
    assert!(again[4].parse::<u64>().unwrap() <= 1_000, "{again:?}");
    let old = connect(bundle).await;
    old.close().await;
    let (_, list) = admin.json("GET", "/certificates", Value::Null).await;
    let rows: Vec<_> =
        list["certificates"].as_array().unwrap().iter().filter(|row| row["id"] == *id.as_str()).collect();
    let states: Vec<_> =
        rows.iter().map(|row| (row["state"].as_str().unwrap(), row["key_kept"].as_bool())).collect();
    assert_eq!(states, [("current", Some(false)), ("replaced", Some(false))]);
    assert!(rows.iter().all(|row| row["revoked"].is_null() && row["kind"] == "leaf"), "{rows:?}");

    // The file is somebody else's now: it isn't overwritten.
    let other = admin.issue(&hub, "bundle.toml", json!({})).await;
    let late = connect(Bundle::read(&file).unwrap()).await;
    let mine = connect(read).await;
    let error = mine.renew().await.unwrap_err();
    assert!(
        matches!(error, RenewError::NotKept(_)) && error.to_string().contains("is now that of"),
        "{error}"
    );
    assert_eq!(leaf(&file), other.leaf().unwrap().0);
    for spoke in [spoke, late, mine] {
        spoke.close().await;
    }
    assert_eq!(spoke_closed(&hub).await, "E_EVENTFLOW_CLOSED");
    hub.stop().await;
}

/// What renewing says once the spoke is closed.
async fn spoke_closed(hub: &TestHub) -> String {
    let spoke = hub.spoke().await;
    spoke.close().await;
    spoke.renew().await.unwrap_err().code().to_owned()
}

#[tokio::test]
async fn a_renewal_that_cannot_be_is_refused_by_name_and_the_link_stays() {
    let hub = TestHub::start().await;
    let good = FreshKey::generate().unwrap();
    // X25519 in place of Ed25519: the ninth byte of the structure is the last of the kind's name.
    let unsupported = good.public_key().replacen("MCowBQYDK2Vw", "MCowBQYDK2Vu", 1);
    for (key, code) in [("rubbish", INVALID_KEY), ("", INVALID_KEY), (&*unsupported, UNSUPPORTED_KEY)] {
        let mut link = hub.v1().await;
        let answer = link.ask(&["renew", "1", key]).await;
        assert_eq!((&*answer[0], &*answer[2], &*answer[4]), ("err", code, ""), "{answer:?}");
        link.send(&["ping", "7"]).await;
        assert_eq!(link.answer().await.unwrap(), ["pong", "7"]);
    }
    // Nothing is renewed under a root that is gone, nor under an intermediate that is.
    let (rows, database) = (database(&hub).await, hub.database());
    for id in ["EVENTFLOW-ROOT-CA", "EVENTFLOW-SPOKE"] {
        let hide = |version: u32, to: u32| {
            format!("UPDATE certificate SET version = {to} WHERE id = '{id}' AND version = {version}")
        };
        rows.execute_unprepared(&hide(0, 99)).await.unwrap();
        let mut link = hub.v1().await;
        let answer = link.ask(&["renew", "1", good.public_key()]).await;
        assert_eq!((&*answer[0], &*answer[2]), ("err", AUTHORITY_GONE), "{answer:?}");
        assert!(answer[3].contains(id) && answer[3].contains("backup"), "{answer:?}");
        let publish = ["publish", "2", &format!("e-{id}"), "orders", "created", "p", "", "{}"];
        assert_eq!(link.ask(&publish).await[2], "committed", "the link stays");
        rows.execute_unprepared(&hide(99, 0)).await.unwrap();
    }
    let mut link = hub.v1().await;
    let answer = link.ask(&["renew", "1", good.public_key()]).await;
    assert_eq!((&*answer[0], &*answer[2]), ("ok", "renewed"), "{answer:?} {}", database.display());
    let renewed: Value = serde_json::from_str(&answer[3]).unwrap();
    assert_eq!(renewed["cert"].as_str().unwrap().matches("BEGIN CERTIFICATE").count(), 2);
    rows.close().await.unwrap();
    hub.stop().await;
}

#[tokio::test]
async fn a_hub_that_cannot_renew_its_own_tries_again_and_says_so() {
    let hub = TestHub::with(|config| config.certificates.hub_leaf = Duration::from_secs(8)).await;
    let (rows, bundle) = (database(&hub).await, hub.bundle());
    let (link, first) = (connect(bundle.clone()).await, shown(&hub, &bundle).await);
    rows.execute_unprepared("UPDATE certificate SET version = 99 WHERE id = 'EVENTFLOW-ROOT-CA'")
        .await
        .unwrap();
    until("a renewal fails", || async { hub.handle.metrics().hub.renewals_failed > 1 }).await;
    rows.execute_unprepared("UPDATE certificate SET version = 0 WHERE id = 'EVENTFLOW-ROOT-CA'")
        .await
        .unwrap();
    until("new links see another leaf", || async { shown(&hub, &hub.bundle()).await != first }).await;
    assert_eq!(link.status().links_lost, 0);
    until("the log says so", || async {
        let error = engine::text(&rows, "error");
        let sql =
            format!("SELECT {error} FROM log WHERE message = 'the hub''s certificates can''t be renewed'");
        let found = rows.query_all_raw(engine::statement(&rows, sql, [])).await;
        found
            .unwrap()
            .iter()
            .any(|row| row.try_get_by_index::<String>(0).unwrap().contains("EVENTFLOW-ROOT-CA"))
    })
    .await;
    link.close().await;
    rows.close().await.unwrap();
    hub.stop().await;
}

#[tokio::test]
async fn an_expired_bundle_is_told_before_anything_is_dialed() {
    let hub = TestHub::start().await;
    let bundle = Admin::of(&hub).issue(&hub, "bundle.toml", json!({ "lifetime": "1s" })).await;
    until("it is over", || async { bundle.check(SystemTime::now()).is_err() }).await;
    let mut config = SpokeConfig::from_bundle(bundle.clone());
    // Nobody is there: to dial would take until the deadline.
    config = config.hub("192.0.2.1", 1);
    let error = Spoke::connect(config).await.unwrap_err();
    assert!(matches!(error, ConnectError::Credentials(_)) && !error.is_retryable(), "{error}");
    assert_eq!(error.code(), "E_EVENTFLOW_CERTIFICATE_EXPIRED");
    for part in [bundle.uid().unwrap().as_str(), "bundle.toml", "expired at", "eventflow cert issue"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    hub.stop().await;
}
