//! Groups: outcomes by round, retries, letters, and what changes a group.

use super::*;
use crate::event::Pattern;
use crate::wire::GroupSettings;

fn mail(round: u32) -> GroupKey<'static> {
    GroupKey { name: "mail", round }
}

async fn open(store: &Store, key: GroupKey<'_>) -> Vec<(u64, u32, u32)> {
    let any = Pattern::any();
    let page = store.open_page(&hub(), key, 0, (&any, &any), 100, 1_000_000).await.unwrap();
    page.events.iter().map(|open| (open.seq, open.round, open.attempts)).collect()
}

async fn count(store: &Store, of: &str) -> i64 {
    number(store, &format!("SELECT count(*) FROM {of}")).await
}

fn letter(write: Write, event: Event, seq: u64) -> Write {
    with_letter(write, Letter { event, seq, publisher: uid("HUB-1") })
}

#[tokio::test]
async fn each_group_has_its_own_outcome() {
    let store = fresh().await;
    store.commit((1..=3).map(|n| publish(event(&format!("e{n}")), n)).collect()).await;
    let answers = store
        .commit(vec![
            finish("e1", 1, Outcome::Success),
            in_group(finish("e2", 2, Outcome::Success), "mail", 1, false),
            in_group(finish("e3", 3, Outcome::Dead), "mail", 1, false),
            in_group(finish("e3", 3, Outcome::Success), "post", 1, false),
        ])
        .await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(open(&store, GroupKey::DEFAULT).await, [(2, 1, 0), (3, 1, 0)]);
    assert_eq!(open(&store, mail(1)).await, [(1, 1, 0)]);
    assert_eq!(store.standing_in(&id("e1"), "mail").await.unwrap(), Standing::Open);
    let Standing::Ended(ended) = store.standing_in(&id("e3"), "mail").await.unwrap() else { panic!("open") };
    assert_eq!((ended.state.as_str(), ended.ended), ("dead", AT + 5));

    let again = in_group(finish("e2", 2, Outcome::Dead), "mail", 1, false);
    assert_eq!(code_of(&one(&store, again).await), code::CLAIM_LOST);
    let other = in_group(finish("e1", 9, Outcome::Dead), "mail", 1, false);
    assert_eq!(code_of(&one(&store, other).await), code::EVENT_NOT_FOUND, "another number");
    let nobody = in_group(finish("nobody", 1, Outcome::Dead), "mail", 1, false);
    let fine = in_group(finish("e1", 1, Outcome::Success), "mail", 1, false);
    let answers = store.commit(vec![nobody, fine]).await;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), [code::EVENT_NOT_FOUND, "ok"]);
}

#[tokio::test]
async fn a_retry_waits_until_its_outcome() {
    let store = fresh().await;
    store.commit(vec![publish(event("e"), 1), publish(event("f"), 2)]).await;
    for group in ["", "mail"] {
        let key = GroupKey { name: group, round: 1 };
        one(&store, retry("e", 1, group, (1, 1), AT + 10)).await.unwrap();
        one(&store, retry("e", 1, group, (1, 2), AT + 20)).await.unwrap();
        assert_eq!(open(&store, key).await, [(2, 1, 0)]);
        let page = store.retry_page(&hub(), group, (0, 0), AT + 20, 10, 1_000).await.unwrap();
        assert_eq!((page.events.len(), page.events[0].open.attempts, page.next), (1, 2, None));
        let last = in_group(finish("e", 1, Outcome::Success), group, 1, true);
        one(&store, last).await.unwrap();
        let late = retry("e", 1, group, (1, 3), AT + 30);
        assert_eq!(code_of(&one(&store, late).await), code::CLAIM_LOST);
        assert_eq!(store.group_counts(&hub(), key).await.unwrap(), GroupCounts::default());
    }
    assert_eq!(count(&store, "v1_attempt").await, 4, "what was refused left nothing");
    // In one batch, whatever their order.
    let batch = vec![
        retry("f", 2, "mail", (1, 1), AT),
        in_group(finish("f", 2, Outcome::Success), "mail", 1, false),
        finish("f", 2, Outcome::Success),
        retry("f", 2, "", (1, 1), AT),
    ];
    let answers = store.commit(batch).await;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), ["ok", "ok", "ok", code::CLAIM_LOST]);
    assert_eq!(count(&store, "v1_retry").await, 0);
}

#[tokio::test]
async fn of_the_retries_of_one_batch_the_last_stands_and_what_was_written_is_not_written_again() {
    let store = fresh().await;
    store.commit(vec![publish(event("e"), 1), publish(event("f"), 2)]).await;
    let writes = || {
        vec![
            retry("e", 1, "mail", (1, 1), AT + 10),
            retry("e", 1, "", (1, 1), AT),
            retry("f", 2, "mail", (1, 1), AT + 30),
            retry("e", 1, "mail", (1, 2), AT + 20),
        ]
    };
    for _ in 0..2 {
        let answers = store.commit(writes()).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        let page = store.retry_page(&hub(), "mail", (0, 0), AT + 99, 9, 9_999).await.unwrap();
        let waits: Vec<_> = page.events.iter().map(|retry| (retry.open.attempts, retry.due)).collect();
        assert_eq!(waits, [(2, AT + 20), (1, AT + 30)]);
        assert_eq!(count(&store, "v1_attempt").await, 4);
    }
    let twice = store.commit(vec![writes().remove(2), writes().remove(2)]).await;
    assert!(twice.iter().all(Result::is_ok), "{twice:?}");
    assert_eq!(count(&store, "v1_attempt").await, 4);
}

