use super::{
    super::{page::ScheduleKey, tests::*},
    *,
};
use crate::{event::Pattern, store::Write, wire::SchedulesQuery};

fn schedule(id_text: &str, due: i64) -> Write {
    Write::Schedule { event: event(id_text), due, publisher: uid("SPOKE-1") }
}

async fn due(store: &Store, until: i64, limit: usize) -> (Vec<String>, bool) {
    let (page, more) = store.due_page(until, None, limit).await.unwrap();
    (page.iter().map(|due| due.id.to_string()).collect(), more)
}

#[test]
fn seconds_are_rounded_up_and_stay_in_the_calendar() {
    for (due, second) in [
        (0, 0),
        (1, 1_000),
        (1_000, 1_000),
        (59_999, 60_000),
        (-1, 0),
        (-1_001, -1_000),
        (MAX_DUE - 999, MAX_DUE - 999),
        (MAX_DUE, MAX_DUE - 999),
    ] {
        assert_eq!(rounded_up(due), time::value(second), "{due}");
    }
    assert_eq!(rounded_up(MAX_DUE), time::value(MAX_DUE - 999));
}

#[tokio::test]
async fn what_is_due_comes_in_order_to_the_millisecond_whoever_scheduled_it() {
    let store = fresh().await;
    let at = AT - AT % 1_000;
    let ours = [("c", at + 700), ("a", at + 300), ("b", at + 300), ("later", at + 60_000)];
    store.commit(ours.map(|(id, due)| schedule(id, due)).into()).await;
    // As the npm stack writes, in whole seconds, and once as an application might.
    for (id, second) in [("n", time::text(at)[..19].to_owned()), ("o", time::text(at + 1_000))] {
        let insert = format!(
            "INSERT INTO event (id, domain, pid, name, data) VALUES ('{id}', 'orders', 'order-1', 'created', '1'); \
             INSERT INTO event_scheduled (event_id, scheduled) VALUES ('{id}', '{second}')"
        );
        sql(&store, &insert).await;
    }
    assert_eq!(due(&store, at - 1, 9).await, (vec![], false));
    assert_eq!(due(&store, at, 9).await, (vec!["n".to_owned()], false));
    assert_eq!(due(&store, at + 300, 9).await.0, ["n", "a", "b"], "not what is due in the same second");
    assert_eq!(due(&store, at + 1_000, 9).await.0, ["n", "a", "b", "c", "o"]);
    assert_eq!(due(&store, at + 1_000, 2).await, (vec!["n".to_owned(), "a".to_owned()], true));
    assert_eq!(due(&store, i64::MAX, 9).await.0.len(), 6);
    assert_eq!(store.schedules_waiting().await.unwrap(), 6);
    let (page, _) = store.due_page(at + 300, None, 9).await.unwrap();
    assert_eq!(page[1], Due { due: at + 300, id: id("a"), bytes: event("a").data.as_str().len() });
}

#[tokio::test]
async fn dates_that_are_none_hold_up_nobody() {
    if engines::is_only_for_sqlite("others take no text for a date") {
        return;
    }
    let store = fresh().await;
    let insert = "INSERT INTO event (id, domain, pid, name, data) VALUES ('bad', 'd', 'p', 'n', '1'); \
                  INSERT INTO event_scheduled (event_id, scheduled) VALUES ('bad', '0000 soon')";
    sql(&store, insert).await;
    one(&store, schedule("good", AT)).await.unwrap();
    assert_eq!(due(&store, AT, 9).await, (vec!["good".to_owned()], false));
    assert_eq!(store.trace(&id("bad")).await.unwrap().unwrap().1.state, "scheduled");
}

fn query(domain: Option<&str>, from: Option<i64>, to: Option<i64>) -> SchedulesQuery {
    SchedulesQuery { domain: domain.map(|text| Pattern::parse(text).unwrap()), name: None, from, to }
}

/// All pages, of so many events each.
async fn listed(store: &Store, query: &SchedulesQuery, limit: usize) -> Vec<(String, i64)> {
    let (mut all, mut page) = (Vec::new(), String::new());
    loop {
        let (events, next) = store.schedules_page(query, &page, limit).await.unwrap();
        assert!(events.len() <= limit);
        all.extend(events.into_iter().map(|event| (event.id.to_string(), event.due)));
        if next.is_empty() {
            return all;
        }
        page = next;
    }
}

