//! Who reads slowly is waited for.

use eventflow::{config::HubConfig, spoke::SpokeConfig};

use super::*;

/// Little may wait for a link here.
pub(super) fn narrow(config: &mut HubConfig) {
    config.limits.data_bytes = 64 * 1024;
    config.limits.outbound_bytes = 256 * 1024;
}

#[tokio::test]
async fn a_slow_link_is_paused_and_nothing_piles_up_for_it() {
    let hub = TestHub::with(narrow).await;
    let spoke = hub.spoke().await;
    let mut seqs = large(&spoke, 2_000).await;

    // 20 MB are there for it, and it takes none of them.
    let mut raw = hub.v1().await;
    raw.send(&["subscribe", "1", "1", "orders", "*", r#"{"from":"all"}"#]).await;
    let replayed = || hub.handle.metrics().hub.replayed;
    let mut before = u64::MAX;
    until("nothing more is sent", || {
        let now = replayed();
        let still = now > 0 && now == before;
        before = now;
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            still
        }
    })
    .await;
    assert!(replayed() < seqs.len() as u64 / 2, "{} of {} events were sent on", replayed(), seqs.len());
    // What comes meanwhile waits in the store too.
    seqs.extend(large(&spoke, 200).await);
    assert_eq!(hub.handle.metrics().hub.replays, 1);

    assert_eq!(raw.reply("1").await, ["ok", "1", "position", "0"]);
    for seq in &seqs {
        let record = raw.event().await;
        assert_eq!(record[..3], ["event".to_owned(), "1".to_owned(), seq.to_string()]);
    }
    until("it is live", || async { hub.handle.metrics().hub.replays == 0 }).await;
    let live = some(&spoke, 1).await[0];
    assert_eq!(raw.event().await[2], live.to_string());
    assert_eq!(hub.handle.metrics().hub.cuts.values().sum::<u64>(), 0, "no link was cut");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_slow_reader_of_the_client_misses_nothing_and_holds_little() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut config = SpokeConfig::from_bundle(hub.bundle());
    config.subscription_events = 16;
    let slow = Spoke::connect(config).await.unwrap();
    let mut subscription = slow.subscribe_from("orders", "*", Since::All).await.unwrap();
    let seqs = some(&spoke, 200).await;
    until("it lags", || async { slow.status().lagged > 0 }).await;
    assert_eq!(numbers_to(&mut subscription, seqs[199]).await, seqs);
    // Others of its link aren't held up by it, and it is live in the end.
    let live = some(&spoke, 1).await;
    assert_eq!(numbers_to(&mut subscription, live[0]).await, live);
    silent(&mut subscription).await;
    slow.close().await;
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_subscription_that_is_taken_back_leaves_nothing() {
    let hub = TestHub::with(narrow).await;
    let spoke = hub.spoke().await;
    large(&spoke, 1_000).await;
    let mut raw = hub.v1().await;
    for sub in ["1", "2", "3"] {
        raw.send(&["subscribe", sub, sub, "orders", "*", r#"{"from":"all"}"#]).await;
    }
    until("all of them began", || async { hub.handle.metrics().hub.replays == 3 }).await;
    for (req, sub) in [("4", "1"), ("5", "2"), ("6", "3")] {
        raw.send(&["unsubscribe", req, sub]).await;
    }
    until("all of them ended", || async { hub.handle.metrics().hub.replays == 0 }).await;
    assert_eq!(raw.reply("6").await, ["ok", "6"]);
    while raw.put_aside().is_some() {}
    some(&spoke, 1).await;
    assert_eq!(raw.ask(&["subscribe", "7", "1", "users", "*"]).await[..2], ["ok", "7"]);
    assert!(raw.put_aside().is_none(), "nothing comes for what was taken back");
    spoke.close().await;
    hub.stop().await;
}