#[tokio::test]
async fn a_letter_is_published_with_its_outcome_once() {
    let store = fresh().await;
    store.commit(vec![publish(event("e"), 1), publish(event("f"), 2)]).await;
    let dead = |group: &str| in_group(finish("e", 1, Outcome::Dead), group, 1, false);
    let told = Event { rid: Some(id("e")), ..event("dl-1") };
    let first = one(&store, letter(dead("mail"), told.clone(), 7)).await.unwrap();
    assert_eq!(first, Written::Finished { letter: true });
    assert_eq!(open(&store, GroupKey::DEFAULT).await, [(1, 1, 0), (2, 1, 0), (7, 1, 0)]);
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 7);
    assert_eq!(store.event(&id("dl-1")).await.unwrap(), Some(told.clone()));

    let second = one(&store, letter(dead("post"), told.clone(), 8)).await.unwrap();
    assert_eq!(second, Written::Finished { letter: false }, "its id is there");
    let refused = letter(dead("mail"), event("dl-2"), 9);
    assert_eq!(code_of(&one(&store, refused).await), code::CLAIM_LOST);
    assert_eq!(store.event(&id("dl-2")).await.unwrap(), None);
    // What it answered was deleted since.
    let answering = Event { rid: Some(id("gone")), ..event("dl-3") };
    let third = one(&store, letter(finish("f", 2, Outcome::Dead), answering, 10)).await.unwrap();
    assert_eq!(third, Written::Finished { letter: true });
    assert_eq!(store.event(&id("dl-3")).await.unwrap(), Some(event("dl-3")));
}

#[tokio::test]
async fn a_group_is_made_set_and_listed() {
    let store = fresh().await;
    one(&store, Write::Bind(binding("mail", "*", "*", 1))).await.unwrap();
    let settings = GroupSettings { max_attempts: Some(8), ..GroupSettings::default() };
    for name in ["post", "", "mail"] {
        let (name, settings) = (name.to_owned(), settings.clone());
        one(&store, Write::SetGroup { name, settings, at: AT + 9 }).await.unwrap();
    }
    one(&store, Write::Bind(binding("mail", "orders", "*", 1))).await.unwrap();
    let row = |name: &str, created| GroupRow {
        name: name.to_owned(),
        settings: settings.clone(),
        round: 1,
        created,
    };
    assert_eq!(store.groups().await.unwrap(), [row("", AT + 9), row("mail", AT), row("post", AT + 9)]);
}

fn seek(group: &str, start_seq: u64) -> Write {
    Write::Seek { group: group.into(), start_seq, hub: hub(), at: AT, by: uid("SPOKE-9") }
}

#[tokio::test]
async fn a_group_serves_again_from_where_it_seeks() {
    let store = fresh().await;
    store.commit((1..=4).map(|n| publish(event(&format!("e{n}")), n)).collect()).await;
    one(&store, Write::Bind(binding("mail", "*", "*", 1))).await.unwrap();
    one(&store, Write::Cursor { hub: hub(), group: "mail".into(), seq: 4, known: None }).await.unwrap();
    let done = (1..=3).map(|n| in_group(finish(&format!("e{n}"), n, Outcome::Dead), "mail", 1, false));
    store.commit(done.collect()).await;
    one(&store, redrive("mail", Some("e1"))).await.unwrap();
    assert_eq!(one(&store, seek("mail", 2)).await.unwrap(), Written::Sought { round: 3 });
    assert_eq!(store.cursor(&hub(), "mail").await.unwrap(), Some(1));
    assert_eq!(store.bindings().await.unwrap()[0].start_seq, 2);
    assert_eq!(store.groups().await.unwrap()[0].round, 3);
    assert_eq!(open(&store, mail(3)).await, [(1, 3, 0), (2, 3, 0), (3, 3, 0), (4, 3, 0)]);
    assert_eq!(store.group_counts(&hub(), mail(3)).await.unwrap(), GroupCounts::default());
    assert_eq!(store.standing_in(&id("e2"), "mail").await.unwrap(), Standing::Open);
    one(&store, in_group(finish("e2", 2, Outcome::Dead), "mail", 3, false)).await.unwrap();
    assert_eq!(store.group_counts(&hub(), mail(3)).await.unwrap().dead, 1);
    assert_eq!(one(&store, seek("mail", 4)).await.unwrap(), Written::Sought { round: 4 });
    assert_eq!(code_of(&one(&store, seek("nobody", 4)).await), code::GROUP_NOT_FOUND);
    assert_eq!(count(&store, "log WHERE message LIKE 'sought%'").await, 2);
}

