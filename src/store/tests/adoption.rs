//! Adoption: who takes a dead hub's place, what becomes of its work, and what if it comes back. On servers alone.

use std::time::{Duration, Instant};

use sea_orm::TransactionTrait;

use super::*;
use crate::store::engine::Engine;

/// A store of another hub on the same database.
async fn hub_on(place: &Place, id: &str) -> Store {
    let store = Store::open(&engines::config(place.clone())).await.unwrap();
    let seat = Seat { host: "here".into(), folder: format!("/{id}") };
    store.take_hub(&hub_row(id), &seat).await.unwrap();
    store
}

/// The stores of these hubs on one database; none on SQLite, which has one hub.
async fn hubs<const N: usize>(ids: [&str; N]) -> Option<[Store; N]> {
    if engines::engine() == Engine::Sqlite {
        eprintln!("skipped: SQLite has one hub");
        return None;
    }
    let place = engines::empty().await;
    let mut all = Vec::new();
    for id in ids {
        all.push(hub_on(&place, id).await);
    }
    all.try_into().ok()
}

/// As if the hub hadn't renewed its lease for long.
async fn end_lease(store: &Store, id: &str) {
    sql(store, &format!("UPDATE v1_hub_lease SET until_ms = 1 WHERE hub_id = '{id}'")).await;
}

/// Takes over all that there is; how many events, once for each group.
async fn adopt_all(store: &Store, by: &str, mut first: u64) -> u64 {
    let mut events = 0;
    for _ in 0..100 {
        let Some(work) = store.take_over(&uid(by)).await.unwrap().work else { return events };
        let write = Write::Adopt { work, hub: uid(by), at: AT, most: 2, first };
        let Written::Adopted(adopted) = one(store, write).await.unwrap() else { panic!("another answer") };
        assert!(adopted.events <= 2, "{adopted:?}");
        (events, first) = (events + adopted.events, first + 2);
    }
    panic!("it comes to no end");
}

/// What waits at a hub in a group: event, number, number where it was dispatched, attempts and time, in the order of its pages.
async fn waiting(store: &Store, at: &str, group: &str) -> Vec<(String, u64, u64, u32, i64)> {
    let page = store.retry_page(&uid(at), group, (0, 0), i64::MAX, 100, 1 << 20).await.unwrap();
    let row = |retry: RetryEvent| {
        (retry.open.event.id.to_string(), retry.open.seq, retry.original, retry.open.attempts, retry.due)
    };
    page.events.into_iter().map(row).collect()
}

async fn bind(store: &Store, group: &str, domain: &str, start: u64) -> Binding {
    match one(store, Write::Bind(binding(group, domain, "*", start))).await.unwrap() {
        Written::Bound(binding) => binding,
        other => panic!("{other:?}"),
    }
}

fn in_users(id_text: &str) -> Event {
    Event { domain: Domain::parse("users").unwrap(), ..event(id_text) }
}

#[tokio::test]
async fn one_of_two_takes_the_place_of_a_hub_whose_lease_is_over() {
    let Some([dead, live, third]) = hubs(["HUB-1", "HUB-2", "HUB-3"]).await else { return };
    one(&dead, publish(event("e"), 1)).await.unwrap();
    assert_eq!(live.take_over(&uid("HUB-2")).await.unwrap(), TakenOver::default(), "it lives");
    end_lease(&live, "HUB-1").await;
    let (one_try, other_try) = (uid("HUB-2"), uid("HUB-3"));
    let (by_two, by_three) = tokio::join!(live.take_over(&one_try), third.take_over(&other_try));
    let (by_two, by_three) = (by_two.unwrap(), by_three.unwrap());
    assert_eq!(by_two.adopted + by_three.adopted, 1, "{by_two:?} {by_three:?}");
    assert_eq!([by_two.hubs, by_three.hubs].concat(), [hub()]);
    let committed = dead.commit(vec![publish(event("late"), 2)]).await;
    assert!(matches!(committed[0], Err(StoreError::Fenced)), "{committed:?}");
    assert!(matches!(dead.renew_lease(&hub(), 1).await, Err(StoreError::Fenced)));
    assert!(!live.is_hub_open(&hub()).await.unwrap(), "its row says that it stopped");
    assert_eq!(number(&live, "SELECT count(*) FROM log WHERE message LIKE 'adopted: %'").await, 1);
}

