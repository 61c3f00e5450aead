//! Two hubs on one database, each a process of its own, with workers at each of them and books of what those did.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use eventflow::spoke::{Consume, Spoke};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{
    PATIENCE, engine,
    process::{Home, Process},
};

/// Two hubs that run.
pub struct Pair {
    /// Where the first lives, and it.
    pub one: (Home, Process),
    /// The other.
    pub two: (Home, Process),
}

impl Pair {
    /// Starts both; none, and it is said: SQLite has one hub.
    pub async fn start() -> Option<Self> {
        if engine::server().is_none() {
            eprintln!("skipped: SQLite has one hub");
            return None;
        }
        let home = Home::new();
        let hub = home.start().await;
        let other = home.beside();
        let beside = other.start().await;
        Some(Self { one: (home, hub), two: (other, beside) })
    }

    /// A connection to their database.
    pub async fn database(&self) -> DatabaseConnection {
        engine::open(&self.one.0.database()).await
    }
}

/// One handling of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handling {
    /// At which hub: 1 or 2.
    pub hub: u8,
    /// The hub said that its outcome is recorded.
    pub acked: bool,
    /// It said that the claim is lost, or nothing.
    pub lost: bool,
}

/// What was handled in one group: by event, in the order in which it came.
#[derive(Debug, Clone, Default)]
pub struct Book(pub Arc<Mutex<HashMap<String, Vec<Handling>>>>);

impl Book {
    /// How many events were handled to their end.
    pub fn acked(&self) -> usize {
        let book = self.0.lock().unwrap();
        book.values().filter(|handlings| handlings.iter().any(|handling| handling.acked)).count()
    }

    /// Of each event at most one ack was confirmed, and none was handled again but where a claim was lost.
    pub fn check(&self) {
        for (id, handlings) in self.0.lock().unwrap().iter() {
            let acked = handlings.iter().filter(|handling| handling.acked).count();
            assert!(acked <= 1, "{id} was acked {acked} times: {handlings:?}");
            let kept = handlings.iter().filter(|handling| !handling.lost).count();
            assert!(kept <= 1, "{id} was handled again though no claim was lost: {handlings:?}");
        }
    }

    fn note(&self, id: &str, handling: Handling) -> usize {
        let mut book = self.0.lock().unwrap();
        let handlings = book.entry(id.to_owned()).or_default();
        handlings.push(handling);
        handlings.len() - 1
    }

    /// Works on what a hub hands out, one event after the other, so long each.
    pub async fn work(&self, spoke: &Spoke, hub: u8, consume: Consume, pause: Duration) -> JoinHandle<()> {
        let mut claims = spoke.claims(consume).await.unwrap();
        let book = self.clone();
        tokio::spawn(async move {
            while let Some(claim) = claims.next().await {
                let id = claim.event().id.to_string();
                // Lost until the hub says otherwise.
                let nth = book.note(&id, Handling { hub, acked: false, lost: true });
                sleep(pause).await;
                let book = book.clone();
                tokio::spawn(async move {
                    let acked = claim.ack().await.is_ok();
                    if let Some(handlings) = book.0.lock().unwrap().get_mut(&id) {
                        handlings[nth] = Handling { hub, acked, lost: !acked };
                    }
                });
            }
        })
    }
}

/// The first column of the only row: a number.
pub async fn count(database: &DatabaseConnection, sql: &str) -> i64 {
    let row = database.query_one_raw(engine::statement(database, sql, [])).await.unwrap().unwrap();
    row.try_get_by_index::<i64>(0).unwrap()
}

/// The first column of each row: texts.
pub async fn texts(database: &DatabaseConnection, sql: &str) -> Vec<String> {
    let rows = database.query_all_raw(engine::statement(database, sql, [])).await.unwrap();
    rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
}

/// Looks now and then until this counts so many: a lease must be over first, and machines stall.
pub async fn until_count(database: &DatabaseConnection, sql: &str, wanted: i64) {
    let deadline = Instant::now() + 5 * PATIENCE;
    loop {
        let found = count(database, sql).await;
        if found == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "{found} and not {wanted}: {sql}");
        // Not a guess at how long it takes: only a rest between two looks.
        sleep(Duration::from_millis(100)).await;
    }
}
