//! How far events have come in groups, as a batch finds it and makes it.

use std::collections::{HashMap, HashSet};

use sea_orm::{DbErr, QueryResult, Value};

use super::super::{
    AttemptRow, Write,
    engine::{Ask, small},
    sql::{fill, marks, pieces, rounded},
    writer::Db,
};
use crate::event::EventId;

/// Of the events that end or wait for an attempt, by group.
#[derive(Default)]
pub(super) struct Rounds(HashMap<(EventId, String), Progress>);

#[derive(Clone, Copy, Default)]
struct Progress {
    /// Rounds up to this one are over.
    over: u32,
    /// The round and the attempts of its row in `v1_retry`.
    waits: Option<(u32, u32)>,
}

impl Rounds {
    /// Reads those that the batch may need: of plain outcomes of the default group none.
    pub(super) async fn read<'a>(
        db: &Db<'_>,
        writes: impl IntoIterator<Item = &'a Write>,
    ) -> Result<Self, DbErr> {
        let named: HashSet<&EventId> = writes
            .into_iter()
            .filter_map(|write| match write {
                Write::Finish { event_id, group, retried, .. } if *retried || !group.is_empty() => {
                    Some(event_id)
                }
                Write::Retry { attempt, .. } => Some(&attempt.event_id),
                _ => None,
            })
            .collect();
        let named: Vec<&EventId> = named.into_iter().collect();
        let mut rounds = Self::default();
        let number = |row: &QueryResult, index| small(row, index);
        for piece in pieces(&named) {
            let values = || {
                let mut values: Vec<Value> = piece.iter().map(|id| id.as_str().into()).collect();
                fill(&mut values, piece.len(), 1);
                values
            };
            let marks = marks(rounded(piece.len()));
            let sql = format!("SELECT event_id, grp, round FROM v1_outcome WHERE event_id IN ({marks})");
            for row in db.rows(sql, values()).await? {
                let progress = rounds.of(&row)?;
                progress.over = progress.over.max(number(&row, 2)?);
            }
            let sql =
                format!("SELECT event_id, grp, round, attempts FROM v1_retry WHERE event_id IN ({marks})");
            for row in db.rows(sql, values()).await? {
                let round = number(&row, 2)?;
                let progress = rounds.of(&row)?;
                progress.over = progress.over.max(round.saturating_sub(1));
                progress.waits = Some((round, number(&row, 3)?));
            }
        }
        Ok(rounds)
    }

    fn of(&mut self, row: &QueryResult) -> Result<&mut Progress, DbErr> {
        let id = EventId::from_stored(row.try_get_by_index::<String>(0)?);
        Ok(self.0.entry((id, row.try_get_by_index(1)?)).or_default())
    }

    /// Whether this round or a later one has its outcome, or the next one has begun.
    pub(super) fn is_over(&self, id: &EventId, group: &str, round: u32) -> bool {
        let progress = self.0.get(&(id.clone(), group.to_owned()));
        progress.is_some_and(|progress| progress.over >= round)
    }

    /// Takes up an outcome.
    pub(super) fn end(&mut self, id: &EventId, group: &str, round: u32) {
        self.0.entry((id.clone(), group.to_owned())).or_default().over = round;
    }

    /// Takes up a failed attempt; false: it was written before.
    pub(super) fn wait(&mut self, attempt: &AttemptRow) -> bool {
        let AttemptRow { event_id, group, round, number, .. } = attempt;
        let progress = self.0.entry((event_id.clone(), group.clone())).or_default();
        if progress.waits.is_some_and(|waits| waits >= (*round, *number)) {
            return false;
        }
        progress.waits = Some((*round, *number));
        progress.over = progress.over.max(round.saturating_sub(1));
        true
    }
}
