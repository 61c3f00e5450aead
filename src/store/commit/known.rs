//! What the database holds of the events of a batch, and what the batch makes of it.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, QueryResult, Value};

use super::super::{
    AttemptRow, Letter, MAX_DUE, Placed, StoreError, Write,
    events::{EVENT, event_of},
    schedules::DUE,
    sql::{fill, marks, ours, pieces, rounded, statement, unsigned},
    time,
};
use crate::{
    event::{Event, EventId, NewEvent},
    wire::Published,
};

/// The events that a batch names, as they stand after the writes that were taken up so far.
pub(super) struct Known {
    events: HashMap<EventId, State>,
    /// The content of those that the batch publishes.
    contents: HashMap<EventId, NewEvent>,
    /// How far those that end or wait for an attempt have come, by group.
    rounds: HashMap<(EventId, String), Rounds>,
}

/// How far an event has come in a group.
#[derive(Clone, Copy, Default)]
struct Rounds {
    /// Rounds up to this one are over.
    over: u32,
    /// The round and the attempts of its row in `v1_retry`.
    waits: Option<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct State {
    timestamp: i64,
    /// Whether there is a row in `event_published`, or in `event_scheduled`, which will make one.
    published: bool,
    seq: u64,
    /// When it is or was due, if it is or was scheduled.
    due: Option<i64>,
    /// Whether it can take an outcome, that is: is published, has none, and no npm spoke has claimed it.
    open: bool,
}

/// What to do with an event that is to be scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// Store and schedule it.
    New,
    /// It is stored: schedule it.
    Schedule,
    /// It is scheduled so: nothing to do.
    Duplicate,
}

/// How late a schedule may come, in milliseconds: as of a try again after a lost link.
const LATE: i64 = 60_000;

/// What to do with a publish.
pub(super) enum Verdict {
    /// Store and publish it.
    New,
    /// It is stored: publish it. Its time stays.
    Publish {
        /// The event's own time.
        timestamp: i64,
    },
    /// It is published: nothing to do.
    Duplicate(Published),
}

