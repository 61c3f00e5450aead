//! Logs in all their forms, page by page, and the indexes that serve them.

use super::{reads::plan, *};
use crate::{
    event::Eid,
    wire::{LogOf, LogQuery},
};

fn at(id_text: &str, timestamp: i64) -> Event {
    Event { timestamp, ..event(id_text) }
}

fn domain(text: &str) -> Domain {
    Domain::parse(text.to_owned()).unwrap()
}

fn pid(text: &str) -> Pid {
    Pid::parse(text.to_owned()).unwrap()
}

fn query(json: &str) -> LogQuery {
    serde_json::from_str(json).unwrap()
}

/// The log of [`event`]'s process.
pub(super) fn of_process() -> LogQuery {
    LogOf::Process { domain: event("x").domain, pid: event("x").pid }.into()
}

/// The ids of all pages of a log, each page asked for by its token, as a client would.
pub(super) async fn pages(
    store: &Store,
    query: &LogQuery,
    limit: usize,
    max_bytes: usize,
) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut after: Option<LogKey> = None;
    loop {
        let (events, next) = store.log_page(query, after.as_ref(), limit, max_bytes).await.unwrap();
        pages.push(events.iter().map(|event| event.id.to_string()).collect());
        match next {
            Some(key) => after = Some(key.to_string().parse().unwrap()),
            None => return pages,
        }
    }
}

/// The same in one list, whatever the pages' size.
async fn ids(store: &Store, json: &str) -> Vec<String> {
    let query = query(json);
    let whole = pages(store, &query, 1_000, 1_000_000).await.concat();
    for limit in 1..=whole.len() {
        let pages = pages(store, &query, limit, 1_000_000).await;
        assert_eq!(pages.concat(), whole, "{limit} {json}");
        assert!(pages.iter().all(|page| page.len() <= limit));
        assert_eq!(pages.len(), whole.len().div_ceil(limit));
    }
    whole
}

/// Stored by another program, and published by nobody.
async fn persist(store: &Store, id: &str, timestamp: i64) {
    let at = time::text(timestamp);
    let text = format!(
        "INSERT INTO event (id, timestamp, domain, pid, name, data) \
         VALUES ('{id}', @local('{at}'), 'orders', 'order-1', 'created', '1')"
    );
    sql(store, &text).await;
}

