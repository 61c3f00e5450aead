//! What became of an event.

mod groups;

use sea_orm::{DbErr, EntityTrait};

use super::{
    AttemptRow, Store, StoreError,
    engine::Ask,
    entity::{attempt, event_published},
    sql::{refused, signed, unsigned},
    time,
};
use crate::{
    event::{Domain, Eid, Event, EventId, Pid, Uid},
    wire::{Association, Attempt, Trace},
};

/// As long as the error texts of a trace are no longer than that together, in bytes, each is shown whole: more might not
/// fit into a record, which has up to six bytes for one of them.
const WHOLE_TEXTS: usize = 128 * 1024;
/// Associations of one kind that a trace shows.
const ASSOCIATIONS: u64 = 100;

/// The row of an event.
const PUBLISHED: &str = "\
    SELECT event_id, @utc(published) AS published, publisher, consumer, hub, consumed_hub, consumed_spoke, success, failed,
    orphan, v1_hub, seq FROM event_published WHERE event_id = ?";

/// The last attempts of an event, at most 100 in all, so that a trace fits into a record whatever their texts are. Where
/// that doesn't do for all groups, each is shown its last ones first.
const ATTEMPTS: &str = "\
    SELECT id, event_id, grp, round, number, consumer, started, ended, reason, error FROM (
        SELECT v1_attempt.*, ROW_NUMBER() OVER (PARTITION BY grp ORDER BY id DESC) AS place
        FROM v1_attempt WHERE event_id = ?
    ) AS placed
    WHERE place <= 100 ORDER BY place, id DESC LIMIT 100";

impl Store {
    /// The event and what became of it in the default group, as far as the database knows: who of ours has it at
    /// the moment only its hub can tell.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn trace(&self, id: &EventId) -> Result<Option<(Event, Trace)>, StoreError> {
        let refused = refused("read what became of an event");
        let Some(event) = self.event(id).await? else { return Ok(None) };
        let sql = self.readers.engine().statement(PUBLISHED, vec![id.as_str().into()]);
        let published = event_published::Entity::find().from_raw_sql(sql).one(&self.readers).await;
        let published = published.map_err(&refused)?;
        let attempts = self.attempts_shown(id).await.map_err(&refused)?;

