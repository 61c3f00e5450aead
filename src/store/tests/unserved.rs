//! Events that applications have put into the database: found page by page, collected once.

use std::time::Duration;

use super::*;
use crate::{
    event::{Data, code},
    wire::Published,
};

const LIMIT: usize = 1 << 20;

/// As an application writes it; `published` so many seconds ago.
async fn written(store: &Store, id: &str, ago: u32) {
    let published = time::text(time::now() - i64::from(ago) * 1_000);
    let text = format!(
        "INSERT INTO event (id, domain, pid, name, data) VALUES ('{id}', 'orders', 'order-1', 'created', '1'); \
         INSERT INTO event_published (event_id, publisher, published) \
         VALUES ('{id}', 'SHOP', @local('{published}'))"
    );
    sql(store, &text).await;
}

async fn page(store: &Store, since: i64, after: Option<&UnservedKey>, limit: usize) -> UnservedPage {
    store.unserved_page(since, Duration::from_secs(10), after, limit).await.unwrap()
}

fn ids(page: &UnservedPage) -> Vec<&str> {
    page.events.iter().map(|event| event.id.as_str()).collect()
}

fn collect(ids: &[&str]) -> Write {
    let events = ids.iter().zip(100..).map(|(text, seq)| Collecting { id: id(text), seq }).collect();
    Write::Collect { events, hub: hub(), at: AT, data_bytes: LIMIT }
}

async fn collected(store: &Store, ids: &[&str]) -> Vec<CollectedAs> {
    match one(store, collect(ids)).await {
        Ok(Written::Collected(all)) => all.into_iter().map(|collected| collected.what).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_first_start_is_marked_once() {
    let store = fresh().await;
    let first = store.first_start().await.unwrap();
    assert!(first.is_some_and(|first| first <= time::now()));
    sql(&store, "UPDATE v1_marker SET at = 7123").await;
    store.register_hub(&hub_row("HUB-2")).await.unwrap();
    assert_eq!(store.first_start().await.unwrap(), Some(7_000), "its second, since npm's times have no more");
}

#[tokio::test]
async fn pages_have_what_nobody_has_in_its_order() {
    let store = fresh().await;
    for (id, ago) in [("c", 30), ("a", 40), ("b", 40), ("young", 1), ("later", 50), ("d", 20)] {
        written(&store, id, ago).await;
    }
    sql(&store, "INSERT INTO event_scheduled (event_id, scheduled) VALUES ('later', '2999-01-01 00:00:00')")
        .await;
    one(&store, publish(event("ours"), 7)).await.unwrap();
    written(&store, "theirs", 60).await;
    sql(&store, "UPDATE event_published SET consumed_spoke = published WHERE event_id = 'theirs'").await;

    let first = page(&store, 0, None, 3).await;
    assert_eq!(ids(&first), ["a"], "three rows were looked at");
    let second = page(&store, 0, first.next.as_ref(), 3).await;
    assert_eq!(ids(&second), ["b", "c", "d"]);
    let third = page(&store, 0, second.next.as_ref(), 3).await;
    assert_eq!((ids(&third), third.next.clone()), (vec![], None));
    assert_eq!(ids(&page(&store, time::now() - 35_000, None, 9).await), ["c", "d"]);
}

#[tokio::test]
async fn each_is_collected_once_and_what_is_wrong_is_said() {
    let store = fresh().await;
    for id in ["a", "b", "odd", "later", "done"] {
        written(&store, id, 20).await;
    }
    one(&store, Write::Persist(event("stored"), None)).await.unwrap();
    sql(&store, "INSERT INTO event_scheduled (event_id, scheduled) VALUES ('later', '2999-01-01 00:00:00')")
        .await;
    sql(&store, "UPDATE event SET name = '*' WHERE id = 'odd'").await;
    sql(&store, "UPDATE event_published SET failed = published WHERE event_id = 'done'").await;
    let all = collected(&store, &["a", "odd", "b", "later", "done", "stored", "nobody", "a"]).await;
    let taken = |what: &CollectedAs| match what {
        CollectedAs::Taken(taken) => Some((taken.event.id.to_string(), taken.broadcasts, taken.serves)),
        _ => None,
    };
    assert_eq!(taken(&all[0]), Some(("a".to_owned(), true, true)));
    assert!(matches!(&all[1], CollectedAs::Invalid(reason) if reason.contains('*')), "{:?}", all[1]);
    assert_eq!(taken(&all[2]), Some(("b".to_owned(), true, true)));
    assert_eq!(
        all[3..7],
        [
            CollectedAs::NotTaken(NotTaken::Scheduled),
            CollectedAs::Before,
            CollectedAs::NotTaken(NotTaken::Unpublished),
            CollectedAs::NotTaken(NotTaken::Unknown)
        ]
    );
    assert_eq!(collected(&store, &["a", "b"]).await, [CollectedAs::Before, CollectedAs::Before]);
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 102);

    // From here on it is an event like any other.
    let (open, _) = open_page(&store, 0, 9, LIMIT).await;
    assert_eq!(
        open.iter().map(|open| (open.event.id.as_str(), open.seq)).collect::<Vec<_>>(),
        [("a", 100), ("b", 102)]
    );
    one(&store, finish("a", 100, Outcome::Success)).await.unwrap();
    let again = Event { data: Data::parse("1").unwrap(), ..event("a") };
    let Ok(Written::Published(Published { fresh: false, seq: 100, .. })) =
        one(&store, publish(again, 9)).await
    else {
        panic!("a duplicate")
    };
    let late = one(&store, finish("a", 100, Outcome::Dead)).await;
    assert_eq!(late.unwrap_err().code(), code::CLAIM_LOST);
}
