//! Associations, deletion, cancelling: once, twice, and in doubt.

use super::*;
use crate::{
    spoke::{Association, ChangeError},
    wire::{self, Deletion},
};

#[tokio::test(start_paused = true)]
async fn an_event_is_associated_and_dissociated() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let parcel = Association::child_process("parcels", "parcel-7");
    let (done, mut link) = tokio::join!(spoke.associate("e1", parcel), async {
        // The second time is as good as the first.
        let Request::Associate { .. } = link.request().await else { panic!("expected an association") };
        drop(link);
        let mut link = hub.relinked().await;
        let Request::Associate { req, id, with } = link.request().await else { panic!("expected it again") };
        let wire::Association::ChildProcess { domain, cpid } = with else {
            panic!("expected a child process")
        };
        assert_eq!((id.as_str(), domain.as_str(), cpid.as_str()), ("e1", "parcels", "parcel-7"));
        link.ok(req, Answer::Done).await;
        link
    });
    assert_eq!(done, Ok(()));
    let (done, ()) = tokio::join!(spoke.dissociate("e2", Association::entity("customer-4")), async {
        let Request::Dissociate { req, with, .. } = link.request().await else {
            panic!("expected the end of one")
        };
        let wire::Association::Entity { eid } = with else { panic!("expected an entity") };
        assert_eq!(eid.as_str(), "customer-4");
        link.refuse(req, code::EVENT_NOT_FOUND).await;
    });
    assert_eq!(done, Err(ChangeError::NotFound { id: "e2".to_owned() }));
    for (with, code) in [
        (Association::entity(""), code::INVALID_EID),
        (Association::child_process("parcels", " "), code::INVALID_PID),
        (Association::child_process("*", "1"), code::INVALID_DOMAIN),
    ] {
        assert_eq!(spoke.associate("e1", with).await.unwrap_err().code(), code);
    }
    link.silence().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_when_a_deletion_is_asked_again_was_deleted_by_the_first_time() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (never, ()) = tokio::join!(spoke.delete("e1"), async {
        let Request::Delete { req, .. } = link.request().await else { panic!("expected a deletion") };
        link.refuse(req, code::EVENT_NOT_FOUND).await;
    });
    assert_eq!(never, Err(ChangeError::NotFound { id: "e1".to_owned() }));
    let (deleted, mut link) = tokio::join!(spoke.delete("e1"), async {
        link.request().await;
        drop(link);
        let mut link = hub.relinked().await;
        let Request::Delete { req, what } = link.request().await else { panic!("expected it again") };
        assert_eq!(what, Deletion::Event { id: EventId::parse("e1").unwrap() });
        link.refuse(req, code::EVENT_NOT_FOUND).await;
        link
    });
    assert_eq!(deleted, Ok(()));
    let (cancelled, mut link) = tokio::join!(spoke.cancel("e1"), async {
        link.request().await;
        drop(link);
        let mut link = hub.relinked().await;
        let Request::Cancel { req, .. } = link.request().await else { panic!("expected it again") };
        link.refuse(req, code::SCHEDULE_NOT_FOUND).await;
        link
    });
    assert_eq!(cancelled, Ok(()));
    let (ran, ()) = tokio::join!(spoke.cancel("e1"), async {
        let Request::Cancel { req, .. } = link.request().await else { panic!("expected a cancel") };
        link.refuse(req, code::SCHEDULE_EXECUTED).await;
    });
    assert_eq!(ran.unwrap_err().code(), code::SCHEDULE_EXECUTED);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_log_is_counted_and_a_refusal_for_now_is_asked_again() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let began = tokio::time::Instant::now();
    let (deleted, ()) = tokio::join!(spoke.delete_log("orders", "order-1"), async {
        let Request::Delete { req, .. } = link.request().await else { panic!("expected a deletion") };
        link.send(Reply::Err { req, fault: busy(700) }).await;
        let Request::Delete { req, what } = link.request().await else { panic!("expected it again") };
        assert!(began.elapsed() >= Duration::from_millis(700));
        assert!(matches!(what, Deletion::Log { .. }));
        link.ok(req, Answer::Deleted(2)).await;
    });
    assert_eq!(deleted, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_log_is_in_doubt_after_a_lost_link_and_is_not_sent_again() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (deleted, ()) = tokio::join!(spoke.delete_log("orders", "order-1"), async {
        let Request::Delete { .. } = link.request().await else { panic!("expected a deletion") };
        drop(link);
    });
    let error = deleted.unwrap_err();
    assert!(matches!(error, ChangeError::LinkLost(_)), "{error:?}");
    assert_eq!((error.code(), error.is_retryable()), (code::LINK_LOST, false));
    // The first that the next link carries is what is asked then.
    let mut link = hub.relinked().await;
    let (removed, ()) = tokio::join!(spoke.remove_recurring("nightly"), async {
        let Request::RecurChange { .. } = link.request().await else { panic!("expected a removal") };
        drop(link);
        let mut link = hub.relinked().await;
        // To be gone is what was meant, whoever did it.
        let Request::RecurChange { req, .. } = link.request().await else { panic!("expected it again") };
        let fault = Fault::refused(code::RECURRING_NOT_FOUND, "there is none");
        link.send(Reply::Err { req, fault }).await;
    });
    removed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_change_without_an_answer_times_out_and_says_that_it_is_in_doubt() {
    let mut hub = FakeHub::new();
    let mut config = config();
    config.request_deadline = Duration::from_secs(5);
    let (spoke, mut link) = hub.connected(config, limits()).await;
    let (deleted, ()) = tokio::join!(spoke.delete("e1"), async {
        let Request::Delete { req, .. } = link.request().await else { panic!("expected a deletion") };
        link.send(Reply::Err { req, fault: busy(60_000) }).await;
    });
    let error = deleted.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (code::TIMEOUT, true));
    assert!(error.to_string().contains("may be done or not"), "{error}");
    // Its caller is gone: it is not asked any more.
    link.silence().await;
}
