//! Redrives, and that each write of groups is done whole or not at all, and once.

use super::*;
use crate::event::{Group, Pattern};
use crate::store::engine::Engine;
use crate::wire::{GroupSettings, Redrive};

fn done(answer: Answer) -> Redriven {
    match answer {
        Ok(Written::Redriven(done)) => done,
        other => panic!("{other:?}"),
    }
}

/// The group `mail`, which nobody consumes yet.
fn mail() -> Write {
    Write::SetGroup { name: "mail".into(), settings: GroupSettings::default(), at: AT }
}

#[tokio::test]
async fn a_redrive_opens_a_new_round_and_keeps_the_old_one() {
    let store = fresh().await;
    for what in [None, Some("e")] {
        assert_eq!(code_of(&one(&store, redrive("mail", what)).await), code::GROUP_NOT_FOUND);
    }
    one(&store, mail()).await.unwrap();
    store.commit(vec![publish(event("e"), 1), publish(event("f"), 2)]).await;
    for group in ["", "mail"] {
        let key = GroupKey { name: group, round: 1 };
        let failed = AttemptRow { group: group.into(), ..attempt("e", 1) };
        let dead = in_group(ended("e", 1, Outcome::Dead, "S", AT, Some(failed)), group, 1, false);
        one(&store, dead).await.unwrap();
        assert_eq!(code_of(&one(&store, redrive(group, Some("f"))).await), code::NOT_DEAD);
        assert_eq!(code_of(&one(&store, redrive(group, Some("nobody"))).await), code::EVENT_NOT_FOUND);
        let again = done(one(&store, redrive(group, Some("e"))).await);
        assert_eq!((again.events, again.more), (1, false));
        assert_eq!(code_of(&one(&store, redrive(group, Some("e"))).await), code::NOT_DEAD);
        assert_eq!(store.standing_in(&id("e"), group).await.unwrap(), Standing::Open);
        let page = store.retry_page(&hub(), group, (0, 0), AT + 50, 10, 1_000).await.unwrap();
        let retry = &page.events[0];
        assert_eq!((retry.open.round, retry.open.attempts, retry.due), (2, 0, AT + 50));
        assert!(!retry.open.claimed);

        // And once more.
        one(&store, in_group(finish("e", 1, Outcome::Dead), group, 2, true)).await.unwrap();
        assert_eq!(store.group_counts(&hub(), key).await.unwrap().dead, 1);
        assert_eq!(done(one(&store, redrive(group, None)).await).events, 1);
        let page = store.retry_page(&hub(), group, (0, 0), AT + 50, 10, 1_000).await.unwrap();
        assert_eq!(page.events[0].open.round, 3);
        one(&store, in_group(finish("e", 1, Outcome::Success), group, 3, true)).await.unwrap();
        assert_eq!(store.group_counts(&hub(), key).await.unwrap(), GroupCounts::default());
    }
    let (_, trace) = store.trace(&id("e")).await.unwrap().unwrap();
    assert_eq!(trace.state, "success");
    let rounds: Vec<_> = trace.groups.iter().map(|group| (group.state.as_str(), group.round)).collect();
    assert_eq!(rounds, [("success", 3), ("success", 3)]);
    let lines = "SELECT message FROM log WHERE message LIKE '%default group%' ORDER BY message";
    assert_eq!(
        texts(&store, lines).await,
        [
            "redriven: 1 events of the default group, by SPOKE-9",
            r#"redriven: the event "e" in the default group, by SPOKE-9"#
        ]
    );
}

#[tokio::test]
async fn all_that_match_are_redriven_in_parts_and_none_twice() {
    let store = fresh().await;
    one(&store, mail()).await.unwrap();
    let name = |n: u64| if n.is_multiple_of(2) { "now.paid" } else { "now.created" };
    let events = (1..=9).map(|n| {
        let event = Event { name: Name::parse(name(n)).unwrap(), ..event(&format!("e{n}")) };
        publish(event, n)
    });
    store.commit(events.collect()).await;
    // SQL can't narrow by this one.
    let created = Pattern::parse("*.created").unwrap();
    for group in ["", "mail"] {
        let dead = |n: u64, (round, waited)| {
            in_group(finish(&format!("e{n}"), n, Outcome::Dead), group, round, waited)
        };
        store.commit((1..=9).map(|n| dead(n, (1, false))).collect()).await;
        let of = (!group.is_empty()).then(|| Group::parse(group.to_owned()).unwrap());
        let what = Redrive { group: of, name: Some(created.clone()), ..Redrive::default() };
        let (mut after, mut events) = (0, 0);
        loop {
            let what = what.clone();
            let write =
                Write::Redrive { what, hub: hub(), at: AT, by: uid("SPOKE-9"), most: 2, after, first: 0 };
            let part = done(one(&store, write).await);
            assert!(part.events <= 2 && part.after >= after, "{part:?}");
            (after, events) = (part.after, events + part.events);
            // They die again at once.
            let page = store.retry_page(&hub(), group, (0, 0), AT, 10, 9_999).await.unwrap();
            let again = page.events.iter().map(|retry| dead(retry.open.seq, (2, true)));
            assert!(store.commit(again.collect()).await.iter().all(Result::is_ok));
            if !part.more {
                break;
            }
        }
        assert_eq!(events, 5);
        let counts = store.group_counts(&hub(), GroupKey { name: group, round: 1 }).await.unwrap();
        assert_eq!((counts.retrying, counts.dead), (0, 9));
    }
}