impl Known {
    /// Reads what the batch names.
    pub(super) async fn read<'a>(
        db: &DatabaseConnection,
        writes: impl IntoIterator<Item = &'a Write>,
    ) -> Result<Self, DbErr> {
        let mut named = HashSet::new();
        let mut published = HashSet::new();
        let mut rounded = HashSet::new();
        for write in writes {
            match write {
                Write::Finish { event_id, group, retried, letter, .. } => {
                    named.insert(event_id);
                    if *retried || !group.is_empty() {
                        rounded.insert(event_id);
                    }
                    if let Some(letter) = letter {
                        named.insert(&letter.event.id);
                        named.extend(&letter.event.rid);
                    }
                }
                Write::Attempt(row) => _ = named.insert(&row.event_id),
                Write::Retry { attempt, .. } => {
                    named.insert(&attempt.event_id);
                    rounded.insert(&attempt.event_id);
                }
                _ => {}
            }
            for event in write.stores() {
                named.insert(&event.id);
                named.extend(&event.rid);
                published.insert(&event.id);
            }
        }
        let events = states(db, named.into_iter().collect()).await?;
        published.retain(|id| events.contains_key(*id));
        let contents = contents(db, published.into_iter().collect()).await?;
        let rounds = rounds(db, rounded.into_iter().collect()).await?;
        Ok(Self { events, contents, rounds })
    }

    /// Judges a publish; if it is to be written, takes it up.
    pub(super) fn publish(&mut self, event: &Event, seq: u64) -> Result<Verdict, StoreError> {
        let stored = State { timestamp: event.timestamp, published: true, seq, due: None, open: true };
        let Some(state) = self.store(event, stored)? else { return Ok(Verdict::New) };
        if state.published {
            return Ok(Verdict::Duplicate(state.duplicate()));
        }
        *state = State { published: true, seq, open: true, ..*state };
        Ok(Verdict::Publish { timestamp: state.timestamp })
    }

    /// Judges the publishes of a batch; if one is refused, takes up none of them.
    pub(super) fn publish_all(&mut self, events: &[Placed]) -> Result<Vec<Verdict>, StoreError> {
        let mut before = Vec::with_capacity(events.len());
        let mut verdicts = Vec::with_capacity(events.len());
        for Placed { event, seq } in events {
            before.push((&event.id, self.events.get(&event.id).copied()));
            match self.publish(event, *seq) {
                Ok(verdict) => verdicts.push(verdict),
                Err(error) => {
                    // The last first: the first of an id knows how it was before the batch.
                    before.into_iter().rev().for_each(|(id, state)| self.put_back(id, state));
                    return Err(error);
                }
            }
        }
        Ok(verdicts)
    }

    fn put_back(&mut self, id: &EventId, state: Option<State>) {
        match state {
            Some(state) => {
                self.events.insert(id.clone(), state);
            }
            None => {
                self.events.remove(id);
                self.contents.remove(id);
            }
        }
    }

    /// Judges an event that is to be stored only; if it is to be written, takes it up.
    pub(super) fn persist(&mut self, event: &Event) -> Result<Verdict, StoreError> {
        let stored = State { timestamp: event.timestamp, published: false, seq: 0, due: None, open: false };
        let state = self.store(event, stored)?;
        Ok(state.map_or(Verdict::New, |state| Verdict::Duplicate(state.duplicate())))
    }

    /// Judges a schedule, at its timestamp; if it is to be written, takes it up.
    pub(super) fn schedule(&mut self, event: &Event, due: i64) -> Result<Plan, StoreError> {
        let now = event.timestamp;
        let in_time = due >= now.saturating_sub(LATE) && due <= MAX_DUE;
        let invalid = || StoreError::InvalidDue { id: event.id.clone(), due, now };
        if !in_time && !self.events.contains_key(&event.id) {
            return Err(invalid());
        }
        let new = State { timestamp: now, published: true, seq: 0, due: Some(due), open: false };
        let Some(state) = self.store(event, new)? else { return Ok(Plan::New) };
        match state.due {
            // Whenever it comes: the first try may have been taken.
            Some(stored) if stored == due => Ok(Plan::Duplicate),
            Some(stored) => Err(StoreError::ScheduledOtherwise { id: event.id.clone(), due: stored }),
            None if state.published => Err(StoreError::PublishedBefore { id: event.id.clone() }),
            None if !in_time => Err(invalid()),
            None => {
                *state = State { published: true, due: Some(due), ..*state };
                Ok(Plan::Schedule)
            }
        }
    }

    /// The event is gone.
    pub(super) fn forget(&mut self, id: &EventId) {
        self.put_back(id, None);
    }

    /// Takes up an event as it will be stored; or, if it is there with the same content, says how it stands.
    fn store(&mut self, event: &Event, new: State) -> Result<Option<&mut State>, StoreError> {
        if !self.events.contains_key(&event.id) {
            if let Some(rid) = event.rid.as_ref().filter(|rid| !self.events.contains_key(*rid)) {
                return Err(StoreError::RidNotFound { id: event.id.clone(), rid: rid.clone() });
            }
            self.events.insert(event.id.clone(), new);
            self.contents.insert(event.id.clone(), content(event));
            return Ok(None);
        }
        let differs = self.contents.get(&event.id).and_then(|stored| content(event).differs_from(stored));
        if let Some(field) = differs {
            return Err(StoreError::EventConflict { id: event.id.clone(), field });
        }
        Ok(self.events.get_mut(&event.id))
    }

    /// Takes up an outcome, unless the group has one of that round or a later one already. An event of another number
    /// is another event: the one that is meant was deleted.
    pub(super) fn finish(
        &mut self,
        id: &EventId,
        seq: u64,
        group: &str,
        round: u32,
    ) -> Result<(), StoreError> {
        self.lasts(id, seq, group, round)?;
        match self.events.get_mut(id) {
            Some(state) if group.is_empty() => state.open = false,
            _ => self.rounds.entry((id.clone(), group.to_owned())).or_default().over = round,
        }
        Ok(())
    }

    /// Takes up a failed attempt, after which the event waits for the next; false: it was written before.
    pub(super) fn retry(&mut self, attempt: &AttemptRow, seq: u64) -> Result<bool, StoreError> {
        let AttemptRow { event_id, group, round, number, .. } = attempt;
        self.lasts(event_id, seq, group, *round)?;
        let rounds = self.rounds.entry((event_id.clone(), group.clone())).or_default();
        if rounds.waits.is_some_and(|waits| waits >= (*round, *number)) {
            return Ok(false);
        }
        rounds.waits = Some((*round, *number));
        rounds.over = rounds.over.max(round.saturating_sub(1));
        Ok(true)
    }

    /// Whether the event is there and this round of it isn't over.
    fn lasts(&self, id: &EventId, seq: u64, group: &str, round: u32) -> Result<(), StoreError> {
        let not_found = || StoreError::EventNotFound { id: id.clone() };
        let state =
            self.events.get(id).filter(|state| state.published && state.seq == seq).ok_or_else(not_found)?;
        let rounds = self.rounds.get(&(id.clone(), group.to_owned()));
        let over = rounds.is_some_and(|rounds| rounds.over >= round);
        if over || (group.is_empty() && !state.open) {
            return Err(StoreError::ClaimLost { id: id.clone() });
        }
        Ok(())
    }

    /// Takes up a dead-letter event as it will be stored; none: its id is there.
    pub(super) fn letter<'a>(&mut self, letter: &'a Letter) -> Option<Cow<'a, Event>> {
        let Letter { event, seq, .. } = letter;
        if self.events.contains_key(&event.id) {
            return None;
        }
        let mut stored = Cow::Borrowed(event);
        if event.rid.as_ref().is_some_and(|rid| !self.events.contains_key(rid)) {
            stored.to_mut().rid = None;
        }
        let state = State { timestamp: event.timestamp, published: true, seq: *seq, due: None, open: true };
        self.events.insert(event.id.clone(), state);
        self.contents.insert(event.id.clone(), content(&stored));
        Some(stored)
    }

    /// Whether an attempt can be recorded: the event is there.
    pub(super) fn attempt(&self, id: &EventId) -> Result<(), StoreError> {
        if self.events.contains_key(id) { Ok(()) } else { Err(StoreError::EventNotFound { id: id.clone() }) }
    }
}