#[tokio::test]
async fn what_waits_is_passed_over_by_a_purge() {
    let store = fresh().await;
    store.commit((1..=4).map(|n| publish(event(&format!("e{n}")), n)).collect()).await;
    one(&store, Write::Bind(binding("mail", "*", "*", 1))).await.unwrap();
    one(&store, Write::Cursor { hub: hub(), group: "mail".into(), seq: 0, known: None }).await.unwrap();
    store.commit(vec![retry("e1", 1, "mail", (1, 1), AT), retry("e2", 2, "mail", (1, 1), AT)]).await;
    let purge = |group: &str| Write::Purge {
        group: group.into(),
        start_seq: 5,
        hub: hub(),
        at: AT,
        by: uid("SPOKE-9"),
    };
    assert_eq!(one(&store, purge("mail")).await.unwrap(), Written::Purged { retrying: 2 });
    assert_eq!(store.cursor(&hub(), "mail").await.unwrap(), Some(4));
    assert!(!store.bindings().await.unwrap()[0].wants("orders", "created", 4));
    assert_eq!(count(&store, "v1_retry").await, 0);
    assert_eq!(one(&store, purge("mail")).await.unwrap(), Written::Purged { retrying: 0 });
    assert_eq!(code_of(&one(&store, purge("nobody")).await), code::GROUP_NOT_FOUND);
}

#[tokio::test]
async fn a_removed_group_leaves_nothing_and_begins_anew() {
    let store = fresh().await;
    store.commit((1..=6).map(|n| publish(event(&format!("e{n}")), n)).collect()).await;
    one(&store, Write::Bind(binding("mail", "*", "*", 1))).await.unwrap();
    one(&store, Write::Cursor { hub: hub(), group: "mail".into(), seq: 4, known: None }).await.unwrap();
    let mut batch: Vec<Write> =
        (1..=5).map(|n| in_group(finish(&format!("e{n}"), n, Outcome::Success), "mail", 1, false)).collect();
    batch.push(retry("e6", 6, "mail", (1, 1), AT));
    batch.push(in_group(finish("e1", 1, Outcome::Success), "post", 1, false));
    assert!(store.commit(batch).await.iter().all(Result::is_ok));
    let remove =
        || Write::RemoveGroup { group: "mail".into(), hub: hub(), at: AT, by: uid("SPOKE-9"), most: 2 };
    assert_eq!(one(&store, remove()).await.unwrap(), Written::Removed { more: true });
    assert!(store.bindings().await.unwrap().is_empty() && store.groups().await.unwrap().is_empty());
    assert_eq!(store.cursor(&hub(), "mail").await.unwrap(), None);
    // Cut short, and made anew: what was left doesn't count.
    one(&store, Write::SetGroup { name: "mail".into(), settings: GroupSettings::default(), at: AT })
        .await
        .unwrap();
    assert_eq!(store.groups().await.unwrap()[0].round, 2);
    assert_eq!(open(&store, mail(2)).await.len(), 6);

    assert_eq!(one(&store, remove()).await.unwrap(), Written::Removed { more: true });
    assert_eq!(one(&store, remove()).await.unwrap(), Written::Removed { more: false });
    assert_eq!(one(&store, remove()).await.unwrap(), Written::Removed { more: false });
    for table in ["v1_attempt", "v1_retry", "v1_outcome WHERE grp = 'mail'"] {
        assert_eq!(count(&store, table).await, 0, "{table}");
    }
    assert_eq!(count(&store, "v1_outcome").await, 1, "the other group's");
    assert_eq!(count(&store, "log WHERE message LIKE 'removed%'").await, 2);
}

#[tokio::test]
async fn a_removed_group_leaves_no_attempts_of_what_was_only_offered_again() {
    let store = fresh().await;
    store.commit((1..=3).map(|n| publish(event(&format!("e{n}")), n)).collect()).await;
    one(&store, Write::Bind(binding("mail", "*", "*", 1))).await.unwrap();
    let lost = |group: &str, n: u64| {
        Write::Attempt(AttemptRow { group: group.into(), ..attempt(&format!("e{n}"), 1) })
    };
    let batch = (1..=3).map(|n| lost("mail", n)).chain([lost("post", 1)]);
    assert!(store.commit(batch.collect()).await.iter().all(Result::is_ok));
    assert_eq!(open(&store, mail(1)).await, [(1, 1, 1), (2, 1, 1), (3, 1, 1)]);
    let remove =
        || Write::RemoveGroup { group: "mail".into(), hub: hub(), at: AT, by: uid("SPOKE-9"), most: 2 };
    assert_eq!(one(&store, remove()).await.unwrap(), Written::Removed { more: true });
    assert_eq!(one(&store, remove()).await.unwrap(), Written::Removed { more: false });
    assert_eq!(count(&store, "v1_attempt").await, 1, "the other group's");
    one(&store, Write::Bind(binding("mail", "*", "*", 1))).await.unwrap();
    assert_eq!(open(&store, mail(1)).await, [(1, 1, 0), (2, 1, 0), (3, 1, 0)]);
}
