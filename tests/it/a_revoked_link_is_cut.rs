//! Promise: who bears a revoked certificate is let in no more, and its links are cut: at once by the hub that was
//! told, within 6 seconds if somebody else wrote it into the database.

use std::time::Duration;

use eventflow::{
    pki::{Bundle, FreshKey},
    spoke::{ConnectError, Publish, Spoke, SpokeConfig, Status},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Raw, TestHub, admin::Admin, engine, until};

const REVOKED: &str = "E_EVENTFLOW_CERTIFICATE_REVOKED";

async fn connect(bundle: &Bundle) -> Spoke {
    Spoke::connect(SpokeConfig::from_bundle(bundle.clone())).await.expect("the spoke connects")
}

async fn over(spoke: &Spoke) -> Status {
    spoke.status_when(|status| status.closed).await
}

/// The hub refuses this certificate, and says why.
async fn refused(bundle: &Bundle) {
    let error = Spoke::connect(SpokeConfig::from_bundle(bundle.clone())).await.unwrap_err();
    let ConnectError::Refused { fault, .. } = &error else { panic!("a final refusal, not {error}") };
    assert_eq!(fault.code, REVOKED);
    assert!(
        fault.message.contains("was revoked") && fault.message.contains("eventflow cert issue"),
        "{fault}"
    );
}

async fn database(hub: &TestHub) -> DatabaseConnection {
    engine::open(&hub.database()).await
}

/// Writes as somebody else would.
async fn revoke_by_hand(rows: &DatabaseConnection, bundle: &Bundle, at: &str) {
    let id = bundle.uid().unwrap();
    let sql = format!("UPDATE certificate SET revoked = {at} WHERE id = '{id}'");
    assert!(engine::run(rows, sql).await > 0);
}

#[tokio::test]
async fn by_the_hub_that_was_told_at_once() {
    let hub = TestHub::start().await;
    let admin = Admin::of(&hub);
    let bundle = admin.issue(&hub, "a.toml", json!({})).await;
    let id = bundle.uid().unwrap();
    let (one, operator) = (connect(&bundle).await, hub.spoke().await);
    let mut two = Raw::connect(&bundle, hub.handle.info().address).await.greeted().await;
    // A leaf that was renewed is revoked with the one before.
    one.renew().await.unwrap();
    let renewed = Bundle::read(bundle.path().unwrap()).unwrap();

    let (status, revoked) = admin.json("POST", "/certificates/revoke", json!({ "id": id.as_str() })).await;
    assert_eq!(
        (status, &revoked["links_cut"], revoked["versions"].as_array().unwrap().len()),
        (200, &json!(2), 2)
    );
    let bye = two.answer().await.expect("last words");
    assert_eq!((&*bye[0], &*bye[1], &*bye[3]), ("bye", REVOKED, ""), "{bye:?}");
    assert!(two.record().await.is_none(), "the link is closed");
    over(&one).await;
    let error = one.publish(Publish::new("orders", "created", "p")).await.unwrap_err();
    assert_eq!(error.code(), REVOKED);
    refused(&bundle).await;
    refused(&renewed).await;
    // Others don't notice.
    operator.publish(Publish::new("orders", "created", "p")).await.unwrap();
    assert_eq!(operator.status().links_lost, 0);
    let numbers = hub.handle.metrics().hub;
    assert_eq!(numbers.cuts["revoked"], 2);
    assert!(numbers.handshakes_failed["revoked"] >= 2, "{numbers:?}");

    // The log has it, and the list too; revoked is revoked.
    let rows = database(&hub).await;
    let sql = format!("SELECT count(*) FROM log WHERE message = 'certificates revoked: {id}'");
    let row = rows.query_one_raw(engine::statement(&rows, sql, [])).await;
    assert_eq!(row.unwrap().unwrap().try_get_by_index::<i64>(0).unwrap(), 1);
    let (_, list) = admin.json("GET", "/certificates?limit=1000", Value::Null).await;
    let of_id = list["certificates"].as_array().unwrap().iter().filter(|row| row["id"] == *id.as_str());
    assert_eq!(of_id.filter(|row| row["state"] == "revoked" && row["revoked"].is_i64()).count(), 2);
    let (status, again) = admin.json("POST", "/certificates/revoke", json!({ "id": id.as_str() })).await;
    assert_eq!((status, &again["code"]), (404, &json!("E_EVENTFLOW_CERTIFICATE_NOT_FOUND")));
    // The id may have a new certificate, which holds: it is the certificate that is revoked.
    let anew = admin.issue(&hub, "b.toml", json!({ "id": id.as_str() })).await;
    connect(&anew).await.close().await;
    operator.close().await;
    rows.close().await.unwrap();
    let folder = hub.stop().await;

    // Not forgotten by a restart.
    let hub = TestHub::on(folder, |_| {}).await;
    let mut old = bundle.clone();
    old.hubs = hub.bundle().hubs;
    refused(&old).await;
    hub.stop().await;
}

