//! What is stored besides publishes: schedules, persisted events, batches.

use std::time::SystemTime;

use super::*;
use crate::{
    event::Append,
    spoke::{Schedule, ScheduleError},
};

impl FakeLink {
    async fn batch(&mut self) -> (Req, Vec<Append>) {
        match self.request().await {
            Request::Batch { req, events } => (req, events),
            other => panic!("expected a batch: {other:?}"),
        }
    }

    async fn schedule(&mut self) -> (Req, i64, EventId) {
        match self.request().await {
            Request::Schedule { req, due, event, .. } => (req, due, event.id),
            other => panic!("expected a schedule: {other:?}"),
        }
    }
}

fn committed(seq: u64) -> Published {
    Published::fresh(1000, seq)
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_a_lost_link_cuts_is_sent_again_under_the_same_id_for_the_same_date() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let publish = Publish::new("orders", "reminded", "order-1");
    let (scheduled, first) =
        tokio::join!(spoke.schedule(publish, Schedule::after(Duration::from_secs(60))), async {
            let (_, due, id) = link.schedule().await;
            drop(link);
            let mut link = hub.relinked().await;
            let (req, again, same) = link.schedule().await;
            assert_eq!((again, &same), (due, &id));
            link.ok(req, Answer::Scheduled { due, fresh: false }).await;
            (due, id)
        });
    let scheduled = scheduled.unwrap();
    assert_eq!((scheduled.due, scheduled.id, scheduled.fresh), (first.0, first.1, false));
}

#[tokio::test(start_paused = true)]
async fn a_date_that_is_past_or_none_is_refused_before_it_is_sent() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for when in
        [Schedule::at(hour_ago), Schedule::at(0), Schedule::at(i64::MAX), Schedule::after(Duration::MAX)]
    {
        let error = spoke.schedule(publish("a"), when).await.unwrap_err();
        assert!(matches!(error, ScheduleError::InvalidDate { .. }));
        assert_eq!((error.code(), error.is_retryable()), (code::SCHEDULE_INVALID_DATE, false));
    }
    let nobody = Publish::new("orders", "", "order-1");
    let error = spoke.schedule(nobody, Schedule::after(Duration::ZERO)).await.unwrap_err();
    assert_eq!(error.code(), code::INVALID_NAME);
    link.silence().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_is_persisted() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (persisted, ()) = tokio::join!(spoke.persist(publish("a")), async {
        let Request::Persist { req, event, .. } = link.request().await else { panic!("expected a persist") };
        assert_eq!(event.id.as_str(), "a");
        link.committed(req, true, 0).await;
    });
    assert_eq!(persisted, Ok(committed(0)));
}

#[tokio::test(start_paused = true)]
async fn a_batch_in_doubt_is_sent_again_under_the_same_ids_in_its_place() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let batch = vec![publish("a"), Publish::new("orders", "paid", "order-1"), publish("c")];
    let (published, ()) = tokio::join!(spoke.publish_all(batch), async {
        let (_, first) = link.batch().await;
        assert_eq!(first.len(), 3);
        let later = spoke.publish_later(publish("d")).await.unwrap();
        drop(link);
        let mut link = hub.relinked().await;
        let (req, again) = link.batch().await;
        assert_eq!(again, first);
        link.ok(req, Answer::Batch(vec![committed(1), committed(2), committed(3)])).await;
        let (req, id) = link.publish().await;
        assert_eq!(id.as_str(), "d");
        link.committed(req, true, 4).await;
        assert_eq!(later.await.unwrap().seq, 4);
    });
    assert_eq!(published, Ok(vec![committed(1), committed(2), committed(3)]));
    assert_eq!(spoke.publish_all(Vec::new()).await, Ok(Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_refuses_its_batch() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (published, ()) = tokio::join!(spoke.publish_all(vec![publish("a"), publish("b")]), async {
        let (req, _) = link.batch().await;
        link.refuse(req, code::EVENT_CONFLICT).await;
    });
    let error = published.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (code::EVENT_CONFLICT, false));
}

#[tokio::test(start_paused = true)]
async fn a_batch_beyond_the_hubs_limits_never_reaches_it() {
    let mut hub = FakeHub::new();
    let small = LinkLimits { data_bytes: 100, record_bytes: 1000, ..limits() };
    let (spoke, mut link) = hub.connected(config(), small).await;
    let of = |size: usize| publish("a").data(&"x".repeat(size)).unwrap();
    for (batch, code) in [
        (vec![of(10), of(200)], code::EVENT_TOO_LARGE),
        (vec![of(90); 10], code::RECORD_TOO_LONG),
        (vec![of(1); 1001], code::INVALID_BATCH),
        (vec![of(1), publish(" ")], code::INVALID_ID),
    ] {
        assert_eq!(spoke.publish_all(batch).await.unwrap_err().code(), code);
    }
    link.silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_counts_once_in_the_window_with_the_weight_of_its_events() {
    let mut hub = FakeHub::new();
    let narrow = LinkLimits { window_requests: 2, window_bytes: 300, ..limits() };
    let (spoke, mut link) = hub.connected(config(), narrow).await;
    let heavy =
        || vec![publish("a").data(&"x".repeat(100)).unwrap(), publish("b").data(&"x".repeat(100)).unwrap()];
    let first = tokio::spawn({
        let (spoke, batch) = (spoke.clone(), heavy());
        async move { spoke.publish_all(batch).await }
    });
    let (req, _) = link.batch().await;
    let mut second = tokio::spawn({
        let (spoke, batch) = (spoke.clone(), heavy());
        async move { spoke.publish_all(batch).await }
    });
    assert!(timeout(Duration::from_secs(5), &mut second).await.is_err());
    link.ok(req, Answer::Batch(vec![committed(1), committed(2)])).await;
    first.await.unwrap().unwrap();
    let (req, _) = link.batch().await;
    link.ok(req, Answer::Batch(vec![committed(3)])).await;
    let error = second.await.unwrap().unwrap_err();
    assert_eq!(error.code(), code::INVALID_RECORD, "an answer for each event is missing");
}
