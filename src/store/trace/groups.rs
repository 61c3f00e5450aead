//! How an event stands in each group that wants it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDateTime;
use sea_orm::{DbErr, Value};

use super::super::{
    Store, StoreError,
    engine::{Ask, small},
    sql::refused,
    time,
};
use crate::{
    event::{Event, EventId, Group, Uid},
    wire::{GroupTrace, RoundTrace, Trace},
};

/// Groups that a trace shows.
const GROUPS: usize = 100;

/// Earlier rounds that a trace shows.
const ROUNDS: usize = 100;

/// Round, outcome, consumer and time of a round that ended.
type Ended = (u32, String, String, NaiveDateTime);

/// What the database has of an event in one group.
#[derive(Default)]
struct Rows {
    /// The last round that ended.
    ended: Option<Ended>,
    /// Those before.
    before: Vec<Ended>,
    /// Round, attempts and due time, while it waits for another attempt.
    waits: Option<(u32, u32, i64)>,
    /// Attempts by round.
    attempts: BTreeMap<u32, u32>,
}

impl Store {
    /// How the event stands in each group that wants it or has an outcome of it, the default one first: as far as the
    /// database knows, so that what a consumer of ours holds is `pending`.
    pub(super) async fn group_traces(
        &self,
        event: &Event,
        trace: &Trace,
    ) -> Result<(Vec<GroupTrace>, Vec<RoundTrace>), StoreError> {
        let rows = self.rows_of(&event.id).await.map_err(refused("read what became of an event"))?;
        let mut all = Vec::new();
        if !matches!(trace.state.as_str(), "persisted" | "scheduled" | "orphan") {
            all.push(in_default(trace, rows.get("")));
        } else if let Some(rows) = rows.get("").filter(|rows| rows.waits.is_some()) {
            all.push(in_default(trace, Some(rows)));
        }
        let bases = self.base_rounds().await?;
        let bindings = self.bindings().await?;
        let wants = |seq: u64| {
            let wants = bindings.iter().filter(move |binding| binding.wants(&event.domain, &event.name, seq));
            wants.map(|binding| binding.group.as_str())
        };
        let mut wanted: BTreeSet<&str> = trace.seq.into_iter().flat_map(wants).collect();
        let base = |name: &str| bases.get(name).copied().unwrap_or(1);
        // What a removed group has left isn't its any more.
        let is_there = |name: &String| name.is_empty() || bases.contains_key(name);
        let stands = rows.iter().filter(|(name, rows)| is_there(name) && rows.stands(base(name.as_str())));
        wanted.extend(stands.map(|(name, _)| name.as_str()));
        let none = Rows::default();
        for name in wanted.iter().copied().filter(|name| !name.is_empty()).take(GROUPS) {
            all.push(in_named(name, base(name), rows.get(name).unwrap_or(&none)));
        }
        all.truncate(GROUPS);
        let redriven = rows
            .iter()
            .filter(|(name, _)| is_there(name))
            .flat_map(|(name, rows)| rows.redriven(name))
            .take(ROUNDS)
            .collect();
        Ok((all, redriven))
    }

    async fn rows_of(&self, id: &EventId) -> Result<BTreeMap<String, Rows>, DbErr> {
        let mut all: BTreeMap<String, Rows> = BTreeMap::new();
        let of = || -> Vec<Value> { vec![id.as_str().into()] };
        let outcomes = "SELECT grp, round, outcome, consumer, ended FROM v1_outcome WHERE event_id = ? ORDER BY grp, round";
        for row in self.readers.rows(outcomes, of()).await? {
            let ended = (
                small(&row, 1)?,
                row.try_get_by_index(2)?,
                row.try_get_by_index(3)?,
                row.try_get_by_index(4)?,
            );
            let rows = all.entry(row.try_get_by_index(0)?).or_default();
            rows.before.extend(rows.ended.replace(ended));
        }
        let retries = "SELECT grp, round, attempts, due FROM v1_retry WHERE event_id = ?";
        for row in self.readers.rows(retries, of()).await? {
            let waits = (small(&row, 1)?, small(&row, 2)?, row.try_get_by_index(3)?);
            all.entry(row.try_get_by_index(0)?).or_default().waits = Some(waits);
        }
        let attempts = "SELECT grp, round, count(*) FROM v1_attempt WHERE event_id = ? GROUP BY grp, round ORDER BY grp, round";
        for row in self.readers.rows(attempts, of()).await? {
            let rows = all.entry(row.try_get_by_index(0)?).or_default();
            rows.attempts.insert(small(&row, 1)?, small(&row, 2)?);
        }
        Ok(all)
    }
}

impl Rows {
    /// Whether it has its outcome or waits for another attempt, since the group's base round.
    fn stands(&self, base: u32) -> bool {
        self.waits.is_some() || self.ended.as_ref().is_some_and(|ended| ended.0 >= base)
    }

    /// The rounds after which it was redriven. Of the default group all that have rows; of another one the last has its
    /// outcome, unless it waits for an attempt since.
    fn redriven(&self, name: &str) -> impl Iterator<Item = RoundTrace> {
        let last = self.ended.as_ref().filter(|_| name.is_empty() || self.waits.is_some());
        let group = (!name.is_empty()).then(|| Group::from_stored(name.to_owned()));
        self.before.iter().chain(last).map(move |(round, outcome, consumer, ended)| RoundTrace {
            group: group.clone(),
            round: *round,
            state: outcome.clone(),
            consumer: (!consumer.is_empty()).then(|| Uid::from_stored(consumer.clone())),
            ended: time::millis(*ended),
        })
    }

    fn attempts(&self, round: u32) -> u32 {
        self.attempts.get(&round).copied().unwrap_or(0)
    }
}

/// Its outcome stands with the event itself; rows are of the rounds before.
fn in_default(trace: &Trace, rows: Option<&Rows>) -> GroupTrace {
    let over = rows.and_then(|rows| rows.ended.as_ref()).map_or(0, |ended| ended.0);
    let waits = rows.and_then(|rows| rows.waits).filter(|_| trace.ended.is_none());
    let round = waits.map_or(over + 1, |waits| waits.0);
    let is_waiting = waits.is_some() && trace.state != "claimed";
    GroupTrace {
        group: None,
        state: if is_waiting { "retrying".to_owned() } else { trace.state.clone() },
        round,
        attempts: rows.map_or(0, |rows| rows.attempts(round)),
        consumer: trace.consumer.clone(),
        since: None,
        due: waits.filter(|_| is_waiting).map(|waits| waits.2),
        ended: trace.ended,
    }
}

fn in_named(name: &str, base: u32, rows: &Rows) -> GroupTrace {
    let ended = rows.ended.as_ref().filter(|ended| ended.0 >= base && rows.waits.is_none());
    let round = rows.waits.map_or_else(|| ended.map_or(base, |ended| ended.0), |waits| waits.0);
    let state = match (&rows.waits, ended) {
        (Some(_), _) => "retrying",
        (None, Some((_, outcome, ..))) => outcome,
        (None, None) => "pending",
    };
    GroupTrace {
        group: Some(Group::from_stored(name.to_owned())),
        state: state.to_owned(),
        round,
        attempts: rows.attempts(round),
        consumer: ended.map(|ended| Uid::from_stored(ended.2.clone())),
        since: None,
        due: rows.waits.map(|waits| waits.2),
        ended: ended.map(|ended| time::millis(ended.3)),
    }
}
