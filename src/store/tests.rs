//! What tests of the store share, and the tests of engines, opening, memory, hubs, certificates, copies, reads and logs.

mod adoption;
mod copies;
mod damage;
pub(super) mod engines;
mod first;
mod groups;
mod hubs;
mod log;
mod memory;
mod opening;
mod plans;
mod reads;
mod replays;
mod rows;
mod unserved;

use sea_orm::ConnectionTrait;

use super::*;
use crate::{
    event::{Data, Domain, Event, EventId, Group, Name, Outcome, Pattern, Pid, Uid},
    wire::Redrive,
};

/// A moment in 2026.
pub(super) const AT: i64 = 1_796_030_712_007;

pub(super) fn uid(text: &str) -> Uid {
    Uid::parse(text.to_owned()).unwrap()
}

pub(super) fn hub() -> Uid {
    uid("HUB-1")
}

pub(super) fn hub_row(id: &str) -> HubRow {
    HubRow {
        id: uid(id),
        external_ip: "127.0.0.1".into(),
        external_port: 50_001,
        internal_ip: "127.0.0.1".into(),
        internal_port: 50_001,
    }
}

/// A store on the engine that is tested, with the hub `HUB-1`; of SQLite one in memory.
pub(super) async fn fresh() -> Store {
    let store = Store::open(&engines::config(engines::empty().await)).await.unwrap();
    store.register_hub(&hub_row("HUB-1")).await.unwrap();
    store
}

/// A store of SQLite with the hub `HUB-1`.
pub(super) async fn file(config: &StoreConfig) -> Store {
    let store = Store::open(config).await.unwrap();
    store.register_hub(&hub_row("HUB-1")).await.unwrap();
    store
}

pub(super) fn in_file(folder: &tempfile::TempDir) -> StoreConfig {
    StoreConfig::new(Place::File(folder.path().join("eventflow.db")))
}

pub(super) fn id(text: &str) -> EventId {
    EventId::parse(text.to_owned()).unwrap()
}

pub(super) fn event(id_text: &str) -> Event {
    Event {
        id: id(id_text),
        timestamp: AT,
        domain: Domain::parse("orders").unwrap(),
        name: Name::parse("created").unwrap(),
        pid: Pid::parse("order-1").unwrap(),
        rid: None,
        data: Data::parse(r#"{"a":1}"#).unwrap(),
    }
}

pub(super) fn publish(event: Event, seq: u64) -> Write {
    Write::Publish { event, seq, publisher: uid("SPOKE-1"), hub: hub(), expect: None }
}

pub(super) fn finish(event_id: &str, seq: u64, outcome: Outcome) -> Write {
    ended(event_id, seq, outcome, "SPOKE-2", AT + 5, None)
}

/// An outcome in the default group.
pub(super) fn ended(
    event_id: &str,
    seq: u64,
    outcome: Outcome,
    consumer: &str,
    at: i64,
    attempt: Option<AttemptRow>,
) -> Write {
    Write::Finish {
        event_id: id(event_id),
        seq,
        outcome,
        consumer: uid(consumer),
        at,
        attempt,
        hub: hub(),
        group: String::new(),
        round: 1,
        retried: false,
        letter: None,
    }
}

/// The same outcome in a group, in one of its rounds.
pub(super) fn in_group(mut write: Write, name: &str, number: u32, waited: bool) -> Write {
    if let Write::Finish { group, round, retried, attempt, .. } = &mut write {
        (*group, *round, *retried) = (name.to_owned(), number, waited);
        if let Some(row) = attempt {
            (row.group, row.round) = (name.to_owned(), number);
        }
    }
    write
}

/// The same outcome with a letter.
pub(super) fn with_letter(mut write: Write, told: Letter) -> Write {
    if let Write::Finish { letter, .. } = &mut write {
        *letter = Some(Box::new(told));
    }
    write
}

/// An attempt that failed, after which the event waits.
pub(super) fn retry(event_id: &str, seq: u64, group: &str, (round, number): (u32, u32), due: i64) -> Write {
    let attempt = AttemptRow { group: group.into(), round, ..attempt(event_id, number) };
    Write::Retry { attempt, hub: hub(), seq, original: seq, pid: event(event_id).pid, due }
}

/// A redrive of one event, or of all.
pub(super) fn redrive(group: &str, event_id: Option<&str>) -> Write {
    let group = (!group.is_empty()).then(|| Group::parse(group.to_owned()).unwrap());
    let what = Redrive { group, id: event_id.map(id), ..Redrive::default() };
    Write::Redrive { what, hub: hub(), at: AT + 50, by: uid("SPOKE-9"), most: 2, after: 0, first: 0 }
}

pub(super) fn attempt(event_id: &str, number: u32) -> AttemptRow {
    AttemptRow {
        event_id: id(event_id),
        group: String::new(),
        round: 1,
        number,
        consumer: uid("SPOKE-2"),
        started: AT,
        ended: AT + 1,
        reason: "nack".into(),
        error: "out of paper".into(),
    }
}

pub(super) fn binding(group: &str, domain: &str, name: &str, start_seq: u64) -> Binding {
    let pattern = |text: &str| Pattern::parse(text.to_owned()).unwrap();
    Binding {
        id: 0,
        group: group.into(),
        domain: pattern(domain),
        name: pattern(name),
        start_seq,
        starts: Vec::new(),
        created: AT,
    }
}

/// Commits one write.
pub(super) async fn one(store: &Store, write: Write) -> Result<Written, StoreError> {
    let mut answers = store.commit(vec![write]).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// Runs SQL on the writer, as no API would, in the words of the engine; several statements are parted by `;`.
pub(super) async fn sql(store: &Store, text: &str) {
    for text in text.split(';').filter(|text| !text.trim().is_empty()) {
        let text = sql::statement(text, Vec::new()).sql;
        store.writer.raw().execute_unprepared(&text).await.unwrap();
    }
}

/// The rows of a query on the writer.
pub(super) async fn rows(store: &Store, text: &str) -> Vec<sea_orm::QueryResult> {
    store.writer.raw().query_all_raw(sql::statement(text, Vec::new())).await.unwrap()
}

/// The first column of the only row: a whole number.
pub(super) async fn number(store: &Store, text: &str) -> i64 {
    super::engine::number(&rows(store, text).await[0], 0).unwrap()
}

/// The first column of each row: texts.
pub(super) async fn texts(store: &Store, text: &str) -> Vec<String> {
    rows(store, text).await.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
}

/// A page of all domains and names.
pub(super) async fn open_page(
    store: &Store,
    after: u64,
    limit: usize,
    max_bytes: usize,
) -> (Vec<OpenEvent>, bool) {
    let any = Pattern::any();
    let page =
        store.open_page(&hub(), GroupKey::DEFAULT, after, (&any, &any), limit, max_bytes).await.unwrap();
    (page.events, page.more)
}
