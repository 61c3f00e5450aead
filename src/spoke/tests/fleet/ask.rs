//! Reads, changes and waits with several hubs.

use super::*;
use crate::{
    spoke::{GroupError, ReadError, Wait, WaitError},
    wire::GroupChanged,
};

impl FakeLink {
    async fn read(&mut self) -> Req {
        match self.work().await {
            Request::Read { req, .. } => req,
            other => panic!("expected a read: {other:?}"),
        }
    }

    async fn waits(&mut self) -> Req {
        match self.work().await {
            Request::Wait { req, .. } => req,
            other => panic!("expected a wait: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_asked_of_the_first_hub_and_of_the_next_if_that_is_busy_or_lost() {
    let Two { spoke, mut to_a, mut to_b, .. } = two().await;
    let serving = async {
        let req = to_a.read().await;
        to_a.send(Reply::Err { req, fault: busy(1_000) }).await;
        let req = to_b.read().await;
        to_b.found(req, "e1").await;
    };
    let (read, ()) = tokio::join!(spoke.read("e1"), serving);
    assert_eq!(read.unwrap().id.as_str(), "e1");

    let serving = async {
        to_a.read().await;
        drop(to_a);
        let req = to_b.read().await;
        to_b.found(req, "e2").await;
    };
    let (read, ()) = tokio::join!(spoke.read("e2"), serving);
    assert_eq!(read.unwrap().id.as_str(), "e2");

    // All of them are busy.
    let serving = async {
        let req = to_b.read().await;
        to_b.send(Reply::Err { req, fault: busy(1_000) }).await;
    };
    let (read, ()) = tokio::join!(spoke.read("e3"), serving);
    assert_eq!(read, Err(ReadError::Refused(busy(1_000))));
}

#[tokio::test(start_paused = true)]
async fn the_first_hub_that_sees_it_ends_a_wait_and_only_the_last_one_says_that_it_is_late() {
    let Two { spoke, ports, mut to_a, mut to_b, .. } = two().await;
    let wait = || Wait::new("orders", "order-1").name("created").timeout(Duration::from_secs(20));
    let late = Fault::refused(code::WAIT_TIMEOUT, "it didn't come");
    let mut c = One::new(2, &ports);
    let serving = async {
        let (a, b) = (to_a.waits().await, to_b.waits().await);
        to_a.send(Reply::Err { req: a, fault: late.clone() }).await;
        // One that comes later is asked too.
        to_b.send(Reply::Online(c.address())).await;
        let mut to_c = c.linked(&[]).await;
        let req = to_c.waits().await;
        to_c.found(req, "e1").await;
        (b, to_c)
    };
    let (event, (_, mut to_c)) = tokio::join!(spoke.wait(wait()), serving);
    assert_eq!(event.unwrap().id.as_str(), "e1");

    let serving = async {
        for link in [&mut to_a, &mut to_b, &mut to_c] {
            let req = link.waits().await;
            link.send(Reply::Err { req, fault: late.clone() }).await;
        }
    };
    let (event, ()) = tokio::join!(spoke.wait(wait()), serving);
    assert!(matches!(event, Err(WaitError::TimedOut { .. })), "{event:?}");
}

#[tokio::test(start_paused = true)]
async fn what_every_hub_has_a_part_in_is_asked_of_each_and_put_together() {
    let Two { spoke, mut to_a, mut to_b, .. } = two().await;
    let group = spoke.group("billing");
    let purged = async |link: &mut FakeLink, events: u64| match link.work().await {
        Request::Group { req, .. } => {
            link.ok(req, Answer::Group(Box::new(GroupChanged { settings: None, events }))).await;
        }
        other => panic!("expected a change of a group: {other:?}"),
    };
    let (events, (), ()) = tokio::join!(group.purge(), purged(&mut to_a, 3), purged(&mut to_b, 4));
    assert_eq!(events, Ok(7));

    // What the first one has taken away is gone for the other.
    let gone = async {
        let Request::Group { req, .. } = to_b.work().await else { panic!("expected a change of a group") };
        to_b.refuse(req, code::GROUP_NOT_FOUND).await;
    };
    let (removed, (), ()) = tokio::join!(group.remove(), purged(&mut to_a, 0), gone);
    assert_eq!(removed, Ok(()));

    // A change in doubt at one of them is in doubt.
    let losing = async {
        assert!(matches!(to_b.work().await, Request::Group { .. }));
        drop(to_b);
    };
    let (events, (), ()) = tokio::join!(group.purge(), purged(&mut to_a, 3), losing);
    assert!(matches!(events, Err(GroupError::LinkLost(_))), "{events:?}");
}