#[tokio::test]
async fn what_is_open_becomes_rows_of_the_adopter_in_its_order() {
    let Some([dead, live]) = hubs(["HUB-1", "HUB-2"]).await else { return };
    bind(&dead, "", "orders", 0).await;
    bind(&dead, "mail", "orders", 3).await;
    let events = (1..=6).map(|n| publish(event(&format!("e{n}")), n));
    let events = events.chain([publish(in_users("u7"), 7)]);
    assert!(dead.commit(events.collect()).await.iter().all(Result::is_ok));
    one(&dead, finish("e1", 1, Outcome::Success)).await.unwrap();
    one(&dead, retry("e2", 2, "", (1, 1), AT + 500)).await.unwrap();
    one(&dead, Write::Attempt(attempt("e4", 1))).await.unwrap();
    one(&dead, finish("e5", 5, Outcome::Dead)).await.unwrap();
    one(&dead, in_group(finish("e6", 6, Outcome::Success), "mail", 1, false)).await.unwrap();
    end_lease(&live, "HUB-1").await;
    assert_eq!(adopt_all(&live, "HUB-2", 1_000).await, 7);

    let text = |(id, seq, original, attempts, due): (String, u64, u64, u32, i64)| {
        (id, seq >= 1_000, original, attempts, due)
    };
    let by_default = waiting(&live, "HUB-2", "").await;
    assert!(by_default[..3].is_sorted_by_key(|row| row.1), "{by_default:?}");
    let by_default: Vec<_> = by_default.into_iter().map(text).collect();
    let row = |id: &str, original, attempts, due| (id.to_owned(), true, original, attempts, due);
    let rows = [row("e3", 3, 0, AT), row("e4", 4, 1, AT), row("e6", 6, 0, AT), row("e2", 2, 1, AT + 500)];
    assert_eq!(by_default, rows);
    let mail: Vec<_> = waiting(&live, "HUB-2", "mail").await.into_iter().map(text).collect();
    assert_eq!(mail, [row("e3", 3, 0, AT), row("e4", 4, 0, AT), row("e5", 5, 0, AT)]);
    assert_eq!(waiting(&live, "HUB-1", "").await, []);
    assert_eq!(live.cursor(&hub(), "").await.unwrap(), Some(7));
    let numbers = number(&live, "SELECT max(seq) FROM v1_retry WHERE hub = 'HUB-2'").await;
    let last = live.last_seq(&uid("HUB-2")).await.unwrap();
    assert_eq!(Some(last), u64::try_from(numbers).ok(), "it gives them to nothing else");

    // It fails here, and then has its outcome here.
    let failed = Write::Retry {
        attempt: attempt("e3", 1),
        hub: uid("HUB-2"),
        seq: 4_000,
        original: 3,
        pid: event("e3").pid,
        due: AT + 9,
    };
    one(&live, failed).await.unwrap();
    let again = waiting(&live, "HUB-2", "").await;
    assert!(again.contains(&("e3".to_owned(), 4_000, 3, 1, AT + 9)), "{again:?}");
    for (id, seq) in [("e3", 3), ("e4", 4), ("e6", 6), ("e2", 2)] {
        let mut end = ended(id, seq, Outcome::Success, "S", AT, None);
        if let Write::Finish { hub, retried, .. } = &mut end {
            (*hub, *retried) = (uid("HUB-2"), true);
        }
        one(&live, end).await.unwrap();
    }
    assert_eq!(waiting(&live, "HUB-2", "").await, []);
}

#[tokio::test]
async fn who_wants_its_orphans_later_gets_them_from_the_adopter() {
    let Some([dead, live]) = hubs(["HUB-1", "HUB-2"]).await else { return };
    bind(&dead, "", "orders", 0).await;
    dead.commit(vec![publish(event("e1"), 1), publish(in_users("u2"), 2), publish(in_users("u3"), 3)]).await;
    end_lease(&live, "HUB-1").await;
    assert_eq!(adopt_all(&live, "HUB-2", 1_000).await, 1);
    bind(&live, "", "users", 3).await;
    assert_eq!(adopt_all(&live, "HUB-2", 2_000).await, 1, "from its start on");
    let rows = waiting(&live, "HUB-2", "").await;
    assert_eq!(rows.iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), ["e1", "u3"]);
    // What nobody wanted expires here.
    let policies = std::sync::Arc::new(crate::event::Policies::default());
    let users = Domain::parse("users").unwrap();
    let page = live.keep_page((&uid("HUB-2"), &users), None, AT + 1_000, 10, (&policies, AT)).await.unwrap();
    let fates: Vec<_> = page.into_iter().map(|looked| (looked.id.to_string(), looked.fate)).collect();
    assert_eq!(fates, [("u2".to_owned(), Fate::Open(None)), ("u3".to_owned(), Fate::Waits)]);
}

