//! What the database holds of the events of a batch, and what the batch makes of it.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use sea_orm::{DbErr, Value};

use super::{
    super::{
        AttemptRow, Letter, MAX_DUE, Placed, StoreError, Write,
        engine::Ask,
        events::{EVENT, event_of},
        schedules::DUE,
        sql::{fill, marks, ours, pieces, rounded, unsigned},
        time,
        writer::Db,
    },
    rounds::Rounds,
    tails::Tails,
};
use crate::{
    event::{Event, EventId, Expect, NewEvent},
    wire::{PublishState, Published},
};

/// The events that a batch names, as they stand after the writes that were taken up so far.
pub(super) struct Known {
    events: HashMap<EventId, State>,
    /// The content of those that the batch publishes.
    contents: HashMap<EventId, NewEvent>,
    /// How far those that end or wait for an attempt have come, by group.
    rounds: Rounds,
    /// The ends of the logs that it expects something of.
    tails: Tails,
}

#[derive(Clone, Copy)]
struct State {
    timestamp: i64,
    /// Whether there is a row in `event_published`, or in `event_scheduled`, which will make one.
    published: bool,
    seq: u64,
    /// How it stands in the default group.
    standing: PublishState,
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

/// Two events as they were known.
pub(super) struct Before([(EventId, Option<State>, Option<NewEvent>); 2]);

/// How late a schedule may come, in milliseconds: as of a try again after a lost link.
const LATE: i64 = 60_000;

/// What to do with a publish.
pub(super) enum Verdict {
    /// Store and publish it.
    New {
        /// The time to store it with.
        timestamp: i64,
    },
    /// It is stored: publish it. Its time stays.
    Publish {
        /// The event's own time.
        timestamp: i64,
    },
    /// It is published: nothing to do.
    Duplicate(Published),
}

impl Verdict {
    /// Of an event of which nothing is known, and nothing expected.
    pub(super) fn new(event: &Event) -> Self {
        Self::New { timestamp: event.timestamp }
    }
}

impl Known {
    /// Reads what the batch names.
    pub(super) async fn read<'a>(
        db: &Db<'_>,
        writes: impl IntoIterator<Item = &'a Write> + Clone,
    ) -> Result<Self, DbErr> {
        let tails = Tails::read(db, writes.clone()).await?;
        let rounds = Rounds::read(db, writes.clone()).await?;
        let mut named = HashSet::new();
        let mut published = HashSet::new();
        for write in writes {
            match write {
                Write::Finish { event_id, letter, .. } => {
                    named.insert(event_id);
                    if let Some(letter) = letter {
                        named.insert(&letter.event.id);
                        named.extend(&letter.event.rid);
                    }
                }
                Write::Attempt(row) => _ = named.insert(&row.event_id),
                Write::Retry { attempt, .. } => _ = named.insert(&attempt.event_id),
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
        Ok(Self { events, contents, rounds, tails })
    }

    /// Judges a publish; if it is to be written, takes it up. Of the log of one that is stored nothing is expected: it
    /// stands there.
    pub(super) fn publish(
        &mut self,
        event: &Event,
        seq: u64,
        expect: Option<&Expect>,
    ) -> Result<Verdict, StoreError> {
        if let Some(state) = self.stored(event)? {
            if state.published {
                return Ok(Verdict::Duplicate(state.duplicate()));
            }
            *state = State { published: true, seq, open: true, standing: PublishState::Pending, ..*state };
            let timestamp = state.timestamp;
            self.tails.dispatched(event, seq);
            return Ok(Verdict::Publish { timestamp });
        }
        let timestamp = self.tails.append(event, Some(seq), expect)?;
        let standing = PublishState::Pending;
        self.take_up(event, State { timestamp, published: true, seq, standing, due: None, open: true });
        Ok(Verdict::New { timestamp })
    }

    /// Judges the publishes of a batch; if one is refused, takes up none of them.
    pub(super) fn publish_all(&mut self, events: &[Placed]) -> Result<Vec<Verdict>, StoreError> {
        let mut before = Vec::with_capacity(events.len());
        let tails = self.tails.clone();
        let mut verdicts = Vec::with_capacity(events.len());
        for Placed { event, seq, expect } in events {
            before.push((&event.id, self.events.get(&event.id).copied()));
            match self.publish(event, *seq, expect.as_ref()) {
                Ok(verdict) => verdicts.push(verdict),
                Err(error) => {
                    // The last first: the first of an id knows how it was before the batch.
                    before.into_iter().rev().for_each(|(id, state)| self.put_back(id, state));
                    self.tails = tails;
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
    pub(super) fn persist(&mut self, event: &Event, expect: Option<&Expect>) -> Result<Verdict, StoreError> {
        if let Some(state) = self.stored(event)? {
            return Ok(Verdict::Duplicate(state.duplicate()));
        }
        let timestamp = self.tails.append(event, None, expect)?;
        let standing = PublishState::Persisted;
        self.take_up(event, State { timestamp, published: false, seq: 0, standing, due: None, open: false });
        Ok(Verdict::New { timestamp })
    }

    /// Judges a schedule, at its timestamp; if it is to be written, takes it up.
    pub(super) fn schedule(&mut self, event: &Event, due: i64) -> Result<Plan, StoreError> {
        let now = event.timestamp;
        let in_time = due >= now.saturating_sub(LATE) && due <= MAX_DUE;
        let invalid = || StoreError::InvalidDue { id: event.id.clone(), due, now };
        if !in_time && !self.events.contains_key(&event.id) {
            return Err(invalid());
        }
        let standing = PublishState::Scheduled;
        let Some(state) = self.stored(event)? else {
            let due = Some(due);
            self.take_up(
                event,
                State { timestamp: now, published: true, seq: 0, standing, due, open: false },
            );
            return Ok(Plan::New);
        };
        match state.due {
            // Whenever it comes: the first try may have been taken.
            Some(stored) if stored == due => Ok(Plan::Duplicate),
            Some(stored) => Err(StoreError::ScheduledOtherwise { id: event.id.clone(), due: stored }),
            None if state.published => Err(StoreError::PublishedBefore { id: event.id.clone() }),
            None if !in_time => Err(invalid()),
            None => {
                *state = State { published: true, due: Some(due), standing, ..*state };
                Ok(Plan::Schedule)
            }
        }
    }

    /// The same in the place of another event, as if that were gone; and what was known before, to
    /// [undo](Self::undo) it.
    pub(super) fn schedule_instead(
        &mut self,
        old: &EventId,
        event: &Event,
        due: i64,
    ) -> Result<(Plan, Before), StoreError> {
        let before = Before(
            [old, &event.id]
                .map(|id| (id.clone(), self.events.get(id).copied(), self.contents.get(id).cloned())),
        );
        // Whoever says it again, as after a lost link, finds his own schedule.
        let is_there = *old == event.id && self.events.get(old).is_some_and(|state| state.due == Some(due));
        if !is_there {
            self.forget(old);
        }
        match self.schedule(event, due) {
            Ok(plan) => Ok((plan, before)),
            Err(error) => {
                self.undo(before);
                Err(error)
            }
        }
    }

    /// Everything is as it was.
    pub(super) fn undo(&mut self, Before(before): Before) {
        for (id, state, content) in before {
            self.put_back(&id, state);
            match content {
                Some(content) => self.contents.insert(id, content),
                None => self.contents.remove(&id),
            };
        }
    }

    /// The event is gone.
    pub(super) fn forget(&mut self, id: &EventId) {
        self.put_back(id, None);
    }

    /// How an event stands, if it is there with the same content; if it isn't there, it may be stored.
    fn stored(&mut self, event: &Event) -> Result<Option<&mut State>, StoreError> {
        if !self.events.contains_key(&event.id) {
            if let Some(rid) = event.rid.as_ref().filter(|rid| !self.events.contains_key(*rid)) {
                return Err(StoreError::RidNotFound { id: event.id.clone(), rid: rid.clone() });
            }
            return Ok(None);
        }
        let differs = self.contents.get(&event.id).and_then(|stored| content(event).differs_from(stored));
        if let Some(field) = differs {
            return Err(StoreError::EventConflict { id: event.id.clone(), field });
        }
        Ok(self.events.get_mut(&event.id))
    }

    /// Takes up an event as it will be stored.
    fn take_up(&mut self, event: &Event, new: State) {
        self.events.insert(event.id.clone(), new);
        self.contents.insert(event.id.clone(), content(event));
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
            _ => self.rounds.end(id, group, round),
        }
        Ok(())
    }

    /// Takes up a failed attempt, after which the event waits for the next; false: it was written before.
    pub(super) fn retry(&mut self, attempt: &AttemptRow, seq: u64) -> Result<bool, StoreError> {
        self.lasts(&attempt.event_id, seq, &attempt.group, attempt.round)?;
        Ok(self.rounds.wait(attempt))
    }

    /// Whether the event is there and this round of it isn't over.
    fn lasts(&self, id: &EventId, seq: u64, group: &str, round: u32) -> Result<(), StoreError> {
        let not_found = || StoreError::EventNotFound { id: id.clone() };
        let state =
            self.events.get(id).filter(|state| state.published && state.seq == seq).ok_or_else(not_found)?;
        if self.rounds.is_over(id, group, round) || (group.is_empty() && !state.open) {
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
        let standing = PublishState::Pending;
        let state =
            State { timestamp: event.timestamp, published: true, seq: *seq, standing, due: None, open: true };
        self.take_up(&stored, state);
        Some(stored)
    }

    /// Whether an attempt can be recorded: the event is there.
    pub(super) fn attempt(&self, id: &EventId) -> Result<(), StoreError> {
        if self.events.contains_key(id) { Ok(()) } else { Err(StoreError::EventNotFound { id: id.clone() }) }
    }
}

impl State {
    fn duplicate(&self) -> Published {
        Published { fresh: false, timestamp: self.timestamp, seq: self.seq, state: Some(self.standing) }
    }
}

/// The answer to a publish of an event that is there already, whatever its content; none: it isn't there.
pub(super) async fn duplicate(db: &Db<'_>, id: &EventId) -> Result<Option<Published>, DbErr> {
    Ok(states(db, vec![id]).await?.get(id).map(State::duplicate))
}

async fn states(db: &Db<'_>, ids: Vec<&EventId>) -> Result<HashMap<EventId, State>, DbErr> {
    let mut states = HashMap::with_capacity(ids.len());
    for piece in pieces(&ids) {
        let sql = format!(
            "SELECT e.id, @utc(e.timestamp), p.event_id IS NOT NULL, s.event_id IS NOT NULL, coalesce(p.seq, 0), \
             p.success IS NULL AND p.failed IS NULL AND p.orphan IS NULL AND {ours}, {DUE}, \
             CASE WHEN s.event_id IS NOT NULL AND s.executed IS NULL THEN 'scheduled' \
             WHEN p.event_id IS NULL THEN 'persisted' WHEN p.success IS NOT NULL THEN 'success' \
             WHEN p.failed IS NOT NULL THEN 'dead' WHEN p.orphan IS NOT NULL THEN 'expired' \
             WHEN {ours} THEN 'pending' ELSE 'claimed' END \
             FROM event e LEFT JOIN event_published p ON p.event_id = e.id \
             LEFT JOIN event_scheduled s ON s.event_id = e.id \
             LEFT JOIN v1_schedule v ON v.event_id = e.id WHERE e.id IN ({})",
            marks(rounded(piece.len())),
            ours = ours("p"),
        );
        for row in db.rows(sql, values(piece)).await? {
            let is_published: bool = row.try_get_by_index(2)?;
            let is_scheduled: bool = row.try_get_by_index(3)?;
            let state = State {
                timestamp: time::millis(row.try_get_by_index(1)?),
                published: is_published || is_scheduled,
                seq: unsigned(row.try_get_by_index(4)?),
                open: is_published && row.try_get_by_index(5)?,
                due: row.try_get_by_index(6)?,
                standing: PublishState::of(&row.try_get_by_index::<String>(7)?)
                    .unwrap_or(PublishState::Pending),
            };
            states.insert(EventId::from_stored(row.try_get_by_index::<String>(0)?), state);
        }
    }
    Ok(states)
}

async fn contents(db: &Db<'_>, ids: Vec<&EventId>) -> Result<HashMap<EventId, NewEvent>, DbErr> {
    let mut contents = HashMap::with_capacity(ids.len());
    for piece in pieces(&ids) {
        let sql = format!("SELECT {EVENT} FROM event e WHERE e.id IN ({})", marks(rounded(piece.len())));
        for row in db.rows(sql, values(piece)).await? {
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
