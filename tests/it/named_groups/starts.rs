//! Where a group starts.

use eventflow::{
    event::EventId,
    spoke::{Consume, Publish, StartAt, Timestamp},
};

use super::{ids, orders, publish, take};
use crate::support::TestHub;

#[tokio::test]
async fn a_new_group_starts_now_or_with_all_or_at_a_time_or_after_an_event() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    publish(&spoke, ids("a", 5)).await;
    let between = std::time::SystemTime::now() + std::time::Duration::from_millis(2);
    while std::time::SystemTime::now() < between {
        tokio::task::yield_now().await;
    }
    publish(&spoke, ids("b", 5)).await;

    let mut now = spoke.claims(orders("now")).await.unwrap();
    let mut all = spoke.claims(orders("all").from(StartAt::All)).await.unwrap();
    let mut time = spoke.claims(orders("time").from(Timestamp::from(between))).await.unwrap();
    let mut after = spoke.claims(orders("after").from(EventId::parse("a003").unwrap())).await.unwrap();
    publish(&spoke, ids("c", 2)).await;
    let expected = |from: usize| [ids("a", 5), ids("b", 5), ids("c", 2)].concat().split_off(from);
    assert_eq!(take(&mut now, 2).await, expected(10));
    assert_eq!(take(&mut all, 12).await, expected(0));
    assert_eq!(take(&mut time, 7).await, expected(5));
    assert_eq!(take(&mut after, 8).await, expected(4));

    // A binding that exists stays as it is.
    let mut again = spoke.claims(orders("now").from(StartAt::All)).await.unwrap();
    now.stop().await.unwrap();
    publish(&spoke, ids("d", 1)).await;
    assert_eq!(take(&mut again, 1).await, ids("d", 1));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_start_that_is_none_is_refused() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let stored = Publish::new("orders", "created", "order-1").id("stored".to_owned());
    spoke.persist(stored).await.unwrap();
    let error = spoke.claims(orders("g").from(EventId::parse("nothing").unwrap())).await.unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_DB_EVENT_NOT_FOUND");
    let error = spoke.claims(orders("g").from(EventId::parse("stored").unwrap())).await.unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_INVALID_RECORD");
    let error = spoke.claims(Consume::new("orders", "*").from(StartAt::All)).await.unwrap_err();
    assert!(error.to_string().contains("named groups"), "{error}");
    assert_eq!(spoke.backlog().await.unwrap().len(), 1, "no group was made");
    spoke.close().await;
    hub.stop().await;
}
