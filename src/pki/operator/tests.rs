use std::fs;

use super::*;
use crate::pki::{Lifetimes, authority::establish, testing::*};

#[tokio::test]
async fn it_is_written_once_and_kept() {
    let authority = authority().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator.toml");
    let hubs = [hub_address()];
    let ensure = || {
        ensure_operator_bundle(
            &path,
            &authority,
            "EVENTFLOW-SPOKE",
            &hubs,
            &Revoked::default(),
            SystemTime::now(),
        )
    };
    let first = ensure().unwrap();
    let uid = first.uid().unwrap();
    assert!(uid.starts_with("OPERATOR-") && uid.ends_with(".EVENTFLOW-SPOKE"), "{uid}");
    assert_eq!(Bundle::read(&path).unwrap(), first);
    let written = fs::read(&path).unwrap();
    assert_eq!(ensure().unwrap(), first);
    assert_eq!(fs::read(&path).unwrap(), written);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[tokio::test]
async fn other_hubs_change_only_the_addresses() {
    let authority = authority().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator.toml");
    let ensure = |hubs: &[HubAddress]| {
        ensure_operator_bundle(
            &path,
            &authority,
            "EVENTFLOW-SPOKE",
            hubs,
            &Revoked::default(),
            SystemTime::now(),
        )
    };
    let first = ensure(&[hub_address()]).unwrap();
    let moved = [HubAddress { port: 50_002, ..hub_address() }];
    let second = ensure(&moved).unwrap();
    assert_eq!((&second.cert, &second.key), (&first.cert, &first.key));
    assert_eq!(Bundle::read(&path).unwrap().hubs, moved);
}

#[tokio::test]
async fn it_is_renewed_at_two_thirds_of_its_life_under_the_same_id() {
    let (rows, now) = (MemoryRows::default(), SystemTime::now());
    let authority = establish(&rows, &vault(), &names(), Lifetimes::default(), now).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator.toml");
    let ensure = |now| {
        ensure_operator_bundle(
            &path,
            &authority,
            "EVENTFLOW-SPOKE",
            &[hub_address()],
            &Revoked::default(),
            now,
        )
        .unwrap()
    };
    let first = ensure(now);
    assert_eq!(ensure(now + 59 * DAY), first);
    let second = ensure(now + 60 * DAY);
    assert_ne!(second.cert, first.cert);
    assert_eq!(second.uid().unwrap(), first.uid().unwrap());
    // Long forgotten, so long that it expired.
    let third = ensure(now + 200 * DAY);
    assert_ne!(third.cert, second.cert);
    third.check(now + 200 * DAY).unwrap();
}

#[tokio::test]
async fn another_root_another_name_or_rubbish_make_it_anew() {
    let (one, two) = (authority().await, authority().await);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator.toml");
    let ensure = |authority| {
        ensure_operator_bundle(
            &path,
            authority,
            "EVENTFLOW-SPOKE",
            &[hub_address()],
            &Revoked::default(),
            SystemTime::now(),
        )
        .unwrap()
    };
    let first = ensure(&one);
    let second = ensure(&two);
    assert_ne!(second.root, first.root);
    Bundle::read(&path).unwrap().check(SystemTime::now()).unwrap();

    fs::write(&path, "rubbish").unwrap();
    assert_eq!(ensure(&two).root, second.root);
    Bundle::read(&path).unwrap();

    let error = ensure_operator_bundle(
        folder.path().join("no/operator.toml"),
        &one,
        "EVENTFLOW-SPOKE",
        &[],
        &Revoked::default(),
        SystemTime::now(),
    );
    assert_eq!(error.unwrap_err().code(), "E_EVENTFLOW_DATA_FOLDER");
}

#[tokio::test]
async fn a_revoked_one_is_replaced_under_another_id() {
    let authority = authority().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator.toml");
    let ensure = |revoked: &Revoked| {
        let now = SystemTime::now();
        ensure_operator_bundle(&path, &authority, "EVENTFLOW-SPOKE", &[hub_address()], revoked, now).unwrap()
    };
    let first = ensure(&Revoked::default());
    let (leaf, end) = first.leaf().unwrap();
    let row = crate::pki::CertificateRow {
        revoked: Some(end - 10_000),
        ..crate::pki::CertificateRow::keyless("OPERATOR", leaf, end)
    };
    let mut revoked = Revoked::default();
    assert!(revoked.add(&row));
    let second = ensure(&revoked);
    assert_ne!(second.uid().unwrap(), first.uid().unwrap());
    assert_eq!(ensure(&revoked), second);
}