        let schedule = self.schedule(id).await?;
        let (recurring, due) = self.occurrence(id).await?.unzip();
        let due = due.flatten();
        let publisher = published.as_ref().map(|row| Uid::from_stored(row.publisher.clone()));
        // Its row is there from the start, but nobody has seen the event yet.
        let published = published.filter(|_| schedule.is_none_or(|schedule| schedule.executed));
        let mut consumer = published.as_ref().and_then(|row| row.consumer.clone()).map(Uid::from_stored);
        let state = match &published {
            None if schedule.is_some() => "scheduled",
            None => "persisted",
            Some(row) => match outcome(row) {
                Some(word) => word,
                None if row.consumed_spoke.is_some() && !self.is_claimed_here(id).await? => "claimed",
                // Claimed for a consumer of ours: the one whom the row names may have lost it since.
                None if row.consumed_spoke.is_some() => {
                    consumer = None;
                    "pending"
                }
                None if self.is_wanted(&event, row).await? => "pending",
                None => "orphan",
            },
        };
        let trace = Trace {
            publisher,
            published: published.as_ref().map(|row| time::millis(row.published)),
            hub: published.as_ref().and_then(|row| row.v1_hub.clone()).map(Uid::from_stored),
            seq: published.as_ref().and_then(|row| row.seq).map(unsigned),
            scheduled: schedule.map(|schedule| schedule.due).or(due),
            recurring,
            state: state.to_owned(),
            consumer,
            ended: published
                .as_ref()
                .and_then(|row| row.success.or(row.failed).or(row.orphan))
                .map(time::millis),
            attempts: shown(attempts),
            groups: Vec::new(),
            redriven: Vec::new(),
            associations: self.associations(id).await.map_err(refused)?,
        };
        let (groups, redriven) = self.group_traces(&event, &trace).await?;
        Ok(Some((event, Trace { groups, redriven, ..trace })))
    }

    /// Oldest first.
    async fn attempts_shown(&self, id: &EventId) -> Result<Vec<attempt::Model>, DbErr> {
        let sql = self.readers.engine().statement(ATTEMPTS, vec![id.as_str().into()]);
        let mut attempts = attempt::Entity::find().from_raw_sql(sql).all(&self.readers).await?;
        attempts.sort_unstable_by_key(|attempt| attempt.id);
        Ok(attempts)
    }

    /// Child processes first.
    async fn associations(&self, id: &EventId) -> Result<Vec<Association>, DbErr> {
        let read = async |sql: &str| {
            let values = vec![id.as_str().into(), signed(ASSOCIATIONS).into()];
            self.readers.rows(sql, values).await
        };
        let mut all = Vec::new();
        let children = "SELECT domain, cpid FROM event_cpid WHERE event_id = ? ORDER BY domain, cpid LIMIT ?";
        for row in read(children).await? {
            let domain = Domain::from_stored(row.try_get_by_index::<String>(0)?);
            let cpid = Pid::from_stored(row.try_get_by_index::<String>(1)?);
            all.push(Association::ChildProcess { domain, cpid });
        }
        for row in read("SELECT eid FROM event_eid WHERE event_id = ? ORDER BY eid LIMIT ?").await? {
            all.push(Association::Entity { eid: Eid::from_stored(row.try_get_by_index::<String>(0)?) });
        }
        Ok(all)
    }

    /// Whether the claim in the database is one of ours, not an npm spoke's.
    async fn is_claimed_here(&self, id: &EventId) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM v1_claim WHERE event_id = ?";
        let row = self.readers.row(sql, vec![id.as_str().into()]).await;
        row.map(|row| row.is_some()).map_err(refused("read a claim"))
    }

    /// Whether a binding of the default group matches.
    async fn is_wanted(&self, event: &Event, row: &event_published::Model) -> Result<bool, StoreError> {
        // An event that no hub of ours dispatched has no number: numbers are microseconds, so its time will do.
        let seq = row.seq.unwrap_or_else(|| time::millis(row.published).saturating_mul(1_000));
        let bindings = self.bindings().await?;
        Ok(bindings.iter().any(|binding| {
            binding.group.is_empty() && binding.wants(&event.domain, &event.name, unsigned(seq))
        }))
    }
}

/// With whole error texts, or else of each long one the beginning and the end.
fn shown(rows: Vec<attempt::Model>) -> Vec<Attempt> {
    let whole = rows.iter().map(|row| row.error.len()).sum::<usize>() <= WHOLE_TEXTS;
    let shown = |row: attempt::Model| {
        let text = whole.then(|| row.error.clone());
        let attempt = Attempt::from(AttemptRow::from(row));
        Attempt { error: text.unwrap_or(attempt.error), ..attempt }
    };
    rows.into_iter().map(shown).collect()
}

/// Success before failure: on a shared database the npm stack may have written both.
pub(super) fn outcome(row: &event_published::Model) -> Option<&'static str> {
    if row.success.is_some() {
        Some("success")
    } else if row.failed.is_some() {
        Some("dead")
    } else {
        row.orphan.is_some().then_some("expired")
    }
}

impl From<attempt::Model> for AttemptRow {
    fn from(row: attempt::Model) -> Self {
        let count = |number: i32| u32::try_from(number).unwrap_or(0);
        Self {
            event_id: EventId::from_stored(row.event_id),
            group: row.grp,
            round: count(row.round),
            number: count(row.number),
            consumer: Uid::from_stored(row.consumer),
            started: time::millis(row.started),
            ended: time::millis(row.ended),
            reason: row.reason,
            error: row.error,
        }
    }
}
