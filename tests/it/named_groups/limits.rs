//! What groups are refused.

use crate::support::TestHub;

#[tokio::test]
async fn a_hub_keeps_a_thousand_named_groups() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for n in 0..1_000 {
        let (req, group) = ((n + 1).to_string(), format!("group-{n}"));
        link.send(&["group", &req, &group, r#"{"set":{}}"#]).await;
        if n % 100 == 99 {
            assert_eq!(link.reply(&req).await[..2], ["ok", &req]);
        }
    }
    let refused = link.ask(&["group", "5000", "one-more", r#"{"set":{}}"#]).await;
    assert_eq!(refused[..3], ["err", "5000", "E_EVENTFLOW_TOO_MANY_GROUPS"]);
    let refused = link.ask(&["consume", "5001", "1", "one-more", "a", "b", r#"{"credit":1}"#]).await;
    assert_eq!(refused[..3], ["err", "5001", "E_EVENTFLOW_TOO_MANY_GROUPS"]);
    let removed = link.ask(&["group", "5002", "group-7", r#"{"remove":{}}"#]).await;
    assert_eq!(removed[..3], ["ok", "5002", "group"]);
    let joined = link.ask(&["consume", "5003", "1", "one-more", "a", "b", r#"{"credit":1}"#]).await;
    assert_eq!(joined[..3], ["ok", "5003", "position"], "the number of the refused one is free");
    let stopped = link.ask(&["stop", "5004", "1"]).await;
    assert_eq!(stopped[..2], ["ok", "5004"]);
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn what_makes_a_group_lose_something_needs_the_right_to_delete() {
    let hub = TestHub::with(|config| config.spokes.may_delete = false).await;
    let mut link = hub.v1().await;
    let set = link.ask(&["group", "1", "g", r#"{"set":{"max_attempts":3}}"#]).await;
    assert_eq!(set[..2], ["ok", "1"], "{set:?}");
    for (req, action) in
        ["{\"seek\":\"all\"}", "{\"purge\":{}}", "{\"remove\":{}}", r#"{"unbind":{"domain":"a","name":"b"}}"#]
            .iter()
            .enumerate()
    {
        let req = (req + 2).to_string();
        let refused = link.ask(&["group", &req, "g", action]).await;
        assert_eq!(refused[..3], ["err", &req, "E_EVENTFLOW_NOT_ALLOWED"]);
    }
    let refused = link.ask(&["redrive", "9", r#"{"group":"g","domain":"*"}"#]).await;
    assert_eq!(refused[..3], ["err", "9", "E_EVENTFLOW_NOT_ALLOWED"]);
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn the_default_group_is_neither_sought_nor_purged_nor_removed() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for (req, action) in [("1", r#"{"seek":"all"}"#), ("2", r#"{"purge":{}}"#), ("3", r#"{"remove":{}}"#)] {
        let refused = link.ask(&["group", req, "", action]).await;
        assert_eq!(refused[..3], ["err", req, "E_EVENTFLOW_INVALID_RECORD"], "{refused:?}");
    }
    let unknown = link.ask(&["group", "4", "nobody", r#"{"purge":{}}"#]).await;
    assert_eq!(unknown[..3], ["err", "4", "E_EVENTFLOW_GROUP_NOT_FOUND"]);
    let unknown = link.ask(&["backlog", "5", r#"{"group":"nobody"}"#]).await;
    assert_eq!(unknown[..3], ["err", "5", "E_EVENTFLOW_GROUP_NOT_FOUND"]);
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn a_consumer_that_ends_is_told_so_on_its_link_and_its_number_is_free() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.ask(&["consume", "1", "7", "g", "orders", "*", r#"{"credit":1}"#]).await;
    link.ask(&["group", "2", "g", r#"{"remove":{}}"#]).await;
    let ended = link.event().await;
    assert_eq!(ended[..3], ["ended", "7", "E_EVENTFLOW_GROUP_NOT_FOUND"], "{ended:?}");
    let joined = link.ask(&["consume", "3", "7", "g", "orders", "*", r#"{"credit":1}"#]).await;
    assert_eq!(joined[..2], ["ok", "3"]);
    drop(link);
    hub.stop().await;
}
