//! What is read of groups: pages that are bounded, retries by time, dead events, pids that are held back, traces.

use super::*;
use crate::wire::DeadQuery;

const MAIL: GroupKey<'static> = GroupKey { name: "mail", round: 1 };

async fn some(store: &Store, seqs: std::ops::RangeInclusive<u64>) {
    let publishes = seqs.map(|seq| {
        let pid = Pid::parse(format!("p{}", seq % 3)).unwrap();
        publish(Event { pid, ..event(&format!("e{seq}")) }, seq)
    });
    assert!(store.commit(publishes.collect()).await.iter().all(Result::is_ok));
}

fn dead_in(group: &str) -> DeadQuery {
    let group = (!group.is_empty()).then(|| Group::parse(group.to_owned()).unwrap());
    DeadQuery { group, ..DeadQuery::default() }
}

#[tokio::test]
async fn a_page_that_finds_nothing_ends_early_and_says_how_far_it_came() {
    let store = fresh().await;
    some(&store, 1..=250).await;
    let done = (1..=240).map(|n| in_group(finish(&format!("e{n}"), n, Outcome::Success), "mail", 1, false));
    store.commit(done.collect()).await;
    let any = Pattern::any();
    let mut pages = Vec::new();
    let mut after = 0;
    loop {
        let page = store.open_page(&hub(), MAIL, after, (&any, &any), 100, 1_000_000).await.unwrap();
        pages.push((page.events.len(), page.scanned, page.more));
        after = page.scanned;
        if !page.more {
            break;
        }
    }
    // 100 rows at a time in tests.
    assert_eq!(pages, [(0, 100, true), (0, 200, true), (10, 250, false)]);
    let nothing = Pattern::parse("nothing").unwrap();
    let page = store.open_page(&hub(), GroupKey::DEFAULT, 0, (&nothing, &any), 9, 99).await.unwrap();
    assert_eq!((page.events.len(), page.scanned, page.more), (0, 100, true));

    let marks = store.open_marks(&hub(), MAIL, 0, 245, 100).await.unwrap();
    assert_eq!((marks.marks.len(), marks.scanned, marks.more), (0, 100, true));
    let marks = store.open_marks(&hub(), MAIL, 200, 245, 100).await.unwrap();
    assert_eq!((marks.marks.len(), marks.scanned, marks.more), (5, 245, false));
    let marks = store.open_marks(&hub(), MAIL, 200, 250, 3).await.unwrap();
    assert_eq!((marks.marks.len(), marks.scanned, marks.more), (3, 243, true));
    let marks = store.open_marks(&hub(), GroupKey::DEFAULT, 0, 1_000, 90).await.unwrap();
    assert_eq!((marks.marks.len(), marks.scanned, marks.more), (90, 90, true));
}

#[tokio::test]
async fn retries_come_by_time_and_the_next_is_told() {
    let store = fresh().await;
    some(&store, 1..=6).await;
    let due = [(1, 30), (2, 10), (3, 20), (4, 20), (5, 40), (6, 90)];
    for group in ["", "mail"] {
        let retries = due.iter().map(|(n, due)| retry(&format!("e{n}"), *n, group, (1, 3), *due));
        assert!(store.commit(retries.collect()).await.iter().all(Result::is_ok));
        let read = async |after, until, limit| {
            let page = store.retry_page(&hub(), group, after, until, limit, 9_999).await.unwrap();
            let events: Vec<_> = page.events.iter().map(|retry| (retry.due, retry.open.seq)).collect();
            (events, page.next)
        };
        assert_eq!(read((0, 0), 30, 9).await, (vec![(10, 2), (20, 3), (20, 4), (30, 1)], Some(40)));
        assert_eq!(read((0, 0), 30, 2).await, (vec![(10, 2), (20, 3)], Some(20)));
        assert_eq!(read((20, 3), 30, 9).await, (vec![(20, 4), (30, 1)], Some(40)));
        assert_eq!(read((0, 0), 5, 9).await, (vec![], Some(10)));
        assert_eq!(read((40, 5), 99, 9).await, (vec![(90, 6)], None));
        let counts = store.group_counts(&hub(), GroupKey { name: group, round: 1 }).await.unwrap();
        assert_eq!((counts.retrying, counts.oldest_retry), (6, Some(0)));
    }
    let small = store.retry_page(&hub(), "mail", (0, 0), 99, 9, 1).await.unwrap();
    assert_eq!((small.events.len(), small.next), (1, Some(20)), "at least one");
    assert_eq!((small.events[0].open.attempts, small.events[0].open.round), (3, 1));
}

