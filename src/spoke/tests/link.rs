//! The link itself: connecting, pings, silence, goodbyes, the end.

use super::*;
use crate::spoke::{ConnectError, PublishError};

#[tokio::test(start_paused = true)]
async fn a_wrong_first_byte_is_a_connect_error() {
    let mut hub = FakeHub::new();
    let connecting = Spoke::connect_by(config(), hub.connector.clone(), credentials());
    let (spoke, _link) = tokio::join!(connecting, async {
        let mut link = hub.accept().await;
        link.io.write_all(b"HTTP/1.1 400 Bad Request\r\n").await.unwrap();
        link
    });
    let error = spoke.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("hub.test:50001") && text.contains("0x48"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_spoke_that_connected_stands_linked_from_the_first_look() {
    let mut hub = FakeHub::new();
    let connecting = Spoke::connect_by(config(), hub.connector.clone(), credentials());
    let accepting = tokio::spawn(async move {
        let mut link = hub.accept().await;
        link.welcome(limits()).await;
        link
    });
    let spoke = connecting.await.unwrap();
    // Its task had no turn yet: nothing was awaited since.
    assert_eq!(spoke.status().hub.as_deref(), Some("HUB-1.EVENTFLOW-HUB"));
    accepting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn connect_ends_at_its_deadline_and_says_what_happened_where() {
    let mut hub = FakeHub::new();
    let mut config = config();
    config.connect_deadline = Duration::from_secs(25);
    let began = tokio::time::Instant::now();
    let connecting = Spoke::connect_by(config, hub.connector.clone(), credentials());
    let (spoke, ()) = tokio::join!(connecting, async {
        // The first try closes, the next ones are never answered.
        drop(hub.accept().await);
        let mut silent = Vec::new();
        for _ in 0..3 {
            let mut link = hub.accept().await;
            link.io.write_u8(READY).await.unwrap();
            silent.push(link);
        }
        // Until the spoke gives up on the last one.
        let last = silent.last_mut().unwrap();
        assert!(matches!(last.request().await, Request::Hello(_)));
        assert_eq!(last.next().await, None);
    });
    let error = spoke.unwrap_err();
    assert!(matches!(error, ConnectError::NoHub { .. }), "{error:?}");
    assert!(error.to_string().contains("`hello` was not answered"), "{error}");
    assert!(began.elapsed() >= Duration::from_secs(25));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_link_is_pinged_and_a_silent_hub_is_cut() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let began = tokio::time::Instant::now();
    let Request::Ping(n) = link.request().await else { panic!("expected a ping") };
    assert_eq!(began.elapsed().as_secs(), 30);
    link.send(Reply::Pong(n)).await;
    // From the pong on nothing is heard.
    let Request::Ping(_) = link.request().await else { panic!("expected a ping") };
    assert_eq!(began.elapsed().as_secs(), 60);
    assert_eq!(link.next().await, None);
    assert_eq!(began.elapsed().as_secs(), 90);
    hub.relinked().await;
    assert_eq!(spoke.status().links_lost, 1);
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered() {
    let mut hub = FakeHub::new();
    let (_spoke, mut link) = hub.connected(config(), limits()).await;
    link.send(Reply::Ping(42)).await;
    assert_eq!(link.request().await, Request::Pong(42));
}

#[tokio::test(start_paused = true)]
async fn a_draining_hub_is_left_for_at_least_the_wait_it_asks() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let pending = spoke.publish_later(publish("a")).await.unwrap();
    link.publish().await;
    let wait = Duration::from_secs(2);
    link.send(Reply::Bye(Fault::retryable(code::HUB_DRAINING, "the hub stops", wait))).await;
    let began = tokio::time::Instant::now();
    let mut link = hub.relinked().await;
    assert!(began.elapsed() >= wait);
    let (req, _) = link.publish().await;
    link.committed(req, true, 1).await;
    assert!(pending.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_revoked_certificate_ends_the_spoke_for_all_callers() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let pending = spoke.publish_later(publish("a")).await.unwrap();
    link.publish().await;
    let fault =
        Fault::refused(code::CERTIFICATE, "the certificate of WORKER-1 was revoked: get a new bundle");
    link.send(Reply::Bye(fault.clone())).await;
    assert_eq!(pending.await, Err(PublishError::Closed(fault.clone())));
    assert_eq!(spoke.publish(publish("b")).await, Err(PublishError::Closed(fault.clone())));
    let error = spoke.subscribe("orders", "*").await.unwrap_err();
    assert_eq!(error.code(), code::CERTIFICATE);
    assert!(spoke.status().closed);
    assert!(spoke.close().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn close_waits_for_publishes_and_refuses_new_ones() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let pending = spoke.publish_later(publish("a")).await.unwrap();
    let closing = tokio::spawn({
        let spoke = spoke.clone();
        async move { spoke.close().await }
    });
    let (req, _) = link.publish().await;
    let late = spoke.publish(publish("b")).await.unwrap_err();
    assert_eq!(late.code(), code::CLOSED);
    link.committed(req, true, 1).await;
    assert_eq!(link.next().await, None);
    drop(link);
    assert!(closing.await.unwrap().is_clean());
    assert!(pending.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn close_ends_at_its_deadline_and_says_what_is_left() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let pending = spoke.publish_later(publish("a")).await.unwrap();
    link.publish().await;
    let drained = spoke.close().await;
    assert_eq!(drained.publishes, 1);
    assert_eq!(pending.await.unwrap_err().code(), code::CLOSED);
}

#[tokio::test(start_paused = true)]
async fn when_every_handle_is_gone_what_is_left_is_published_and_the_link_ends() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let pending = spoke.publish_later(publish("a")).await.unwrap();
    drop(spoke);
    let (req, _) = link.publish().await;
    link.committed(req, true, 1).await;
    assert!(pending.await.is_ok());
    assert_eq!(link.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_was_held_up_itself_does_not_take_its_hub_for_silent() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    link.send(Reply::Ping(1)).await;
    tokio::time::advance(Duration::from_secs(61)).await;
    loop {
        match link.request().await {
            Request::Pong(1) => break,
            Request::Ping(_) => {}
            other => panic!("expected a pong: {other:?}"),
        }
    }
    assert_eq!(spoke.status().links_lost, 0);
}

#[tokio::test(start_paused = true)]
async fn the_reason_is_read_even_when_nothing_can_be_written() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let fault =
        Fault::refused(code::CERTIFICATE, "the certificate of WORKER-1 was revoked: get a new bundle");
    let pending = spoke.publish_later(publish("a")).await.unwrap();
    link.send(Reply::Bye(fault.clone())).await;
    drop(link);
    assert_eq!(pending.await, Err(PublishError::Closed(fault)));
}