#[tokio::test]
async fn within_six_seconds_if_somebody_else_wrote_it() {
    let hub = TestHub::start().await;
    let (admin, rows) = (Admin::of(&hub), database(&hub).await);
    let revoked = admin.issue(&hub, "revoked.toml", json!({})).await;
    let (expiring, renewed) = (
        admin.issue(&hub, "expiring.toml", json!({})).await,
        admin.issue(&hub, "renewed.toml", json!({})).await,
    );
    let (cut, stays, stays_too) =
        (connect(&revoked).await, connect(&expiring).await, connect(&renewed).await);
    let mut quick = Raw::connect(&revoked, hub.handle.info().address).await.greeted().await;
    stays_too.renew().await.unwrap();
    // In the last ten minutes of its validity: that is how npm renews.
    let soon = match rows.get_database_backend() {
        DbBackend::Sqlite => "datetime(validity, '-599 seconds')",
        _ => "validity - interval '599' second",
    };
    revoke_by_hand(&rows, &expiring, soon).await;
    revoke_by_hand(&rows, &revoked, "utc_timestamp()").await;
    let began = Instant::now();
    // Even before the hub has noticed, nothing is renewed for it.
    let key = FreshKey::generate().unwrap();
    let answer = quick.ask(&["renew", "1", key.public_key()]).await;
    assert_eq!((&*answer[0], &*answer[2]), ("err", REVOKED), "{answer:?}");

    let bye = quick.answer().await.expect("last words");
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(bye[1], REVOKED, "{bye:?}");
    over(&cut).await;
    refused(&revoked).await;
    for spoke in [&stays, &stays_too] {
        spoke.publish(Publish::new("orders", "created", "p")).await.unwrap();
        assert_eq!(spoke.status().links_lost, 0);
    }
    for bundle in [&expiring, &renewed] {
        connect(bundle).await.close().await;
    }
    assert_eq!(hub.handle.metrics().hub.cuts["revoked"], 2);
    for spoke in [stays, stays_too] {
        spoke.close().await;
    }
    rows.close().await.unwrap();
    hub.stop().await;
}

#[tokio::test]
async fn with_its_intermediate() {
    let hub = TestHub::start().await;
    let (admin, rows) = (Admin::of(&hub), database(&hub).await);
    let billing = admin.issue(&hub, "billing.toml", json!({ "name": "BILLING" })).await;
    assert!(billing.uid().unwrap().ends_with(".BILLING"));
    let (cut, stays) = (connect(&billing).await, hub.spoke().await);
    let revoke = "UPDATE certificate SET revoked = utc_timestamp(), version = 1 WHERE id = 'BILLING'";
    engine::run(&rows, revoke).await;
    over(&cut).await;
    refused(&billing).await;
    assert_eq!(stays.status().links_lost, 0);
    // Its successor is made when it is needed.
    let anew = admin.issue(&hub, "anew.toml", json!({ "name": "billing" })).await;
    connect(&anew).await.close().await;
    // So is that of the hub's own spokes, by the hub itself: the operator's bundle follows.
    let operator = hub.bundle();
    engine::run(&rows, "UPDATE certificate SET revoked = utc_timestamp() WHERE id = 'EVENTFLOW-SPOKE'").await;
    over(&stays).await;
    refused(&operator).await;
    until("the operator has another bundle", || async { hub.bundle() != operator }).await;
    hub.spoke().await.close().await;
    stays.close().await;
    rows.close().await.unwrap();
    hub.stop().await;
}

#[tokio::test]
async fn the_operators_own_makes_room_for_another() {
    let hub = TestHub::start().await;
    let (admin, bundle) = (Admin::of(&hub), hub.bundle());
    let spoke = connect(&bundle).await;
    assert_eq!(admin.revoke(&bundle.uid().unwrap()).await, 1);
    over(&spoke).await;
    until("another is there", || async { hub.bundle().uid().unwrap() != bundle.uid().unwrap() }).await;
    hub.spoke().await.close().await;
    refused(&bundle).await;
    hub.stop().await;
}