#[tokio::test]
async fn dead_events_are_listed_page_by_page_with_their_reason() {
    let store = fresh().await;
    let none = store.dead_page(&hub(), &dead_in("mail"), "", 2).await.unwrap_err();
    assert_eq!(none.code(), crate::event::code::GROUP_NOT_FOUND);
    let settings = crate::wire::GroupSettings::default();
    one(&store, Write::SetGroup { name: "mail".into(), settings, at: AT }).await.unwrap();
    some(&store, 1..=130).await;
    for group in ["", "mail"] {
        let row = |n: u64, number, reason: &str| AttemptRow {
            group: group.into(),
            reason: reason.into(),
            error: format!("error {number}"),
            ..attempt(&format!("e{n}"), number)
        };
        let lost = (1..=4).map(|number| Write::Attempt(row(1, number, "link lost")));
        store.commit(lost.chain([Write::Attempt(row(2, 1, "nack"))]).collect()).await;
        let dead = |n: u64, attempt| {
            in_group(ended(&format!("e{n}"), n, Outcome::Dead, "S", AT + 7, attempt), group, 1, false)
        };
        let mut batch = vec![dead(1, Some(row(1, 5, "link lost"))), dead(2, Some(row(2, 2, "given up")))];
        batch.extend((3..=130).map(|n| dead(n, Some(row(n, 1, "nack")))));
        assert!(store.commit(batch).await.iter().all(Result::is_ok));

        let (first, next) = store.dead_page(&hub(), &dead_in(group), "", 2).await.unwrap();
        let told: Vec<_> =
            first.iter().map(|dead| (dead.attempts, dead.reason.as_str(), dead.error.as_str())).collect();
        assert_eq!(told, [(5, "link lost x5", "error 5"), (2, "given up", "error 2")]);
        let end = if group.is_empty() { engines::held(AT + 7) } else { AT + 7 };
        assert_eq!((first[0].ended, first[0].consumer.clone(), first[0].round), (end, Some(uid("S")), 1));
        assert_eq!(first[0].pid, Pid::parse("p1").unwrap());
        let (second, _) = store.dead_page(&hub(), &dead_in(group), &next, 1).await.unwrap();
        assert_eq!(second[0].id, id("e3"));

        let other = DeadQuery { domain: Some(Pattern::any()), ..dead_in(group) };
        let refused = store.dead_page(&hub(), &other, &next, 1).await.unwrap_err();
        assert!(matches!(refused, StoreError::InvalidPage));
        assert!(store.dead_page(&hub(), &dead_in(group), "no token", 1).await.is_err());

        // All of them, though not more than 50 are looked at for a page in tests.
        let nothing = DeadQuery { name: Some(Pattern::parse("*.paid").unwrap()), ..dead_in(group) };
        for (query, expected) in [(dead_in(group), 130), (nothing, 0)] {
            let (mut listed, mut pages, mut page) = (0, 0, String::new());
            loop {
                let (dead, next) = store.dead_page(&hub(), &query, &page, 1_000).await.unwrap();
                (listed, pages, page) = (listed + dead.len(), pages + 1, next);
                if page.is_empty() {
                    break;
                }
            }
            assert_eq!((listed, pages), (expected, 3));
        }
    }
}

#[tokio::test]
async fn a_page_of_dead_events_fits_into_a_record() {
    let store = fresh().await;
    some(&store, 1..=40).await;
    let dead = (1..=40).map(|n| {
        let id = format!("e{n}");
        let last = AttemptRow { error: "\u{7}".repeat(8_000), ..attempt(&id, 1) };
        ended(&id, n, Outcome::Dead, "S", AT, Some(last))
    });
    store.commit(dead.collect()).await;
    let (page, next) = store.dead_page(&hub(), &dead_in(""), "", 1_000).await.unwrap();
    let bytes = serde_json::to_string(&page).unwrap().len();
    assert!(!page.is_empty() && page.len() < 40 && bytes <= 40_000, "{} of {bytes} bytes", page.len());
    let (rest, _) = store.dead_page(&hub(), &dead_in(""), &next, 1).await.unwrap();
    assert_eq!(rest[0].id, id(&format!("e{}", page.len() + 1)));
}