#[tokio::test]
async fn what_is_dead_is_listed_and_redriven_by_the_adopter_until_its_hub_is_back() {
    let Some([dead, live]) = hubs(["HUB-1", "HUB-2"]).await else { return };
    for group in ["", "mail"] {
        bind(&dead, group, "orders", 0).await;
    }
    dead.commit((1..=2).map(|n| publish(event(&format!("e{n}")), n)).collect()).await;
    for group in ["", "mail"] {
        for n in 1..=2 {
            one(&dead, in_group(finish(&format!("e{n}"), n, Outcome::Dead), group, 1, false)).await.unwrap();
        }
    }
    let again = |group: &str, id: Option<&str>, number| {
        let Write::Redrive { what, at, by, most, after, .. } = redrive(group, id) else { panic!() };
        Write::Redrive { what, hub: uid("HUB-2"), at, by, most, after, first: number }
    };
    let by_live = one(&live, again("", Some("e1"), 1_000)).await;
    assert_eq!(by_live.unwrap_err().code(), crate::event::code::UNSUPPORTED, "its hub lives");
    end_lease(&live, "HUB-1").await;
    assert_eq!(adopt_all(&live, "HUB-2", 1_000).await, 0);
    for (group, number) in [("", 2_000), ("mail", 3_000)] {
        let query = crate::wire::DeadQuery {
            group: (!group.is_empty()).then(|| Group::parse(group.to_owned()).unwrap()),
            ..Default::default()
        };
        let (listed, _) = live.dead_page(&uid("HUB-2"), &query, "", 10).await.unwrap();
        assert_eq!(listed.len(), 2, "{group}");
        let key = GroupKey { name: group, round: 1 };
        assert_eq!(live.group_counts(&uid("HUB-2"), key).await.unwrap().dead, 2);
        assert_eq!(live.census(&uid("HUB-2")).await.unwrap().dead_named, 2);
        one(&live, again(group, Some("e1"), number)).await.unwrap();
        let rows = waiting(&live, "HUB-2", group).await;
        assert_eq!(rows, [("e1".to_owned(), number, 1, 0, AT + 50)]);
    }

    let back = Seat { host: "here".into(), folder: "/HUB-1".into() };
    assert_eq!(dead.take_hub(&hub_row("HUB-1"), &back).await.unwrap(), 3, "the adoption raised it too");
    assert_eq!(live.served_hubs(&uid("HUB-2")).await.unwrap(), [uid("HUB-2")]);
    let by_live = one(&live, again("", Some("e2"), 4_000)).await;
    assert_eq!(by_live.unwrap_err().code(), crate::event::code::UNSUPPORTED, "it is back");
    one(&dead, redrive("", Some("e2"))).await.unwrap();
    assert_eq!(waiting(&dead, "HUB-1", "").await, [("e2".to_owned(), 2, 2, 0, AT + 50)]);
}