#[tokio::test]
async fn what_an_npm_spoke_left_is_taken_back_if_it_is_named() {
    let store = fresh().await;
    store.register_hub(&hub_row("HUB-2")).await.unwrap();
    let elsewhere =
        Write::Publish { event: event("h2"), seq: 9, publisher: uid("S"), hub: uid("HUB-2"), expect: None };
    store.commit(vec![publish(event("left"), 1), publish(event("bad"), 2), elsewhere]).await;
    sql(&store, "UPDATE event_published SET consumed_spoke = published, consumer = 'NPM'").await;
    sql(&store, "UPDATE event_published SET failed = published WHERE event_id = 'bad'").await;
    let (dead, _) = store.dead_page(&hub(), &crate::wire::DeadQuery::default(), "", 10).await.unwrap();
    assert_eq!(
        (dead.len(), dead[0].consumer.clone(), dead[0].reason.as_str()),
        (1, Some(uid("NPM")), "failed")
    );

    assert_eq!(done(one(&store, redrive("", None)).await).events, 1, "the dead one alone");
    assert_eq!(done(one(&store, redrive("", Some("left"))).await).events, 1);
    assert_eq!(code_of(&one(&store, redrive("", Some("h2"))).await), code::UNSUPPORTED);
    let page = store.retry_page(&hub(), "", (0, 0), AT + 50, 10, 9_999).await.unwrap();
    let rounds: Vec<_> = page.events.iter().map(|retry| (retry.open.seq, retry.open.round)).collect();
    assert_eq!(rounds, [(1, 1), (2, 2)]);
    // And again an npm spoke is quicker.
    sql(&store, "UPDATE event_published SET consumed_spoke = published WHERE event_id = 'bad'").await;
    let page = store.retry_page(&hub(), "", (0, 0), AT + 50, 10, 9_999).await.unwrap();
    assert_eq!((page.events.len(), page.next), (1, None));
}

/// Everything that the tables of events and groups hold, but for the log.
async fn all_rows(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    for table in [
        "event",
        "event_published",
        "v1_attempt",
        "v1_outcome",
        "v1_retry",
        "v1_group",
        "v1_binding",
        "v1_cursor",
        "v1_hub_seq",
    ] {
        let row = match engines::engine() {
            Engine::Sqlite => {
                let columns = format!("SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')");
                texts(store, &columns).await.join("||','||")
            }
            Engine::Postgres => format!("CAST({table} AS text)"),
            Engine::MySql => {
                let columns = "SELECT concat('quote(', column_name, ')') FROM information_schema.columns \
                               WHERE table_schema = database() AND table_name = ";
                let columns = texts(store, &format!("{columns} '{table}'")).await;
                format!("concat_ws(',', {})", columns.join(","))
            }
        };
        let rows = texts(store, &format!("SELECT {row} FROM {table}")).await;
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{table}: {row}")).collect();
        rows.sort();
        all.extend(rows);
    }
    all
}

#[tokio::test]
async fn each_write_is_done_whole_or_not_at_all_and_once() {
    let by = || uid("SPOKE-9");
    let mail = || "mail".to_owned();
    let letter = Letter { event: event("dl"), seq: 20, publisher: hub() };
    let dead = |group: &str| {
        let failed = AttemptRow { group: group.into(), ..attempt("e", 2) };
        let write = in_group(ended("e", 1, Outcome::Dead, "S", AT, Some(failed)), group, 1, true);
        with_letter(write, letter.clone())
    };
    // Each with the table that it writes last, and whether the same again changes nothing.
    let writes = [
        (dead(""), "event_published", true),
        (dead("mail"), "event_published", true),
        (retry("e", 1, "", (1, 2), AT), "v1_attempt", true),
        (retry("e", 1, "mail", (1, 2), AT), "v1_attempt", true),
        (redrive("", Some("d")), "log", true),
        (redrive("mail", Some("d")), "log", true),
        (redrive("", None), "log", true),
        (redrive("mail", None), "log", true),
        (
            Write::SetGroup { name: "new".into(), settings: GroupSettings::default(), at: AT },
            "v1_group",
            true,
        ),
        (Write::Bind(binding("new", "*", "*", 1)), "v1_binding", true),
        // The round rises again.
        (Write::Seek { group: mail(), start_seq: 1, hub: hub(), at: AT, by: by() }, "log", false),
        (Write::Purge { group: mail(), start_seq: 9, hub: hub(), at: AT, by: by() }, "log", true),
        (Write::RemoveGroup { group: mail(), hub: hub(), at: AT, by: by(), most: 9 }, "log", true),
    ];
    for (write, last, is_once) in writes {
        let store = fresh().await;
        store.commit(vec![publish(event("e"), 1), publish(event("d"), 2)]).await;
        one(&store, Write::Bind(binding("mail", "*", "*", 1))).await.unwrap();
        one(&store, Write::Cursor { hub: hub(), group: mail(), seq: 2, known: None }).await.unwrap();
        for group in ["", "mail"] {
            one(&store, retry("e", 1, group, (1, 1), AT)).await.unwrap();
            one(&store, in_group(finish("d", 2, Outcome::Dead), group, 1, false)).await.unwrap();
        }
        let before = all_rows(&store).await;
        engines::refuse(&store, last, "1 = 1", "trouble").await;
        assert_eq!(code_of(&one(&store, write.clone()).await), code::DB_FAULT, "{write:?}");
        assert_eq!(all_rows(&store).await, before, "{write:?}");
        engines::allow(&store, last).await;

        one(&store, write.clone()).await.unwrap();
        let after = all_rows(&store).await;
        assert_ne!(after, before, "{write:?}");
        let again = one(&store, write.clone()).await;
        assert!(again.is_ok() || !again.as_ref().unwrap_err().is_retryable());
        assert_eq!(all_rows(&store).await == after, is_once, "{write:?}");
    }
}