#[tokio::test]
async fn pids_that_hold_back_others_are_told_once_for_each_event_that_does() {
    let store = fresh().await;
    some(&store, 1..=8).await;
    let mut batch: Vec<Write> =
        [4, 1, 2].into_iter().map(|n| retry(&format!("e{n}"), n, "mail", (1, 1), 9)).collect();
    for write in &mut batch {
        if let Write::Retry { pid, seq, .. } = write {
            *pid = Pid::parse(format!("p{}", *seq % 3)).unwrap();
        }
    }
    batch.push(in_group(finish("e3", 3, Outcome::Dead), "mail", 1, false));
    batch.push(in_group(finish("e6", 6, Outcome::Dead), "mail", 1, false));
    assert!(store.commit(batch).await.iter().all(Result::is_ok));
    let pid = |n: u64| Pid::parse(format!("p{n}")).unwrap();
    let (all, next) = store.retrying_pids(&hub(), MAIL, false, None, 10).await.unwrap();
    assert_eq!((all, next), (vec![(pid(1), 1), (pid(1), 4), (pid(2), 2)], None));

    let expected = [(pid(1), 1), (pid(1), 4), (pid(2), 2), (pid(0), 3), (pid(0), 6)];
    for limit in 1..7 {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = store.retrying_pids(&hub(), MAIL, true, after.as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            all.extend(page);
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(all, expected, "{limit} at a time");
    }
}

#[tokio::test]
async fn a_trace_tells_of_each_group_that_wants_the_event() {
    let store = fresh().await;
    some(&store, 1..=2).await;
    let groups = async || {
        let (_, trace) = store.trace(&id("e1")).await.unwrap().unwrap();
        let told = |group: crate::wire::GroupTrace| {
            let name = group.group.map(|group| group.to_string()).unwrap_or_default();
            (name, group.state, group.round, group.attempts)
        };
        trace.groups.into_iter().map(told).collect::<Vec<_>>()
    };
    let told =
        |name: &str, state: &str, round, attempts| (name.to_owned(), state.to_owned(), round, attempts);
    assert!(groups().await.is_empty());
    for group in ["", "mail", "post"] {
        one(&store, Write::Bind(binding(group, "*", "*", 1))).await.unwrap();
    }
    one(&store, Write::Bind(binding("late", "*", "*", 2))).await.unwrap();
    assert_eq!(
        groups().await,
        [told("", "pending", 1, 0), told("mail", "pending", 1, 0), told("post", "pending", 1, 0)]
    );
    one(&store, retry("e1", 1, "", (1, 1), AT)).await.unwrap();
    one(&store, retry("e1", 1, "mail", (1, 1), AT)).await.unwrap();
    one(&store, in_group(finish("e1", 1, Outcome::Dead), "mail", 1, true)).await.unwrap();
    assert_eq!(
        groups().await,
        [told("", "retrying", 1, 1), told("mail", "dead", 1, 1), told("post", "pending", 1, 0)]
    );
    one(&store, redrive("mail", Some("e1"))).await.unwrap();
    one(&store, in_group(finish("e1", 1, Outcome::Success), "", 1, true)).await.unwrap();
    one(&store, in_group(finish("e1", 1, Outcome::Expired), "post", 1, false)).await.unwrap();
    assert_eq!(
        groups().await,
        [told("", "success", 1, 1), told("mail", "retrying", 2, 0), told("post", "expired", 1, 0)]
    );
}

#[tokio::test]
async fn what_a_group_is_not_done_with_is_told() {
    let store = fresh().await;
    some(&store, 1..=4).await;
    let ids: Vec<EventId> = ["e1", "e2", "e3", "e4", "nobody"].map(id).into();
    let unfinished = async || {
        let all = store.unfinished_groups(&ids).await.unwrap();
        all.into_iter().map(|(id, groups)| format!("{id} {}", groups.join("+"))).collect::<Vec<_>>()
    };
    assert!(unfinished().await.is_empty(), "nobody wants them");
    one(&store, Write::Bind(binding("", "*", "*", 2))).await.unwrap();
    one(&store, Write::Bind(binding("mail", "*", "*", 3))).await.unwrap();
    assert_eq!(unfinished().await, ["e2 ", "e3 +mail", "e4 +mail"]);
    let batch = vec![
        finish("e2", 2, Outcome::Dead),
        finish("e3", 3, Outcome::Success),
        retry("e1", 1, "post", (1, 1), AT),
        in_group(finish("e4", 4, Outcome::Dead), "mail", 1, false),
    ];
    store.commit(batch).await;
    assert_eq!(unfinished().await, ["e1 post", "e3 mail", "e4 "]);
    one(&store, redrive("", Some("e2"))).await.unwrap();
    one(&store, redrive("mail", Some("e4"))).await.unwrap();
    assert_eq!(unfinished().await, ["e1 post", "e2 ", "e3 mail", "e4 +mail"]);
}

#[tokio::test]
async fn what_a_removed_group_left_is_found_and_counts_for_nobody() {
    let store = fresh().await;
    let settings = crate::wire::GroupSettings::default();
    one(&store, Write::SetGroup { name: "mail".into(), settings, at: AT }).await.unwrap();
    some(&store, 1..=2).await;
    for (n, group) in [(1, "mail"), (2, "gone"), (1, "gone too")] {
        let end = in_group(finish(&format!("e{n}"), n, Outcome::Dead), group, 1, false);
        one(&store, end).await.unwrap();
    }
    assert_eq!(store.removed_groups(10).await.unwrap(), ["gone", "gone too"]);
    assert_eq!(store.removed_groups(1).await.unwrap(), ["gone"]);
    assert_eq!(store.census(&hub()).await.unwrap().dead_named, 1, "only that of a group that is there");
    let trace = store.trace(&id("e2")).await.unwrap().unwrap().1;
    assert!(trace.groups.is_empty(), "{trace:?}");
}