#[tokio::test]
async fn what_waits_is_listed_in_order_page_by_page_whoever_scheduled_it() {
    let store = fresh().await;
    let at = AT - AT % 1_000;
    let ours = [("c", at + 700), ("a", at + 300), ("b", at + 300), ("later", at + 60_000)];
    store.commit(ours.map(|(id, due)| schedule(id, due)).into()).await;
    let mut others = vec![("n", time::text(at)[..19].to_owned()), ("o", time::text(at + 500))];
    if engines::engine().is_sqlite() {
        others.push(("x", "soon".into()));
    }
    for (id, second) in others {
        let insert = format!(
            "INSERT INTO event (id, domain, pid, name, data) VALUES ('{id}', 'other', 'order-1', 'created', '1'); \
             INSERT INTO event_scheduled (event_id, scheduled) VALUES ('{id}', '{second}')"
        );
        sql(&store, &insert).await;
    }
    let all = query(None, None, None);
    for limit in [1, 2, 5, 100] {
        let ids: Vec<_> = listed(&store, &all, limit).await.into_iter().map(|(id, _)| id).collect();
        // What others write with decimals stands behind its second, before what we have rounded up.
        assert_eq!(ids, ["n", "o", "a", "b", "c", "later"], "{limit} a page");
    }
    let some = async |query: SchedulesQuery| {
        listed(&store, &query, 1).await.into_iter().map(|(id, _)| id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        some(query(None, Some(at + 300), Some(at + 700))).await,
        if engines::held(1) == 1 { "o a b" } else { "a b" }
    );
    assert_eq!(
        some(query(None, Some(at + 301), None)).await,
        if engines::held(1) == 1 { "o c later" } else { "c later" }
    );
    assert_eq!(some(query(None, None, Some(at + 1))).await, if engines::held(1) == 1 { "n" } else { "n o" });
    assert_eq!(some(query(Some("other"), None, None)).await, "n o");
    assert_eq!(some(query(Some("none.*"), None, None)).await, "");

    let (_, token) = store.schedules_page(&all, "", 1).await.unwrap();
    let wrong = store.schedules_page(&query(None, None, Some(at)), &token, 1).await;
    assert!(matches!(wrong, Err(StoreError::InvalidPage)));
    one(&store, Write::Cancel { event_id: id("a"), by: uid("SPOKE-1"), hub: hub(), at: AT }).await.unwrap();
    assert_eq!(some(all).await, "n o b c later", "what was taken back isn't listed");
}

#[tokio::test]
async fn a_page_may_be_empty_though_others_follow() {
    let store = fresh().await;
    store.commit((0..25).map(|n| schedule(&format!("e{n:02}"), AT + n)).collect()).await;
    let insert = "INSERT INTO event (id, domain, pid, name, data) VALUES ('last', 'rare', 'p', 'n', '1'); \
                  INSERT INTO event_scheduled (event_id, scheduled) VALUES ('last', '9000-01-01 00:00:00')";
    sql(&store, insert).await;
    let rare = query(Some("rare"), None, None);
    let (first, next) = store.schedules_page(&rare, "", 5).await.unwrap();
    assert!(first.is_empty() && !next.is_empty());
    assert_eq!(listed(&store, &rare, 5).await[0].0, "last");
}

#[tokio::test]
async fn the_database_tells_its_time() {
    let store = fresh().await;
    let before = time::now();
    let now = store.clock().await.unwrap();
    assert!((before..=time::now()).contains(&now), "{before} {now}");
}

#[tokio::test]
async fn a_page_of_what_is_due_uses_its_index() {
    if engines::is_only_for_sqlite("EXPLAIN QUERY PLAN is SQLite's") {
        return;
    }
    let store = fresh().await;
    let (_, token) = {
        store.commit(vec![schedule("a", AT), schedule("b", AT)]).await;
        store.schedules_page(&query(None, None, None), "", 1).await.unwrap()
    };
    let after: ScheduleKey = token.parse().unwrap();
    for ((text, values), by) in [
        (due_query(AT, None, 100), "(scheduled<?)"),
        (list::list_query(&query(None, None, None), Some(&after), 100), "(scheduled>?)"),
        (list::list_query(&query(None, Some(AT), Some(AT)), None, 100), "(scheduled>? AND scheduled<?)"),
    ] {
        let rows = store.writer.raw().rows(format!("EXPLAIN QUERY PLAN {text}"), values).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.try_get_by_index(3).unwrap()).collect();
        assert!(plan[0].contains(&format!("event_scheduled_open {by}")), "{plan:?}");
        assert!(plan.iter().all(|step| !step.starts_with("SCAN")), "{plan:?}");
    }
}
