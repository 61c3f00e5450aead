//! Hubs, bindings, cursors, certificates.

use super::*;
use crate::pki::{CertificateRow, CertificateRows};

#[tokio::test]
async fn each_registration_raises_the_epoch_and_reopens_the_hub() {
    let store = fresh().await;
    store.hub_quit(&hub()).await.unwrap();
    let moved = HubRow { external_ip: "10.0.0.9".into(), ..hub_row("HUB-1") };
    assert_eq!(store.register_hub(&moved).await.unwrap(), 2);
    assert_eq!(store.register_hub(&hub_row("HUB-2")).await.unwrap(), 1);
    let open = "SELECT external_ip FROM hub WHERE id = 'HUB-1' AND quit IS NULL";
    assert_eq!(texts(&store, open).await, ["10.0.0.9"]);
}

#[tokio::test]
async fn binding_twice_is_binding_once() {
    let store = fresh().await;
    let first = one(&store, Write::Bind(binding("", "orders.>", "*", 5))).await.unwrap();
    let again = one(&store, Write::Bind(binding("", "orders.>", "*", 9))).await.unwrap();
    assert_eq!(first, again);
    let other = one(&store, Write::Bind(binding("mail", "orders.>", "*", 5))).await.unwrap();
    assert_ne!(first, other);
    let Written::Bound(bound) = first else { panic!("{first:?}") };
    assert_eq!(Binding { id: 0, ..bound.clone() }, binding("", "orders.>", "*", 5));
    assert_eq!(store.bindings().await.unwrap().len(), 2);

    one(&store, Write::Unbind { id: bound.id }).await.unwrap();
    assert_eq!(store.bindings().await.unwrap().len(), 1);
    one(&store, Write::Unbind { id: bound.id }).await.unwrap();
}

#[tokio::test]
async fn a_new_binding_sends_the_cursors_of_its_group_back() {
    let store = fresh().await;
    let cursor = |group: &str, seq| Write::Cursor { hub: hub(), group: group.into(), seq, known: None };
    assert_eq!(store.cursor(&hub(), "").await.unwrap(), None);
    store.commit(vec![cursor("", 3), cursor("", 100), cursor("mail", 100)]).await;
    assert_eq!(store.cursor(&hub(), "").await.unwrap(), Some(100));

    one(&store, Write::Bind(binding("", "*", "*", 50))).await.unwrap();
    assert_eq!(store.cursor(&hub(), "").await.unwrap(), Some(49));
    assert_eq!(store.cursor(&hub(), "mail").await.unwrap(), Some(100));
    // A later start, and one that is there already, leave it.
    one(&store, Write::Bind(binding("", "a", "*", 60))).await.unwrap();
    one(&store, Write::Cursor { hub: hub(), group: String::new(), seq: 70, known: None }).await.unwrap();
    one(&store, Write::Bind(binding("", "*", "*", 50))).await.unwrap();
    assert_eq!(store.cursor(&hub(), "").await.unwrap(), Some(70));
}

#[tokio::test]
async fn a_binding_that_is_no_pattern_is_named() {
    let store = fresh().await;
    sql(&store, "INSERT INTO v1_binding (id, grp, domain, name, start_seq) VALUES (4, '', '>.a', '*', 0)")
        .await;
    let error = store.bindings().await.unwrap_err();
    assert!(error.to_string().contains("the binding 4"), "{error}");
}

fn certificate(id: &str, cert: &str) -> CertificateRow {
    CertificateRow {
        version: 0,
        id: id.into(),
        cert: cert.into(),
        key: vec![0, 1, 255],
        key_iv: vec![1; 16],
        key_salt: vec![2; 16],
        key_tag: vec![3; 16],
        pass: vec![4],
        pass_iv: vec![5; 16],
        pass_salt: vec![6; 16],
        pass_tag: vec![7; 16],
        validity: 1_800_000_000,
        revoked: None,
    }
}

#[tokio::test]
async fn certificates_make_room_for_their_successors() {
    let store = fresh().await;
    assert!(store.insert(certificate("A", "first")).await.unwrap());
    assert!(!store.insert(certificate("A", "late")).await.unwrap());
    assert_eq!(store.current("A").await.unwrap(), Some(certificate("A", "first")));

    store.retire(&certificate("A", "another")).await.unwrap();
    assert!(store.current("A").await.unwrap().is_some(), "only the one that is meant is retired");
    store.retire(&certificate("A", "first")).await.unwrap();
    assert_eq!(store.current("A").await.unwrap(), None);
    assert!(store.insert(certificate("A", "second")).await.unwrap());
    store.retire(&certificate("A", "second")).await.unwrap();
    assert!(store.insert(certificate("A", "third")).await.unwrap());
    let all = store.certificates().await.unwrap();
    let all: Vec<_> = all.iter().map(|row| (row.version, row.cert.as_str(), row.revoked)).collect();
    assert_eq!(all, [(0, "third", None), (1, "first", None), (2, "second", None)]);
}

