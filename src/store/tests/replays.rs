//! Replaying a hub's events, and what was removed of them.

use super::{reads::plan, *};

async fn page(store: &Store, range: (u64, u64), domain: &str, limit: usize, bytes: usize) -> (Vec<u64>, u64) {
    let domain = Pattern::parse(domain.to_owned()).unwrap();
    let page = store.replay_page(&hub(), range, (&domain, &Pattern::any()), limit, bytes).await.unwrap();
    (page.events.iter().map(|(_, seq)| *seq).collect(), page.to)
}

fn of(domain: &str, seq: u64) -> Write {
    publish(Event { domain: Domain::parse(domain).unwrap(), ..event(&format!("e-{seq}")) }, seq)
}

#[tokio::test]
async fn pages_follow_the_numbers_whatever_became_of_the_events() {
    let store = fresh().await;
    for seq in [5, 7, 8, 9] {
        one(&store, of("orders", seq)).await.unwrap();
    }
    one(&store, of("orders.eu", 10)).await.unwrap();
    one(&store, finish("e-7", 7, Outcome::Success)).await.unwrap();
    assert_eq!(page(&store, (0, 10), "*", 10, 1 << 20).await, (vec![5, 7, 8, 9, 10], 10));
    assert_eq!(page(&store, (5, 9), "*", 10, 1 << 20).await, (vec![7, 8, 9], 9));
    assert_eq!(page(&store, (5, 10), "*", 2, 1 << 20).await, (vec![7, 8], 8), "so many events");
    assert_eq!(page(&store, (5, 10), "*", 10, 1).await, (vec![7], 7), "so many bytes, but one event");
    assert_eq!(page(&store, (0, 10), "*.*", 10, 1 << 20).await, (vec![10], 10), "by its pattern");
    assert_eq!(page(&store, (10, 50), "*", 10, 1 << 20).await, (vec![], 50));
}

#[tokio::test]
async fn a_rare_pattern_is_looked_for_in_steps() {
    let store = fresh().await;
    let numbers = format!("{} WHERE n <= 10100", engines::numbers(5));
    let events =
        "INSERT INTO event (id, domain, pid, name, data) SELECT 'n-' || n, 'orders', 'p', 'n', '1' FROM";
    sql(&store, &format!("{events} {numbers}")).await;
    let published = "INSERT INTO event_published (event_id, publisher, v1_hub, seq) SELECT 'n-' || n, 'P', 'HUB-1', n FROM";
    sql(&store, &format!("{published} {numbers}")).await;
    assert_eq!(page(&store, (0, 99_999), "rare", 10, 1 << 20).await, (vec![], 10_000));
    assert_eq!(page(&store, (10_000, 99_999), "rare", 10, 1 << 20).await, (vec![], 99_999));
}

#[tokio::test]
async fn an_event_has_a_place_once_it_is_dispatched() {
    let store = fresh().await;
    one(&store, of("orders", 5)).await.unwrap();
    sql(&store, "INSERT INTO event (id, domain, pid, name, data) VALUES ('stored', 'd', 'p', 'n', '1')")
        .await;
    assert_eq!(store.place(&id("e-5")).await.unwrap(), EventPlace::Dispatched(hub(), 5));
    assert_eq!(store.place(&id("stored")).await.unwrap(), EventPlace::Stored);
    assert!(matches!(store.place(&id("none")).await, Err(StoreError::EventNotFound { .. })));
}

#[tokio::test]
async fn each_page_is_found_by_the_index() {
    if engines::is_only_for_sqlite("EXPLAIN QUERY PLAN is SQLite's") {
        return;
    }
    let store = fresh().await;
    for (domain, name) in [("*", "*"), ("orders", "created"), ("orders.>", "*.created")] {
        let patterns = (&Pattern::parse(domain).unwrap(), &Pattern::parse(name).unwrap());
        let (tail, values) = replay::tail(&hub(), (0, 9), patterns);
        let plan = plan(&store, format!("SELECT {}, p.seq {tail} LIMIT 10", events::EVENT), values).await;
        assert!(plan.contains("event_published_seq (v1_hub=? AND seq>? AND seq<?)"), "{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}

async fn remove(store: &Store, domain: &str, hub: &str, (first, last): (u64, u64), events: u64) {
    let values = format!("('{hub}', '{domain}', {first}, {last}, {events})");
    sql(store, &format!("INSERT INTO v1_removed (hub, domain, first_seq, last_seq, events) VALUES {values}"))
        .await;
}

#[tokio::test]
async fn what_was_removed_above_a_number_is_told_once_per_domain() {
    let store = fresh().await;
    assert_eq!(store.removed(&hub(), 0).await.unwrap(), []);
    remove(&store, "orders", "HUB-1", (5, 9), 2).await;
    remove(&store, "invoices", "HUB-1", (3, 12), 4).await;
    remove(&store, "orders", "HUB-1", (10, 20), 6).await;
    remove(&store, "orders", "HUB-2", (1, 99), 50).await;
    let row = |domain: &str, first_seq, last_seq, events| {
        let domain = Domain::parse(domain.to_owned()).unwrap();
        Removed { domain, first_seq, last_seq, events }
    };
    let (invoices, orders) = (row("invoices", 3, 12, 4), row("orders", 5, 20, 8));
    assert_eq!(store.removed(&hub(), 2).await.unwrap(), [invoices, orders]);
    assert_eq!(store.removed(&hub(), 12).await.unwrap(), [row("orders", 10, 20, 6)]);

    let (_, mark) = store.removed_since(&hub(), 2, RemovedMark::default()).await.unwrap();
    assert_eq!(store.removed_since(&hub(), 2, mark).await.unwrap(), (vec![], mark));
    remove(&store, "orders", "HUB-1", (21, 22), 2).await;
    let (later, _) = store.removed_since(&hub(), 2, mark).await.unwrap();
    assert_eq!(later, [row("orders", 21, 22, 2)]);
}
