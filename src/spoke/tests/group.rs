//! Groups: what is asked of the hub, and what its answers become.

use super::*;
use crate::{
    event::Group,
    spoke::{GroupChange, GroupError, Timestamp, WaitError},
    wire::{
        Backlog, BacklogQuery, Dead, DeadQuery, Ended, GroupAction, GroupChanged, GroupSettings,
        OutcomeOptions, Redrive, StartAt,
    },
};

fn billing() -> Option<Group> {
    Some(Group::parse("billing").unwrap())
}

fn changed(settings: Option<GroupSettings>, events: u64) -> Answer {
    Answer::Group(Box::new(GroupChanged { settings, events }))
}

fn dead(id: &str) -> Dead {
    let event = event(id);
    Dead {
        id: event.id,
        domain: event.domain,
        name: event.name,
        pid: event.pid,
        ended: 9,
        consumer: None,
        round: 1,
        attempts: 5,
        reason: "nack".to_owned(),
        error: "no".to_owned(),
    }
}

impl FakeLink {
    async fn group(&mut self, expected: GroupAction, answer: Answer) {
        match self.request().await {
            Request::Group { req, group, action } => {
                assert_eq!((group, action), (billing(), expected));
                self.ok(req, answer).await;
            }
            other => panic!("expected a group: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_is_changed_through_its_handle() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let group = spoke.group("billing");
    let change = GroupChange::new()
        .max_attempts(8)
        .delay(Duration::from_secs(1))
        .max_delay(Duration::from_secs(60))
        .key_order(true)
        .dead_blocks(false)
        .no_dead_letter();
    let settings = GroupSettings {
        max_attempts: Some(8),
        delay: Some(1_000),
        max_delay: Some(60_000),
        key_order: Some(true),
        dead_blocks: Some(false),
        dead_letter: Some(String::new()),
    };
    let answer = changed(Some(settings.clone()), 0);
    let (set, ()) = tokio::join!(group.set(change), link.group(GroupAction::Set(settings.clone()), answer));
    assert_eq!(set, Ok(settings));
    let seek = GroupAction::Seek(StartAt::Time(5));
    let (sought, ()) = tokio::join!(group.seek(Timestamp::from(5)), link.group(seek, changed(None, 0)));
    assert_eq!(sought, Ok(()));
    let (purged, ()) = tokio::join!(group.purge(), link.group(GroupAction::Purge {}, changed(None, 12)));
    assert_eq!(purged, Ok(12));
    let pattern = |text: &'static str| crate::event::Pattern::parse(text).unwrap();
    let unbind = GroupAction::Unbind { domain: pattern("orders"), name: pattern("*") };
    let (unbound, ()) = tokio::join!(group.unbind("orders", "*"), link.group(unbind, changed(None, 0)));
    assert_eq!(unbound, Ok(()));
    for (wrong, code) in [
        (group.unbind("a.>.b", "*").await, code::INVALID_PATTERN),
        (spoke.group("").remove().await, code::INVALID_GROUP),
    ] {
        assert_eq!(wrong.unwrap_err().code(), code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_isnt_there_is_told() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let group = spoke.group("billing");
    let (purged, ()) = tokio::join!(group.purge(), async {
        let Request::Group { req, .. } = link.request().await else { panic!("a group") };
        link.refuse(req, code::GROUP_NOT_FOUND).await;
    });
    assert_eq!(purged, Err(GroupError::NotFound { group: "billing".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn a_purge_and_removals_are_in_doubt_after_a_lost_link_and_are_not_sent_again() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let group = Arc::new(spoke.group("billing"));
    let purging = tokio::spawn({
        let group = group.clone();
        async move { group.purge().await.map(drop) }
    });
    let Request::Group { .. } = link.request().await else { panic!("a purge") };
    let removing = tokio::spawn({
        let group = group.clone();
        async move { group.remove().await }
    });
    let Request::Group { .. } = link.request().await else { panic!("a removal") };
    let unbinding = tokio::spawn({
        let group = group.clone();
        async move { group.unbind("orders", "*").await }
    });
    let Request::Group { .. } = link.request().await else { panic!("the removal of a binding") };
    drop(link);
    for asked in [purging, removing, unbinding] {
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, GroupError::LinkLost(_)), "{error:?}");
        assert_eq!((error.code(), error.is_retryable()), (code::LINK_LOST, false));
        assert!(error.to_string().contains("may be done or not"), "{error}");
    }
    // The first that the next link carries is what is asked then.
    let mut link = hub.relinked().await;
    let seek = GroupAction::Seek(StartAt::Time(5));
    let (sought, ()) = tokio::join!(group.seek(Timestamp::from(5)), link.group(seek, changed(None, 0)));
    assert_eq!(sought, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_backlog_is_of_all_groups_or_of_one() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let stands = |group: Option<Group>| Backlog {
        group,
        settings: GroupSettings::default(),
        pending: Some(3),
        in_flight: 2,
        retrying: 1,
        dead: 4,
        oldest: Some(5),
        consumers: 1,
        bindings: Vec::new(),
        connected: Vec::new(),
    };
    for expected in [None, Some(""), Some("billing")] {
        let asked = async {
            match expected {
                None => spoke.backlog().await,
                Some("") => Ok(vec![spoke.default_group().backlog().await.unwrap()]),
                Some(name) => Ok(vec![spoke.group(name).backlog().await.unwrap()]),
            }
        };
        let (told, ()) = tokio::join!(asked, async {
            let Request::Backlog { req, query } = link.request().await else { panic!("a backlog") };
            assert_eq!(query, BacklogQuery { group: expected.map(str::to_owned) });
            link.ok(req, Answer::Backlog(vec![stands(billing())])).await;
        });
        assert_eq!(told, Ok(vec![stands(billing())]));
    }
}

#[tokio::test(start_paused = true)]
async fn dead_events_are_read_page_by_page_and_redriven() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let group = spoke.group("billing");
    let pattern = |text: &'static str| Some(crate::event::Pattern::parse(text).unwrap());
    let mut reader = group.dead().domain("orders").page_size(2);
    let (all, ()) = tokio::join!(reader.collect(9), async {
        for (page, ids, next) in [("", vec!["e1", "e2"], "p1"), ("p1", vec!["e3"], "")] {
            let Request::Dead { req, query, page: asked, limit } = link.request().await else {
                panic!("dead")
            };
            assert_eq!(query, DeadQuery { group: billing(), domain: pattern("orders"), name: None });
            assert_eq!((asked.as_str(), limit), (page, 2));
            let dead = ids.into_iter().map(dead).collect();
            link.ok(req, Answer::Dead { dead, next: next.to_owned() }).await;
        }
    });
    assert_eq!(all.unwrap(), ["e1", "e2", "e3"].map(dead));
    assert_eq!(group.dead().name("a.>.b").next_page().await.unwrap_err().code(), code::INVALID_PATTERN);

    let redriven = async |link: &mut FakeLink, expected: Redrive, count| {
        let Request::Redrive { req, what } = link.request().await else { panic!("a redrive") };
        assert_eq!(what, expected);
        link.ok(req, Answer::Redriven(count)).await;
    };
    let of = Redrive { group: billing(), ..Redrive::default() };
    let one = Redrive { id: Some(EventId::parse("e1").unwrap()), ..of.clone() };
    for (count, expected) in [(1, true), (0, false)] {
        let (was, ()) = tokio::join!(group.redrive("e1"), redriven(&mut link, one.clone(), count));
        assert_eq!(was, Ok(expected));
    }
    let all = Redrive { domain: pattern("orders"), name: pattern("*"), ..of };
    let (count, ()) = tokio::join!(group.redrive_all("orders", "*"), redriven(&mut link, all, 3));
    assert_eq!(count, Ok(3));
    let (alive, ()) = tokio::join!(group.redrive("e1"), async {
        let Request::Redrive { req, .. } = link.request().await else { panic!("a redrive") };
        link.refuse(req, code::NOT_DEAD).await;
    });
    assert_eq!(alive, Ok(false));
    let (gone, ()) = tokio::join!(group.redrive("e1"), async {
        let Request::Redrive { req, .. } = link.request().await else { panic!("a redrive") };
        link.refuse(req, code::EVENT_NOT_FOUND).await;
    });
    assert_eq!(gone, Err(GroupError::EventNotFound { id: "e1".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_the_groups_own() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let group = spoke.group("billing");
    let ended = Ended { state: "success".to_owned(), consumer: None, ended: 9, error: String::new() };
    let answer = async |link: &mut FakeLink, ended: Option<Ended>| {
        let Request::Outcome { req, options, .. } = link.request().await else { panic!("an outcome") };
        let OutcomeOptions { group, timeout_ms } = options;
        assert_eq!((group, timeout_ms == 0), (billing(), ended.is_none()));
        link.ok(req, Answer::Outcome(ended.map(Box::new))).await;
    };
    let waiting = group.outcome("e1", Duration::from_secs(5));
    let (outcome, ()) = tokio::join!(waiting, answer(&mut link, Some(ended.clone())));
    assert_eq!(outcome, Ok(ended.clone()));
    let (now, ()) = tokio::join!(group.outcome_now("e1"), answer(&mut link, None));
    assert_eq!(now, Ok(None));
    let publishing = group.publish_and_wait(publish("e1"), Duration::from_secs(5));
    let (both, ()) = tokio::join!(publishing, async {
        let (req, _) = link.publish().await;
        link.committed(req, true, 7).await;
        answer(&mut link, Some(ended.clone())).await;
    });
    assert_eq!(both.unwrap().1, ended);
    let wrong = spoke.group(" ").outcome("e1", Duration::from_secs(5)).await;
    assert!(matches!(wrong, Err(WaitError::Text(_))));
}
