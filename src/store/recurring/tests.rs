use super::{super::tests::*, *};
use crate::{
    event::Uid,
    store::{Write, time},
    wire::Recur,
};

async fn make(store: &Store, name: &str) {
    let event = event("e");
    let what = Recurring::new(event.domain, event.name, "@daily".into());
    let recur = Recur { name: name.parse().unwrap(), replace: false, what, data: event.data };
    let by: Uid = uid("SPOKE-1");
    one(store, Write::Recur { recur: Box::new(recur), by, hub: hub(), at: AT }).await.unwrap();
}

#[tokio::test]
async fn they_are_listed_by_name_page_by_page() {
    let store = fresh().await;
    for name in ["c", "a", "b"] {
        make(&store, name).await;
    }
    let (page, more) = store.recurring_page("", 2).await.unwrap();
    let names = |page: &[RecurringState]| page.iter().map(|state| state.name.to_string()).collect::<Vec<_>>();
    assert_eq!((names(&page), more), (vec!["a".to_owned(), "b".to_owned()], true));
    let (page, more) = store.recurring_page("b", 2).await.unwrap();
    assert_eq!((names(&page), more), (vec!["c".to_owned()], false));
    let none = store.recurring(&"d".parse().unwrap(), 1, time::now()).await.unwrap_err();
    assert!(matches!(none, StoreError::RecurringNotFound { .. }));
}

#[tokio::test]
async fn what_is_due_is_found_by_its_index() {
    if engines::is_only_for_sqlite("EXPLAIN QUERY PLAN is SQLite's") {
        return;
    }
    let store = fresh().await;
    let sql = "EXPLAIN QUERY PLAN SELECT name, due, octet_length(data) FROM v1_recurring \
               WHERE due <= 5 AND NOT paused ORDER BY due, name LIMIT 9";
    let rows = store.writer.raw().rows(sql, Vec::new()).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.try_get_by_index(3).unwrap()).collect();
    assert!(plan[0].contains("v1_recurring_due"), "{plan:?}");
}

#[test]
fn ids_differ_by_name_and_time_and_are_short() {
    let name = |text: &str| RecurringName::parse(text.to_owned()).unwrap();
    let id = occurrence_id(&name("a"), 12);
    assert_eq!(id, occurrence_id(&name("a"), 12));
    assert!(EventId::parse(id.to_string()).is_ok() && id.starts_with("re-"), "{id}");
    for other in [occurrence_id(&name("a"), 13), occurrence_id(&name("b"), 12), occurrence_id(&name("a1"), 2)]
    {
        assert_ne!(id, other);
    }
}
