//! What becomes of certificates when the clock is set back.

use std::time::SystemTime;

use super::*;
use crate::pki::{FreshKey, Revoked, Vault, operator_bundle, testing::*};

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

async fn established(rows: &MemoryRows, now: SystemTime) -> Authority {
    establish(rows, &vault(), &names(), Lifetimes::default(), now).await.unwrap()
}

#[tokio::test]
async fn what_a_clock_that_was_ahead_made_is_made_anew() {
    for (days, anew) in [(8, &[HUB_ID][..]), (400, &["EVENTFLOW-HUB", HUB_ID, "EVENTFLOW-SPOKE"])] {
        let rows = MemoryRows::default();
        let first = established(&rows, now()).await;
        let bundle = |standing: Option<&Bundle>, authority: &Authority, now| {
            operator_bundle(standing, authority, "EVENTFLOW-SPOKE", &[], &Revoked::default(), now).unwrap()
        };
        let ahead = established(&rows, now() + days * DAY).await;
        assert!(ahead.holds_from().unwrap() > crate::pki::unix_seconds(now() + (days - 1) * DAY));
        assert!(ahead.early().is_empty());
        let operators = bundle(None, &ahead, now() + days * DAY);
        operators.check(now()).unwrap_err();

        let back = established(&rows, now()).await;
        assert!(back.holds_from().unwrap() <= crate::pki::unix_seconds(now()));
        let early = back.early();
        let told = |id: &&str| early.iter().any(|told| told.starts_with(&format!("{id} held only from ")));
        assert!(anew[..1].iter().all(told) && early.len() <= anew.len(), "{early:?}");
        assert!(early[0].contains("2027") && early[0].contains(", at Jan 15"), "both times: {early:?}");
        assert_eq!(back.root(), first.root());
        back.issue_bundle(SPOKE_ID, vec![], now()).unwrap().check(now()).unwrap();
        let renewed = bundle(Some(&operators), &back, now());
        renewed.check(now()).unwrap();
        assert_eq!(renewed.uid().unwrap(), operators.uid().unwrap());
        // Once is enough.
        assert!(established(&rows, now()).await.early().is_empty());
        assert!(back.renew_at() > now());
    }
}

#[tokio::test]
async fn a_clock_that_is_late_by_less_than_the_back_dating_changes_nothing() {
    let rows = MemoryRows::default();
    let first = established(&rows, now()).await;
    let late = established(&rows, now() - crate::pki::BACKDATE).await;
    assert!(first.certificates().eq(late.certificates()));
}

#[tokio::test]
async fn a_root_that_does_not_hold_yet_is_an_error_that_names_the_clock() {
    let rows = MemoryRows::default();
    let ahead = established(&rows, now() + 8 * DAY).await;
    let (vault, names, lives): (Vault, Names, _) = (vault(), names(), Lifetimes::default());
    let errors = [
        establish(&rows, &vault, &names, lives, now()).await.unwrap_err(),
        renew(&rows, &vault, &names, lives, now(), &ahead).await.unwrap_err(),
        Signer::open(&rows, &vault, "EVENTFLOW-SPOKE", lives, now()).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), "E_EVENTFLOW_AUTHORITY_GONE");
        let text = error.to_string();
        for part in [ROOT_ID, "holds only from Jan 23", "says Jan 15", "set the clock right", "revoked"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }
    let again = established(&rows, now() + 8 * DAY).await;
    assert!(again.certificates().eq(ahead.certificates()), "nothing was thrown away");
}

#[tokio::test]
async fn an_intermediate_that_does_not_hold_yet_issues_nothing() {
    let rows = MemoryRows::default();
    established(&rows, now()).await;
    established(&rows, now() + 400 * DAY).await;
    let lives = Lifetimes::default();
    let signer = Signer::open(&rows, &vault(), "EVENTFLOW-SPOKE", lives, now()).await.unwrap();
    let key = FreshKey::generate().unwrap();
    let leaf = signer.certify(SPOKE_ID, key.public_key(), DAY, now()).await.unwrap();
    Bundle::new(leaf.cert, key.private_key().clone(), leaf.root).check(now()).unwrap();
}
