use super::*;
use crate::{
    metrics::ActorKind,
    pki::{Lifetimes, authority, testing::*},
    store::{Place, Store, StoreConfig},
};

/// A warden's office whose leaf was made by a clock that was 8 days ahead; what it made then.
async fn ahead() -> (Office, Authority) {
    let store = Store::open(&StoreConfig::new(Place::Memory)).await.unwrap();
    let lifetimes = Lifetimes::default();
    let office = Office { store, vault: vault(), names: names(), lifetimes, hubs: vec![] };
    let now = SystemTime::now();
    let Office { store, vault, names, .. } = &office;
    authority::establish(store, vault, names, lifetimes, now).await.unwrap();
    let ahead = authority::establish(store, vault, names, lifetimes, now + 8 * DAY).await.unwrap();
    (office, ahead)
}

fn nowhere() -> OwnConfig {
    OwnConfig { bundle: None, hubs: vec![] }
}

fn holds(authority: &Authority) -> bool {
    authority.holds_from().unwrap() <= unix_seconds(SystemTime::now())
}

#[actix::test]
async fn a_start_makes_anew_what_a_clock_that_was_ahead_made() {
    let (office, ahead) = ahead().await;
    assert!(!holds(&ahead));
    let commission = Commission::prepare(office, nowhere()).await.unwrap();
    assert!(holds(commission.authority()));
    assert!(commission.authority().early()[0].starts_with(HUB_ID));
    commission.established.bundle.check(SystemTime::now()).unwrap();
}

#[actix::test]
async fn a_hub_that_runs_makes_its_leaf_anew_when_its_clock_is_set_back() {
    let (office, ahead) = ahead().await;
    let (own, now) = (nowhere(), SystemTime::now());
    let watch = Watch::new(watch::Found::default(), unix_seconds(now));
    let established = own::complete(&office, &own, ahead, None, &watch.revoked()).await.unwrap();
    assert_eq!(established.left(now), 0, "it doesn't hold yet");
    assert!(established.is_due(now) && established.due > now);
    let tls = channel::Sender::new(Tls(own::acceptor(&office, &established, watch.revoked()).unwrap()));
    let bundle = channel::Sender::new(established.bundle.clone());
    let authority = channel::Sender::new(established.shared_authority());
    let commission = Commission { office, own, established, watch, tls, bundle, authority };

    let (mut authorities, metrics) = (commission.authorities(), Metrics::new());
    let meter = metrics.meter(ActorKind::Warden);
    let life = Life::begin(ActorKind::Warden, 0, meter.clone(), tokio::sync::mpsc::unbounded_channel().0);
    let warden = Warden::new(commission, metrics.clone(), meter, life).start();
    tokio::time::timeout(Duration::from_secs(20), authorities.changed()).await.unwrap().unwrap();
    assert!(holds(&authorities.borrow()));
    assert!(authorities.borrow().early()[0].starts_with(HUB_ID));
    let left = metrics.hub().leaf_left.get();
    assert!(left > 0 && left <= 7 * 86_400, "{left}");
    drop(warden);
}
