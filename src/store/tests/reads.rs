//! Pages, traces, counts, and that the hot reads use their indexes.

use super::*;

fn sized(id_text: &str, bytes: usize) -> Event {
    Event { data: Data::from_value(&"x".repeat(bytes - 2)).unwrap(), ..event(id_text) }
}

#[tokio::test]
async fn pages_end_by_bytes_and_hold_at_least_one() {
    let store = fresh().await;
    let sizes = [100, 100, 5_000, 100, 2_000];
    let events =
        sizes.iter().enumerate().map(|(n, size)| publish(sized(&format!("e{n}"), *size), n as u64 + 1));
    store.commit(events.collect()).await;
    let pages = log::pages(&store, &log::of_process(), 100, 1_000).await;
    assert_eq!(pages, [vec!["e0", "e1"], vec!["e2"], vec!["e3"], vec!["e4"]]);

    let mut seqs = Vec::new();
    let mut after = 0;
    loop {
        let (page, more) = open_page(&store, after, 100, 1_000).await;
        let Some(last) = page.last() else { break };
        assert_eq!(more, last.seq < 5);
        after = last.seq;
        seqs.push(page.iter().map(|open| open.seq).collect::<Vec<_>>());
    }
    assert_eq!(seqs, [vec![1, 2], vec![3], vec![4], vec![5]]);
}

#[tokio::test]
async fn open_pages_hold_what_has_no_outcome_with_its_attempts() {
    let store = fresh().await;
    store.register_hub(&hub_row("HUB-2")).await.unwrap();
    let elsewhere =
        Write::Publish { event: event("h2"), seq: 2, publisher: uid("S"), hub: uid("HUB-2"), expect: None };
    let mut batch: Vec<Write> = (1..=5).map(|n| publish(event(&format!("e{n}")), n)).collect();
    batch.extend([elsewhere, finish("e2", 2, Outcome::Success), finish("e3", 3, Outcome::Dead)]);
    batch.extend([Write::Attempt(attempt("e4", 1)), Write::Attempt(attempt("e4", 2))]);
    batch.push(Write::Attempt(AttemptRow { group: "mail".into(), ..attempt("e4", 1) }));
    assert!(store.commit(batch).await.iter().all(Result::is_ok));

    let (open, _) = open_page(&store, 0, 2, 1_000_000).await;
    let seen: Vec<_> = open.iter().map(|open| (open.seq, open.attempts)).collect();
    assert_eq!(seen, [(1, 0), (4, 2)]);
    assert_eq!(open[1].event, event("e4"));
    assert_eq!(open[1].publisher, uid("SPOKE-1"));
    let (rest, more) = open_page(&store, 4, 2, 1_000_000).await;
    assert_eq!(rest.iter().map(|open| open.seq).collect::<Vec<_>>(), [5]);
    assert!(!more);

    let counts = store.counts(&hub()).await.unwrap();
    assert_eq!(counts, Counts { events: 6, published: 5, success: 1, failed: 1, open: 3 });
    assert_eq!(store.last_seq(&uid("HUB-2")).await.unwrap(), 2);
    assert_eq!(store.last_seq(&uid("HUB-3")).await.unwrap(), 0);
}

#[tokio::test]
async fn a_trace_tells_what_became_of_an_event() {
    let store = fresh().await;
    let state = async |id_text: &str| store.trace(&id(id_text)).await.unwrap().unwrap().1.state;
    assert!(store.trace(&id("nobody")).await.unwrap().is_none());

    sql(&store, "INSERT INTO event (id, domain, pid, name, data) VALUES ('stored', 'orders', 'p', 'n', '1')")
        .await;
    assert_eq!(state("stored").await, "persisted");

    let events = ["early", "open", "good", "bad", "old"];
    let batch = events.iter().zip(10..).map(|(id, seq)| publish(event(id), seq));
    store.commit(batch.collect()).await;
    assert_eq!(state("open").await, "orphan");
    one(&store, Write::Bind(binding("mail", "*", "*", 0))).await.unwrap();
    one(&store, Write::Bind(binding("", "users", "*", 0))).await.unwrap();
    assert_eq!(state("open").await, "orphan", "another group, another domain");
    one(&store, Write::Bind(binding("", "orders", "crea*", 0))).await.unwrap();
    assert_eq!(state("open").await, "orphan", "another name");
    one(&store, Write::Bind(binding("", "orders", "*", 11))).await.unwrap();
    assert_eq!(state("open").await, "pending");
    assert_eq!(state("early").await, "orphan", "before the binding begins");

    let last = AttemptRow { error: "é".repeat(3_000), ..attempt("bad", 1) };
    let dead = ended("bad", 13, Outcome::Dead, "SPOKE-2", AT + 9, Some(last));
    store.commit(vec![dead, finish("good", 12, Outcome::Success), finish("old", 14, Outcome::Expired)]).await;
    assert_eq!(state("old").await, "expired");
    let (_, good) = store.trace(&id("good")).await.unwrap().unwrap();
    assert_eq!(
        (good.state.as_str(), good.ended, good.consumer),
        ("success", Some(engines::held(AT + 5)), Some(uid("SPOKE-2")))
    );
    let (_, bad) = store.trace(&id("bad")).await.unwrap().unwrap();
    assert_eq!(bad.state, "dead");
    assert_eq!((bad.publisher, bad.published), (Some(uid("SPOKE-1")), Some(engines::held(AT))));
    assert_eq!((bad.hub, bad.seq, bad.ended), (Some(hub()), Some(13), Some(engines::held(AT + 9))));
    assert_eq!(bad.attempts.len(), 1);
    assert_eq!(bad.attempts[0].error, "é".repeat(3_000));
}