#[tokio::test]
async fn what_cannot_be_issued_or_revoked_is_said() {
    let hub = TestHub::start().await;
    let admin = Admin::of(&hub);
    let own = hub.handle.info().id.clone();
    for (id, status, code, part) in [
        ("EVENTFLOW-ROOT-CA", 403, "E_EVENTFLOW_CERTIFICATE_PROTECTED", "stands above other certificates"),
        ("EVENTFLOW-SPOKE", 403, "E_EVENTFLOW_CERTIFICATE_PROTECTED", "stands above other certificates"),
        (own.as_str(), 403, "E_EVENTFLOW_CERTIFICATE_PROTECTED", "a hub's own certificate"),
        ("A-B-1.EVENTFLOW-SPOKE", 404, "E_EVENTFLOW_CERTIFICATE_NOT_FOUND", "cert list"),
        ("' OR 1 = 1", 404, "E_EVENTFLOW_CERTIFICATE_NOT_FOUND", "cert list"),
    ] {
        let (found, answer) = admin.json("POST", "/certificates/revoke", json!({ "id": id })).await;
        assert_eq!((found, answer["code"].as_str()), (status, Some(code)), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(part), "{answer}");
    }
    let first = admin.issue(&hub, "a.toml", json!({ "id": "A-B-1.EVENTFLOW-SPOKE", "days": 1 })).await;
    let invalid = "E_EVENTFLOW_INVALID_CERTIFICATE";
    for (wish, status, code, part) in [
        (
            json!({ "id": first.uid().unwrap().as_str() }),
            409,
            "E_EVENTFLOW_CERTIFICATE_EXISTS",
            "revoke it first",
        ),
        (json!({ "name": "EVENTFLOW-HUB" }), 400, "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME", "pass for a hub's"),
        (
            json!({ "name": "a.eventflow-hub" }),
            400,
            "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME",
            "pass for a hub's",
        ),
        (
            json!({ "name": "EVENTFLOW-ROOT-CA" }),
            400,
            "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME",
            "that of the root",
        ),
        (
            json!({ "name": "Eventflow-Root-CA", "id": "a.eventflow-root-ca" }),
            400,
            "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME",
            "that of the root",
        ),
        (
            json!({ "name": "a-b-1.eventflow-spoke" }),
            400,
            "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME",
            "the id of a leaf",
        ),
        (json!({ "name": "a b" }), 400, "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME", "other characters"),
        (json!({ "name": "x".repeat(40) }), 400, "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME", "longer than 39"),
        (json!({ "id": "A-B-1.OTHER" }), 400, invalid, "ends with .EVENTFLOW-SPOKE"),
        (json!({ "id": "x y.EVENTFLOW-SPOKE" }), 400, invalid, "a DNS name"),
        (json!({ "id": "" }), 400, invalid, ""),
        (json!({ "lifetime": "soon" }), 400, invalid, "must be a number and a unit"),
        (json!({ "lifetime": "1ms" }), 400, invalid, "between a second and 100 years"),
        (json!({ "lifetime": "1d", "days": 1 }), 400, invalid, "not both"),
        (json!({ "days": -1 }), 400, invalid, "is not the JSON"),
    ] {
        let (found, answer) = admin.json("POST", "/certificates", wish).await;
        assert_eq!((found, answer["code"].as_str()), (status, Some(code)), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(part), "{answer}");
    }
    let (status, answer) = admin.json("GET", "/certificates?page=nonsense", Value::Null).await;
    assert_eq!((status, &answer["code"]), (400, &json!("E_EVENTFLOW_INVALID_PAGE")));

    // Not for strangers, and not for a page in a browser.
    let token = format!("Authorization: Bearer {}\r\n", admin.token);
    for headers in ["", "Authorization: Bearer 00000000000000000000000000000000\r\n"] {
        for (method, path) in
            [("GET", "/certificates"), ("POST", "/certificates"), ("POST", "/certificates/revoke")]
        {
            assert_eq!(admin.ask(method, path, headers, "{}").await.0, 401, "{method} {path}");
        }
    }
    let foreign = format!("{token}Host: evil.example\r\n");
    assert_eq!(admin.ask("POST", "/certificates", &foreign, "{}").await.0, 421);

    // Page by page it is the same list.
    let (mut page, mut ids) = (String::new(), Vec::new());
    loop {
        let (_, answer) = admin.json("GET", &format!("/certificates?limit=2&page={page}"), Value::Null).await;
        ids.extend(answer["certificates"].as_array().unwrap().iter().map(|row| row["id"].to_string()));
        match answer["next"].as_str() {
            Some(next) => next.clone_into(&mut page),
            None => break,
        }
    }
    let (_, whole) = admin.json("GET", "/certificates", Value::Null).await;
    let whole: Vec<_> =
        whole["certificates"].as_array().unwrap().iter().map(|row| row["id"].to_string()).collect();
    assert_eq!(ids, whole);
    assert_eq!(
        whole.len(),
        6,
        "root, two intermediates, the hub, the operator, and one that was issued: {whole:?}"
    );
    hub.stop().await;
}