impl State {
    fn duplicate(&self) -> Published {
        Published { fresh: false, timestamp: self.timestamp, seq: self.seq }
    }
}

async fn states(db: &DatabaseConnection, ids: Vec<&EventId>) -> Result<HashMap<EventId, State>, DbErr> {
    let mut states = HashMap::with_capacity(ids.len());
    for piece in pieces(&ids) {
        let sql = format!(
            "SELECT e.id, e.timestamp, p.event_id IS NOT NULL, s.event_id IS NOT NULL, coalesce(p.seq, 0), \
             p.success IS NULL AND p.failed IS NULL AND p.orphan IS NULL AND {}, {DUE} \
             FROM event e LEFT JOIN event_published p ON p.event_id = e.id \
             LEFT JOIN event_scheduled s ON s.event_id = e.id \
             LEFT JOIN v1_schedule v ON v.event_id = e.id WHERE e.id IN ({})",
            ours("p"),
            marks(rounded(piece.len()))
        );
        for row in db.query_all_raw(statement(sql, values(piece))).await? {
            let is_published: bool = row.try_get_by_index(2)?;
            let is_scheduled: bool = row.try_get_by_index(3)?;
            let state = State {
                timestamp: time::millis(row.try_get_by_index(1)?),
                published: is_published || is_scheduled,
                seq: unsigned(row.try_get_by_index(4)?),
                open: is_published && row.try_get_by_index(5)?,
                due: row.try_get_by_index(6)?,
            };
            states.insert(EventId::from_stored(row.try_get_by_index::<String>(0)?), state);
        }
    }
    Ok(states)
}

async fn rounds(
    db: &DatabaseConnection,
    ids: Vec<&EventId>,
) -> Result<HashMap<(EventId, String), Rounds>, DbErr> {
    let mut all: HashMap<(EventId, String), Rounds> = HashMap::new();
    let number = |row: &QueryResult, index| row.try_get_by_index::<u32>(index);
    for piece in pieces(&ids) {
        let marks = marks(rounded(piece.len()));
        let outcomes = format!("SELECT event_id, grp, round FROM v1_outcome WHERE event_id IN ({marks})");
        for row in db.query_all_raw(statement(outcomes, values(piece))).await? {
            let rounds = all.entry(key(&row)?).or_default();
            rounds.over = rounds.over.max(number(&row, 2)?);
        }
        let retries =
            format!("SELECT event_id, grp, round, attempts FROM v1_retry WHERE event_id IN ({marks})");
        for row in db.query_all_raw(statement(retries, values(piece))).await? {
            let rounds = all.entry(key(&row)?).or_default();
            let round = number(&row, 2)?;
            rounds.over = rounds.over.max(round.saturating_sub(1));
            rounds.waits = Some((round, number(&row, 3)?));
        }
    }
    Ok(all)
}

/// Event and group.
fn key(row: &QueryResult) -> Result<(EventId, String), DbErr> {
    Ok((EventId::from_stored(row.try_get_by_index::<String>(0)?), row.try_get_by_index(1)?))
}

async fn contents(db: &DatabaseConnection, ids: Vec<&EventId>) -> Result<HashMap<EventId, NewEvent>, DbErr> {
    let mut contents = HashMap::with_capacity(ids.len());
    for piece in pieces(&ids) {
        let sql = format!("SELECT {EVENT} FROM event e WHERE e.id IN ({})", marks(rounded(piece.len())));
        for row in db.query_all_raw(statement(sql, values(piece))).await? {
            let event = event_of(&row)?;
            contents.insert(event.id.clone(), content(&event));
        }
    }
    Ok(contents)
}

fn values(ids: &[&EventId]) -> Vec<Value> {
    let mut values = ids.iter().map(|id| id.as_str().into()).collect();
    fill(&mut values, ids.len(), 1);
    values
}

fn content(event: &Event) -> NewEvent {
    NewEvent {
        id: event.id.clone(),
        domain: event.domain.clone(),
        name: event.name.clone(),
        pid: event.pid.clone(),
        rid: event.rid.clone(),
        data: event.data.clone(),
    }
}