#[tokio::test]
async fn a_trace_shows_the_last_hundred_attempts_oldest_first() {
    let store = fresh().await;
    one(&store, publish(event("e"), 1)).await.unwrap();
    // Of texts for which there is no room the beginning and the end, in whole characters of two bytes.
    let long = |number| AttemptRow { error: "é".repeat(3_000), ..attempt("e", number) };
    store.commit((1..=125).map(|number| Write::Attempt(long(number))).collect()).await;
    let (_, trace) = store.trace(&id("e")).await.unwrap().unwrap();
    let numbers: Vec<u32> = trace.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (26..=125).collect::<Vec<_>>());
    let cut = format!("{} … {}", "é".repeat(128), "é".repeat(384));
    assert!(trace.attempts.iter().all(|attempt| attempt.error == cut));
}

#[tokio::test]
async fn a_trace_shows_the_attempts_of_a_group_however_many_another_one_has() {
    let store = fresh().await;
    one(&store, publish(event("e"), 1)).await.unwrap();
    let of = |group: &str, number| Write::Attempt(AttemptRow { group: group.into(), ..attempt("e", number) });
    let shown = async || {
        let mut shown = std::collections::BTreeMap::<String, Vec<u32>>::new();
        for attempt in store.trace(&id("e")).await.unwrap().unwrap().1.attempts {
            let group = attempt.group.map(|group| group.to_string()).unwrap_or_default();
            shown.entry(group).or_default().push(attempt.number);
        }
        shown
    };
    let mut batch: Vec<_> = (1..=2).map(|number| of("mail", number)).collect();
    batch.extend((1..=125).map(|number| of("", number)));
    assert!(store.commit(batch).await.iter().all(Result::is_ok));
    let both = shown().await;
    assert_eq!((both.len(), &both["mail"], &both[""]), (2, &vec![1, 2], &(28..=125).collect()));

    // More than a trace has room for: each group keeps its last ones.
    let crowd = (0..38).flat_map(|group| (1..=3).map(move |number| (format!("g{group}"), number)));
    let batch = crowd.map(|(group, number)| of(&group, number)).collect();
    assert!(store.commit(batch).await.iter().all(Result::is_ok));
    let all = shown().await;
    assert_eq!((all.len(), all.values().map(Vec::len).sum::<usize>()), (40, 100));
    assert!(all.values().all(|numbers| numbers.len() >= 2), "{all:?}");
    assert_eq!((&all["mail"], all[""].last()), (&vec![1, 2], Some(&125)));
}

#[tokio::test]
async fn open_pages_leave_out_what_the_patterns_rule_out() {
    let store = fresh().await;
    let names = ["orders", "orders.eu", "orders.eu.de", "mail"].into_iter().enumerate();
    let events = names.map(|(n, domain)| {
        let domain = Domain::parse(domain).unwrap();
        publish(Event { domain, ..event(&format!("e{n}")) }, n as u64 + 1)
    });
    store.commit(events.collect()).await;
    for (pattern, expected) in
        [("orders", vec![1]), ("orders.>", vec![2, 3]), ("*", vec![1, 2, 3, 4]), ("mail.*", vec![])]
    {
        let domain = Pattern::parse(pattern).unwrap();
        let any = Pattern::any();
        let open =
            store.open_page(&hub(), GroupKey::DEFAULT, 0, (&domain, &any), 10, 1_000_000).await.unwrap();
        assert_eq!(open.events.iter().map(|open| open.seq).collect::<Vec<_>>(), expected, "{pattern}");
    }
}

pub(super) async fn plan(store: &Store, text: String, values: Vec<sea_orm::Value>) -> String {
    let rows = store
        .readers
        .query_all_raw(sql::statement(format!("EXPLAIN QUERY PLAN {text}"), values))
        .await
        .unwrap();
    rows.iter().map(|row| row.try_get_by_index::<String>(3).unwrap()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_hot_reads_use_their_indexes() {
    if engines::is_only_for_sqlite("EXPLAIN QUERY PLAN is SQLite's") {
        return;
    }
    let store = fresh().await;
    let attempts = plan(&store, "SELECT count(*) FROM v1_attempt WHERE event_id = 'e'".into(), vec![]).await;
    assert!(attempts.contains("v1_attempt_event"), "{attempts}");
    let answers = plan(&store, "UPDATE event SET rid = NULL WHERE rid = 'e'".into(), vec![]).await;
    assert!(answers.contains("event_rid"), "{answers}");
}