#[tokio::test]
async fn a_hub_that_is_back_goes_on_with_what_was_not_taken() {
    let Some([dead, live]) = hubs(["HUB-1", "HUB-2"]).await else { return };
    bind(&dead, "", "orders", 0).await;
    dead.commit((1..=5).map(|n| publish(event(&format!("e{n}")), n)).collect()).await;
    end_lease(&live, "HUB-1").await;
    let me = uid("HUB-2");
    // The cursor's row, and one page.
    for first in [1_000, 1_002] {
        let work = live.take_over(&me).await.unwrap().work.unwrap();
        let write = Write::Adopt { work, hub: me.clone(), at: AT, most: 2, first };
        one(&live, write).await.unwrap();
    }
    let work = live.take_over(&me).await.unwrap().work.unwrap();
    let seat = Seat { host: "here".into(), folder: "/HUB-1".into() };
    dead.take_hub(&hub_row("HUB-1"), &seat).await.unwrap();
    let late = Write::Adopt { work, hub: me.clone(), at: AT, most: 2, first: 2_000 };
    assert_eq!(one(&live, late).await.unwrap(), Written::Adopted(Adopted::default()));
    assert_eq!(live.take_over(&me).await.unwrap(), TakenOver::default());
    assert_eq!(waiting(&live, "HUB-2", "").await.len(), 2);
    let cursor = dead.cursor(&hub(), "").await.unwrap().unwrap();
    let (open, _) = open_page(&dead, cursor, 10, 1 << 20).await;
    assert_eq!(open.iter().map(|open| open.seq).collect::<Vec<_>>(), [3, 4, 5]);
    let (open, _) = open_page(&dead, 0, 10, 1 << 20).await;
    assert_eq!(open.len(), 3, "whatever its cursor says, what was taken isn't its own");
}

#[tokio::test]
async fn an_adopter_is_adopted_with_what_it_had_adopted() {
    let Some([dead, between, live]) = hubs(["HUB-1", "HUB-2", "HUB-3"]).await else { return };
    bind(&dead, "", "orders", 0).await;
    dead.commit((1..=5).map(|n| publish(event(&format!("e{n}")), n)).collect()).await;
    end_lease(&dead, "HUB-1").await;
    for first in [1_000, 1_002] {
        let work = between.take_over(&uid("HUB-2")).await.unwrap().work.unwrap();
        let write = Write::Adopt { work, hub: uid("HUB-2"), at: AT, most: 2, first };
        one(&between, write).await.unwrap();
    }
    end_lease(&live, "HUB-2").await;
    let taken = live.take_over(&uid("HUB-3")).await.unwrap();
    assert_eq!((taken.hubs, taken.adopted), (vec![uid("HUB-2")], 2));
    assert_eq!(adopt_all(&live, "HUB-3", 5_000).await, 5);
    let rows = waiting(&live, "HUB-3", "").await;
    assert!(rows.is_sorted_by_key(|row| row.1), "{rows:?}");
    assert_eq!(rows.iter().map(|row| row.2).collect::<Vec<_>>(), [1, 2, 3, 4, 5], "in their order");
}

#[tokio::test]
async fn a_hub_that_is_stopped_in_a_transaction_is_left_for_later() {
    let Some([dead, live]) = hubs(["HUB-1", "HUB-2"]).await else { return };
    end_lease(&live, "HUB-1").await;
    for table in ["v1_hub_epoch", "v1_hub_lease"] {
        let transaction = dead.writer.raw().begin().await.unwrap();
        let lock = format!("UPDATE {table} SET epoch = epoch + 0 WHERE hub_id = 'HUB-1'");
        transaction.execute_unprepared(&lock).await.unwrap();
        let began = Instant::now();
        assert_eq!(live.take_over(&uid("HUB-2")).await.unwrap(), TakenOver::default());
        assert!(began.elapsed() < Duration::from_secs(5), "it doesn't wait for the lock");
        transaction.rollback().await.unwrap();
    }
    assert_eq!(live.take_over(&uid("HUB-2")).await.unwrap().hubs, [hub()]);
}

#[tokio::test]
async fn a_cursor_never_passes_what_another_hub_has_bound() {
    let Some([store, other]) = hubs(["HUB-1", "HUB-2"]).await else { return };
    let bound = bind(&store, "", "orders", 0).await;
    let save = async |seq, ids: &[i64]| {
        let known = Some(ids.iter().copied().collect());
        one(&store, Write::Cursor { hub: hub(), group: String::new(), seq, known }).await.unwrap();
        store.cursor(&hub(), "").await.unwrap()
    };
    assert_eq!(save(5, &[bound.id]).await, Some(0), "its row comes first");
    assert_eq!(save(5, &[bound.id]).await, Some(5));
    let second = bind(&other, "", "users", 3).await;
    assert_eq!(store.cursor(&hub(), "").await.unwrap(), Some(2), "it is set back");
    assert_eq!(save(9, &[bound.id]).await, Some(2), "this hub knows nothing of it");
    assert_eq!(save(9, &[bound.id, second.id]).await, Some(9));
}
