use super::{super::tests::*, *};
use crate::store::Write;

fn schedule(id_text: &str, due: i64) -> Write {
    Write::Schedule { event: event(id_text), due, publisher: uid("SPOKE-1") }
}

async fn due(store: &Store, until: i64, limit: usize) -> (Vec<String>, bool) {
    let (page, more) = store.due_page(until, limit).await.unwrap();
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
    let (page, _) = store.due_page(at + 300, 9).await.unwrap();
    assert_eq!(page[1], Due { due: at + 300, id: id("a"), bytes: event("a").data.as_str().len() });
}

#[tokio::test]
async fn dates_that_are_none_hold_up_nobody() {
    let store = fresh().await;
    let insert = "INSERT INTO event (id, domain, pid, name, data) VALUES ('bad', 'd', 'p', 'n', '1'); \
                  INSERT INTO event_scheduled (event_id, scheduled) VALUES ('bad', '0000 soon')";
    sql(&store, insert).await;
    one(&store, schedule("good", AT)).await.unwrap();
    assert_eq!(due(&store, AT, 9).await, (vec!["good".to_owned()], false));
    assert_eq!(store.trace(&id("bad")).await.unwrap().unwrap().1.state, "scheduled");
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
    let store = fresh().await;
    let (text, values) = due_query(AT, 100);
    let rows = store.writer.raw().rows(format!("EXPLAIN QUERY PLAN {text}"), values).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.try_get_by_index(3).unwrap()).collect();
    assert!(plan[0].contains("event_scheduled_open (scheduled<?)"), "{plan:?}");
    assert!(plan.iter().all(|step| !step.starts_with("SCAN")), "{plan:?}");
}
