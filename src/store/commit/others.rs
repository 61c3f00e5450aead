//! What is written seldom: bindings, cursors, the log.

use sea_orm::{
    ActiveModelTrait,
    ActiveValue::{NotSet, Set},
    ColumnTrait, DbErr, EntityTrait, QueryFilter, Value,
    sea_query::{Expr, OnConflict},
};

use super::{
    super::{
        Binding, KnownBindings, StoreError, Write, Written, bindings,
        engine::Ask,
        entity::{binding, binding_start, cursor},
        sql::{cut, fill, pieces, rounded, rows_with_text, signed},
        time,
        writer::Db,
    },
    Answer, groups,
};
use crate::event::{DomainStart, MAX_TEXT, Uid};

/// The bytes of a log line that are kept.
const MESSAGE_BYTES: usize = 8 * 1024;

/// Writes and answers what the hot path leaves, in its order; log lines together at the end.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    let mut lines = Vec::new();
    for (write, answer) in writes.iter().zip(answers) {
        match write {
            Write::Bind(wanted) => *answer = bind(db, wanted).await?.map(Written::Bound),
            Write::Unbind { id } => {
                binding::Entity::delete_by_id(*id).exec(db).await?;
                let starts = binding_start::Column::BindingId.eq(*id);
                binding_start::Entity::delete_many().filter(starts).exec(db).await?;
            }
            Write::Cursor { hub, group, seq, known } => {
                if !is_known(db, hub, group, *known).await? {
                    continue;
                }
                let row = cursor::ActiveModel {
                    hub_id: Set(hub.to_string()),
                    grp: Set(group.clone()),
                    seq: Set(signed(*seq)),
                };
                let mut there = OnConflict::columns([cursor::Column::HubId, cursor::Column::Grp]);
                there.update_column(cursor::Column::Seq);
                cursor::Entity::insert(row).on_conflict(there).exec_without_returning(db).await?;
            }
            Write::Log { at, agent, message, error } => lines.push((*at, agent, message, error)),
            Write::Publish { .. }
            | Write::Batch { .. }
            | Write::Persist(..)
            | Write::Finish { .. }
            | Write::Attempt(_)
            | Write::Retry { .. }
            | Write::Redrive { .. }
            | Write::Adopt { .. }
            | Write::SetGroup { .. }
            | Write::Seek { .. }
            | Write::Purge { .. }
            | Write::RemoveGroup { .. }
            | Write::Take { .. }
            | Write::Collect { .. }
            | Write::Claim { .. }
            | Write::Associate { .. }
            | Write::Dissociate { .. }
            | Write::Delete(_)
            | Write::Sweep(_)
            | Write::Schedule { .. }
            | Write::Cancel { .. }
            | Write::RunDue { .. }
            | Write::Recur { .. }
            | Write::RecurChange { .. }
            | Write::RunExtra { .. }
            | Write::RunRecurring { .. } => {}
        }
    }
    for piece in pieces(&lines) {
        let mut values: Vec<Value> = Vec::with_capacity(rounded(piece.len()) * 4);
        for (at, agent, message, error) in piece {
            values.extend([
                time::value(*at),
                cut((*agent).clone(), MAX_TEXT).into(),
                cut((*message).clone(), MESSAGE_BYTES).into(),
                object(error).into(),
            ]);
        }
        fill(&mut values, piece.len(), 4);
        let sql = format!(
            "INSERT INTO log (timestamp, agent, message, error) SELECT @local(column1), column2, column3, @json(column4) \
             FROM {} v WHERE column1 IS NOT NULL",
            rows_with_text(piece.len(), 4, 4)
        );
        db.run(sql, values).await?;
    }
    Ok(())
}

/// Whether the hub knows all bindings of the group, so that its cursor says of each what it means. On a server another hub may
/// have made one: that has set the cursor back, or does so once this transaction, which locks it, is over. A cursor that isn't
/// there can't be locked, nor set back.
async fn is_known(db: &Db<'_>, hub: &Uid, group: &str, known: Option<KnownBindings>) -> Result<bool, DbErr> {
    let Some(known) = known.filter(|_| !db.engine().is_sqlite()) else { return Ok(true) };
    let key = || -> Vec<Value> { vec![hub.as_str().into(), group.into()] };
    let sql = "SELECT seq FROM v1_cursor WHERE hub_id = ? AND grp = ? @locked";
    if db.row(sql, key()).await?.is_none() {
        let sql = "INSERT INTO v1_cursor (hub_id, grp, seq) VALUES (?, ?, 0) @else_leave(grp)";
        db.run(sql, key()).await?;
        return Ok(false);
    }
    Ok(bindings::known(db, group).await? == known)
}

/// The column takes JSON only; a text that was cut is none any more.
fn object(error: &str) -> &str {
    let is_object = serde_json::from_str::<serde::de::IgnoredAny>(error).is_ok() && error.starts_with('{');
    if is_object && error.len() <= MESSAGE_BYTES { error } else { "{}" }
}

/// The binding of this group, domain and name as it stands. A new one sends the group's cursors back to before
/// its first event.
async fn bind(db: &Db<'_>, wanted: &Binding) -> Result<Result<Binding, StoreError>, DbErr> {
    let known = binding::Entity::find()
        .filter(binding::Column::Grp.eq(&wanted.group))
        .filter(binding::Column::Domain.eq(wanted.domain.as_str()))
        .filter(binding::Column::Name.eq(wanted.name.as_str()))
        .one(db)
        .await?;
    if let Some(row) = known {
        return stored(db, row.id).await;
    }
    if !wanted.group.is_empty() {
        groups::make(db, &wanted.group, wanted.created).await?;
    }
    let start = signed(wanted.start_seq);
    let row = binding::ActiveModel {
        id: NotSet,
        grp: Set(wanted.group.clone()),
        domain: Set(wanted.domain.to_string()),
        name: Set(wanted.name.to_string()),
        start_seq: Set(start),
        created: Set(time::datetime(wanted.created)),
    };
    let row = row.insert(db).await?;
    for (place, DomainStart { domain, seq }) in (0..).zip(&wanted.starts) {
        let start = binding_start::ActiveModel {
            binding_id: Set(row.id),
            place: Set(place),
            domain: Set(domain.to_string()),
            start_seq: Set(signed(*seq)),
        };
        binding_start::Entity::insert(start).exec_without_returning(db).await?;
    }
    cursor::Entity::update_many()
        .col_expr(cursor::Column::Seq, Expr::value((start - 1).max(0)))
        .filter(cursor::Column::Grp.eq(&wanted.group))
        .filter(cursor::Column::Seq.gte(start))
        .exec(db)
        .await?;
    stored(db, row.id).await
}

async fn stored(db: &Db<'_>, id: i64) -> Result<Result<Binding, StoreError>, DbErr> {
    match bindings::list(db, Some(id)).await? {
        Ok(mut found) => {
            found.pop().map(Ok).ok_or_else(|| DbErr::RecordNotFound("the new binding".to_owned()))
        }
        Err(error) => Ok(Err(error)),
    }
}