#[tokio::test]
async fn a_log_is_in_order_of_time_then_number_then_id() {
    let store = fresh().await;
    store
        .commit(vec![
            publish(at("b", AT + 1), 1),
            publish(at("z", AT), 3),
            publish(at("y", AT), 4),
            publish(at("a", AT), 9),
            publish(Event { pid: pid("other"), ..at("o", AT) }, 10),
            publish(Event { domain: domain("users"), ..at("u", AT) }, 11),
        ])
        .await;
    persist(&store, "n", AT).await;
    persist(&store, "m", AT).await;
    let of_process = ids(&store, r#"{"domain":"orders","pid":"order-1"}"#).await;
    assert_eq!(of_process, ["z", "y", "a", "m", "n", "b"]);
    let newest_first = ids(&store, r#"{"domain":"orders"}"#).await;
    assert_eq!(newest_first, ["b", "n", "m", "o", "a", "y", "z"]);
    assert_eq!(ids(&store, r#"{"domain":"nothing"}"#).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_event_is_found_by_what_it_is_associated_with() {
    let store = fresh().await;
    let users = |id_text: &str, timestamp| Event { domain: domain("users"), ..at(id_text, timestamp) };
    store
        .commit(vec![
            publish(at("c", AT + 2), 1),
            publish(at("b", AT + 1), 2),
            publish(at("a", AT), 3),
            publish(users("u", AT + 1), 4),
        ])
        .await;
    for (id, domain, cpid) in
        [("c", "parcels", "7"), ("a", "parcels", "7"), ("u", "parcels", "7"), ("b", "x", "7")]
    {
        let row =
            format!("INSERT INTO event_cpid (event_id, domain, cpid) VALUES ('{id}', '{domain}', '{cpid}')");
        sql(&store, &row).await;
    }
    for (id, eid) in [("c", "ann"), ("b", "ann"), ("u", "ann"), ("a", "bob")] {
        sql(&store, &format!("INSERT INTO event_eid (event_id, eid) VALUES ('{id}', '{eid}')")).await;
    }
    assert_eq!(ids(&store, r#"{"domain":"parcels","cpid":"7"}"#).await, ["a", "u", "c"]);
    assert_eq!(ids(&store, r#"{"domain":"orders","cpid":"7"}"#).await, Vec::<String>::new());
    assert_eq!(ids(&store, r#"{"eid":"ann"}"#).await, ["b", "u", "c"]);
    assert_eq!(ids(&store, r#"{"domain":"orders","eid":"ann"}"#).await, ["b", "c"]);
    assert_eq!(
        ids(&store, r#"{"domain":"orders","eid":"ann","names":["paid"]}"#).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn names_and_times_narrow_a_log() {
    let store = fresh().await;
    let names = ["created", "paid", "created", "sent", "paid"];
    let events = names.iter().enumerate().map(|(n, name)| {
        let ms = i64::try_from(n).unwrap();
        publish(Event { name: Name::parse(*name).unwrap(), ..at(&format!("e{n}"), AT + ms) }, n as u64 + 1)
    });
    store.commit(events.collect()).await;
    let narrowed =
        async |rest: &str| ids(&store, &format!(r#"{{"domain":"orders","pid":"order-1",{rest}}}"#)).await;
    assert_eq!(narrowed(r#""names":["paid","sent"]"#).await, ["e1", "e3", "e4"]);
    assert_eq!(narrowed(r#""names":["nothing"]"#).await, Vec::<String>::new());
    assert_eq!(narrowed(&format!(r#""from":{},"to":{}"#, AT + 1, AT + 3)).await, ["e1", "e2"]);
    assert_eq!(narrowed(&format!(r#""names":["paid"],"from":{}"#, AT + 2)).await, ["e4"]);
    // Beyond the calendar.
    assert_eq!(narrowed(&format!(r#""from":{},"to":{}"#, i64::MIN, i64::MAX)).await.len(), 5);
    assert_eq!(narrowed(&format!(r#""from":{}"#, i64::MAX)).await, Vec::<String>::new());
    assert_eq!(narrowed(&format!(r#""to":{}"#, i64::MIN)).await, Vec::<String>::new());
    let of_domain = format!(r#"{{"domain":"orders","names":["created","paid"],"to":{}}}"#, AT + 4);
    assert_eq!(ids(&store, &of_domain).await, ["e2", "e1", "e0"]);
}

#[tokio::test]
async fn what_waits_for_its_time_is_in_no_log() {
    let store = fresh().await;
    persist(&store, "later", AT).await;
    persist(&store, "ran", AT + 1).await;
    sql(
        &store,
        "INSERT INTO event_scheduled (event_id, scheduled) VALUES ('later', '2030-01-01 00:00:00.000')",
    )
    .await;
    sql(
        &store,
        "INSERT INTO event_scheduled (event_id, scheduled, executed) \
         VALUES ('ran', '2026-01-01 00:00:00.000', '2026-01-01 00:00:00.000')",
    )
    .await;
    assert_eq!(ids(&store, r#"{"domain":"orders","pid":"order-1"}"#).await, ["ran"]);
    assert_eq!(ids(&store, r#"{"domain":"orders"}"#).await, ["ran"]);
    let row = "UPDATE event SET pid = 'order-2' WHERE id = 'ran'";
    sql(&store, row).await;
    let (pids, _) = store.pids_page(&domain("orders"), None, 10).await.unwrap();
    assert_eq!(pids, [pid("order-2")], "nor does it make a process");
}

#[tokio::test]
async fn a_token_of_another_query_is_refused() {
    let store = fresh().await;
    store.commit(vec![publish(event("a"), 1), publish(event("b"), 2)]).await;
    let (_, next) = store.log_page(&of_process(), None, 1, 1_000).await.unwrap();
    for other in [
        r#"{"domain":"orders","pid":"order-2"}"#,
        r#"{"domain":"orders","cpid":"order-1"}"#,
        r#"{"domain":"orders"}"#,
        r#"{"domain":"orders","eid":"order-1"}"#,
        r#"{"domain":"orders","pid":"order-1","names":["created"]}"#,
        r#"{"domain":"orders","pid":"order-1","from":5}"#,
        r#"{"domain":"orders","pid":"order-1","to":5}"#,
    ] {
        let error = store.log_page(&query(other), next.as_ref(), 1, 1_000).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidPage), "{other}");
    }
    store.commit(vec![publish(Event { pid: pid("order-2"), ..event("c") }, 3)]).await;
    let (_, next) = store.pids_page(&domain("orders"), None, 1).await.unwrap();
    let error = store.pids_page(&domain("users"), next.as_ref(), 1).await.unwrap_err();
    assert!(matches!(error, StoreError::InvalidPage));
}

#[tokio::test]
async fn the_pids_of_a_domain_rise_and_come_in_pages() {
    let store = fresh().await;
    let mut seq = 0;
    let mut publishes = Vec::new();
    for number in [3, 1, 2, 10] {
        for _ in 0..3 {
            seq += 1;
            let event = Event { pid: pid(&format!("order-{number}")), ..event(&format!("e{seq}")) };
            publishes.push(publish(event, seq));
        }
    }
    publishes.push(publish(Event { domain: domain("users"), pid: pid("u"), ..event("u") }, seq + 1));
    store.commit(publishes).await;
    let whole = ["order-1", "order-10", "order-2", "order-3"];
    for limit in 1..=5 {
        let (mut seen, mut after): (Vec<Pid>, Option<PidKey>) = (Vec::new(), None);
        loop {
            let (page, next) = store.pids_page(&domain("orders"), after.as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            seen.extend(page);
            let Some(key) = next else { break };
            after = Some(key.to_string().parse().unwrap());
        }
        assert_eq!(seen, whole, "{limit}");
    }
    let (none, next) = store.pids_page(&domain("nothing"), None, 10).await.unwrap();
    assert!(none.is_empty() && next.is_none());
}

#[tokio::test]
async fn a_page_of_pids_fits_a_record() {
    let store = fresh().await;
    // Each character is two in JSON.
    let publishes = (0..600).map(|n| {
        let pid = pid(&format!("{n:03}{}", "\\".repeat(61)));
        publish(Event { pid, ..event(&format!("e{n}")) }, n + 1)
    });
    store.commit(publishes.collect()).await;
    let (page, next) = store.pids_page(&domain("orders"), None, 1_000).await.unwrap();
    assert!((200..300).contains(&page.len()) && next.is_some(), "{}", page.len());
    assert!(serde_json::to_string(&page).unwrap().len() <= 32 * 1024 + 2);
}

#[tokio::test]
async fn each_form_is_served_by_an_index() {
    if engines::is_only_for_sqlite("EXPLAIN QUERY PLAN is SQLite's") {
        return;
    }
    let store = fresh().await;
    let domain = domain("orders");
    let forms: [(LogOf, &str); 5] = [
        (
            LogOf::Process { domain: domain.clone(), pid: pid("1") },
            "SEARCH e USING INDEX event_log (domain=? AND pid=?",
        ),
        (
            LogOf::ChildProcess { domain: domain.clone(), cpid: pid("1") },
            "SEARCH a USING COVERING INDEX event_cpid_log (domain=? AND cpid=?)",
        ),
        (
            LogOf::Entity { eid: Eid::parse("1").unwrap(), domain: None },
            "SEARCH a USING COVERING INDEX event_eid_log (eid=?)",
        ),
        (
            LogOf::Entity { eid: Eid::parse("1").unwrap(), domain: Some(domain.clone()) },
            "SEARCH a USING COVERING INDEX event_eid_log (eid=?)",
        ),
        (LogOf::Domain { domain: domain.clone() }, "SEARCH e USING INDEX event_domain (domain=?"),
    ];
    for (of, index) in forms {
        let by_time = matches!(of, LogOf::Process { .. } | LogOf::Domain { .. });
        let all: LogQuery = of.into();
        let narrow =
            LogQuery { names: vec![event("x").name], from: Some(AT), to: Some(AT + 9), ..all.clone() };
        for query in [all, narrow] {
            let key = |seq| LogKey { query: page::log_query(&query), timestamp: AT, seq, id: id("e") };
            for after in [None, Some(key(None)), Some(key(Some(4)))] {
                let (tail, values) = super::super::log::log_tail(&query, after.as_ref());
                let plan = plan(&store, format!("SELECT {} {tail} LIMIT 10", events::EVENT), values).await;
                assert!(plan.contains(index), "{plan}");
                assert!(!plan.contains("SCAN"), "{plan}");
                // What is in order already is read page by page; associations are sorted.
                assert!(!by_time || !plan.contains("TEMP B-TREE FOR ORDER BY"), "{plan}");
                let bounded = after.is_some() || query.from.is_some();
                assert!(!by_time || plan.contains(" AND timestamp") == bounded, "{plan}");
            }
        }
    }
    let (sql, values) = super::super::log::pids(store.writer.engine(), &domain, None, 10);
    let plan = plan(&store, sql, values).await;
    assert!(plan.contains("SEARCH e USING INDEX event_log (domain=? AND pid>?)"), "{plan}");
    assert!(!plan.contains("SCAN e") && !plan.contains("TEMP B-TREE"), "{plan}");
}