#[tokio::test]
async fn a_revoked_certificate_is_not_current() {
    let store = fresh().await;
    let revoked = CertificateRow { revoked: Some(1_790_000_000), ..certificate("A", "first") };
    store.insert(revoked.clone()).await.unwrap();
    assert_eq!(store.current("A").await.unwrap(), None);
    assert_eq!(store.certificates().await.unwrap(), [revoked]);
    // Somebody revoked it by hand, and left its version: it makes room all the same.
    assert!(store.insert(certificate("A", "second")).await.unwrap());
    assert!(!store.insert(certificate("A", "third")).await.unwrap());
    let all = store.certificates().await.unwrap();
    let all: Vec<_> = all.iter().map(|row| (row.version, row.cert.as_str())).collect();
    assert_eq!(all, [(0, "second"), (1, "first")]);
}

fn leaf(id: &str, cert: &str, validity: i64) -> CertificateRow {
    CertificateRow::keyless(id, cert.into(), validity)
}

fn line() -> crate::store::LogLine {
    crate::store::LogLine { agent: "HUB".into(), message: "it happened".into(), details: "{}".into() }
}

async fn log_rows(store: &Store) -> i64 {
    number(store, "SELECT count(*) FROM log WHERE message = 'it happened'").await
}

#[tokio::test]
async fn a_leaf_takes_the_place_of_the_one_before_unless_it_is_refused() {
    let store = fresh().await;
    let place = async |cert: &str, refuse: bool| {
        let mut seen = Vec::new();
        let placed = store.place_leaf(leaf("A", cert, 2_000), 1_000, line(), |rows| {
            seen = rows.iter().map(|row| (row.cert.clone(), row.version)).collect();
            if refuse { Err("refused") } else { Ok(()) }
        });
        (placed.await.unwrap(), seen)
    };
    assert_eq!(place("first", false).await, (Ok(()), vec![]));
    assert_eq!(place("second", true).await, (Err("refused"), vec![("first".into(), 0)]));
    assert_eq!(store.current("A").await.unwrap().unwrap().cert, "first");
    assert_eq!(place("second", false).await.0, Ok(()));
    assert_eq!(place("third", false).await, (Ok(()), vec![("second".into(), 0)]));
    let all: Vec<_> = store
        .certificates()
        .await
        .unwrap()
        .into_iter()
        .map(|row| (row.version, row.cert, row.revoked))
        .collect();
    let row = |version: u32, cert: &str| (version, cert.to_owned(), None);
    assert_eq!(all, [row(0, "third"), row(1, "first"), row(2, "second")], "renewal revokes nothing");
    assert_eq!(log_rows(&store).await, 3, "a line for each that was placed");
    // What has expired stands in nobody's way.
    let placed = store.place_leaf(leaf("A", "late", 9_000), 2_001, line(), |rows| {
        assert!(rows.is_empty(), "{rows:?}");
        Ok::<_, ()>(())
    });
    placed.await.unwrap().unwrap();
}

#[tokio::test]
async fn revoking_takes_all_that_holds_and_the_next_look_sees_it() {
    let store = fresh().await;
    for (cert, end) in [("first", 500), ("second", 2_000), ("third", 3_000)] {
        store.place_leaf(leaf("A", cert, end), 100, line(), |_| Ok::<_, ()>(())).await.unwrap().unwrap();
    }
    store.place_leaf(leaf("B", "other", 3_000), 100, line(), |_| Ok::<_, ()>(())).await.unwrap().unwrap();
    let revoke = |id: &'static str| store.revoke_certificates(id, 1_000, line(), |row| row.validity - 700);
    let revoked: Vec<_> =
        revoke("A").await.unwrap().into_iter().map(|row| (row.cert, row.version, row.revoked)).collect();
    assert_eq!(revoked, [("third".to_owned(), 3, Some(2_300)), ("second".to_owned(), 2, Some(1_300))]);
    assert_eq!(log_rows(&store).await, 5);
    assert!(revoke("A").await.unwrap().is_empty() && revoke("C").await.unwrap().is_empty());
    assert_eq!(log_rows(&store).await, 5, "nothing was revoked, nothing is told");
    assert_eq!(store.current("A").await.unwrap(), None);
    assert!(store.current("B").await.unwrap().is_some());

    let seen = async |since, now| {
        let rows = store.revoked_certificates(since, now, None, 10).await.unwrap();
        rows.into_iter().map(|row| row.cert).collect::<Vec<_>>()
    };
    assert_eq!(seen(0, 1_000).await, ["second", "third"]);
    assert_eq!(seen(1_301, 1_000).await, ["third"]);
    assert_eq!(seen(0, 2_001).await, ["third"], "the other has expired");

    let page = async |after: Option<(&str, u32)>| {
        let rows = store.certificate_page(after, 2).await.unwrap();
        rows.into_iter().map(|row| (row.id, row.version)).collect::<Vec<_>>()
    };
    let row = |id: &str, version| (id.to_owned(), version);
    assert_eq!(page(None).await, [row("A", 1), row("A", 2)]);
    assert_eq!(page(Some(("A", 2))).await, [row("A", 3), row("B", 0)]);
    assert!(page(Some(("B", 0))).await.is_empty());
}
