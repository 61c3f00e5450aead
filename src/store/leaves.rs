//! Leaves that were handed out, and what is revoked.

use chrono::NaiveDateTime;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, DbErr, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, sea_query::Expr,
};

use super::{
    Store, StoreError,
    certificates::{model, touched},
    engine::Ask,
    entity::certificate::{self, Column},
    sql::refused,
    time,
    writer::Db,
};
use crate::pki::CertificateRow;

/// Rows of one id that are looked at, at most.
const MOST_ROWS: u64 = 10_000;

/// A line for the `log` table that is written with what it is about, or not at all.
#[derive(Debug, Clone)]
pub struct LogLine {
    /// Who says it: the hub's id.
    pub agent: String,
    /// What happened.
    pub message: String,
    /// More about it, a JSON object.
    pub details: String,
}

impl Store {
    /// Makes `row` the current one of its id, in one transaction: the one before moves to the next version, and
    /// `line` is written. First `judge` sees what stands in the way: the rows of the id that hold at `now` (seconds
    /// since 1970) and are current or revoked; its error ends it, and nothing is changed.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn place_leaf<E>(
        &self,
        row: CertificateRow,
        now: i64,
        line: LogLine,
        judge: impl FnOnce(&[CertificateRow]) -> Result<(), E>,
    ) -> Result<Result<(), E>, StoreError> {
        let refused = refused("store a certificate");
        let lock = self.writer.certificates().await.map_err(&refused)?;
        let transaction = self.writer.begin().await.map_err(&refused)?;
        let placed = place(&transaction.db(), row, now, line, judge).await;
        let placed = match placed {
            Ok(Ok(())) => transaction.commit().await.map(Ok).map_err(refused),
            Ok(Err(error)) => {
                transaction.roll_back().await;
                Ok(Err(error))
            }
            Err(error) => {
                transaction.roll_back().await;
                Err(refused(error))
            }
        };
        lock.release().await;
        placed
    }

    /// Revokes all certificates of an id that hold at `now` (seconds since 1970), in one transaction with `line`; `at`
    /// says what to write for each. Returns them as they stand then; none: there was nothing to revoke, and nothing is
    /// changed.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn revoke_certificates(
        &self,
        id: &str,
        now: i64,
        line: LogLine,
        at: impl Fn(&CertificateRow) -> i64,
    ) -> Result<Vec<CertificateRow>, StoreError> {
        let refused = refused("revoke a certificate");
        let lock = self.writer.certificates().await.map_err(&refused)?;
        let transaction = self.writer.begin().await.map_err(&refused)?;
        let revoked = revoke(&transaction.db(), id, now, &line, at).await;
        let revoked = transaction.end(revoked).await;
        lock.release().await;
        revoked.map_err(refused)
    }

    /// The certificates that hold at `now` and were revoked at `since` or later (both in seconds since 1970), without
    /// their keys: by version and id, from behind `after` on, at most `limit`. A row whose version changes meanwhile gets
    /// a higher one, so that pages don't miss it.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn revoked_certificates(
        &self,
        since: i64,
        now: i64,
        after: Option<(u32, &str)>,
        limit: u64,
    ) -> Result<Vec<CertificateRow>, StoreError> {
        let mut query = certificate::Entity::find()
            .filter(Column::Revoked.gte(seconds(since)))
            .filter(Column::Validity.gte(seconds(now)));
        if let Some((version, id)) = after {
            let same = Condition::all().add(Column::Version.eq(version)).add(Column::Id.gt(id));
            query = query.filter(Condition::any().add(Column::Version.gt(version)).add(same));
        }
        let rows = query
            .select_only()
            .columns([Column::Version, Column::Id, Column::Cert, Column::Validity, Column::Revoked])
            .order_by_asc(Column::Version)
            .order_by_asc(Column::Id)
            .limit(limit)
            .into_tuple::<(u32, String, String, NaiveDateTime, Option<NaiveDateTime>)>()
            .all(&self.readers)
            .await
            .map_err(refused("look for revoked certificates"))?;
        let row = |(version, id, cert, validity, revoked): (_, String, _, _, Option<_>)| CertificateRow {
            version,
            revoked: revoked.map(unix),
            ..CertificateRow::keyless(&id, cert, unix(validity))
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// Certificates by id, the one in use before its predecessors, from behind `after` (id and version) on; at most
    /// `limit`.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn certificate_page(
        &self,
        after: Option<(&str, u32)>,
        limit: u64,
    ) -> Result<Vec<CertificateRow>, StoreError> {
        let mut query = certificate::Entity::find();
        if let Some((id, version)) = after {
            let same = Condition::all().add(Column::Id.eq(id)).add(Column::Version.gt(version));
            query = query.filter(Condition::any().add(Column::Id.gt(id)).add(same));
        }
        let rows = query
            .order_by_asc(Column::Id)
            .order_by_asc(Column::Version)
            .limit(limit)
            .all(&self.readers)
            .await;
        rows.map(into_rows).map_err(refused("list the certificates"))
    }
}

async fn place<E>(
    db: &Db<'_>,
    row: CertificateRow,
    now: i64,
    line: LogLine,
    judge: impl FnOnce(&[CertificateRow]) -> Result<(), E>,
) -> Result<Result<(), E>, DbErr> {
    let weighty = Condition::any().add(Column::Version.eq(0)).add(Column::Revoked.is_not_null());
    let standing = certificate::Entity::find()
        .filter(Column::Id.eq(&row.id))
        .filter(Column::Validity.gte(seconds(now)))
        .filter(weighty)
        .order_by_asc(Column::Version)
        .limit(MOST_ROWS)
        .all(db)
        .await?;
    if let Err(error) = judge(&into_rows(standing)) {
        return Ok(Err(error));
    }
    retire(db, &row.id, None).await?;
    model(row, db.engine()).insert(db).await?;
    note(db, &line).await.map(Ok)
}

async fn revoke(
    db: &Db<'_>,
    id: &str,
    now: i64,
    line: &LogLine,
    at: impl Fn(&CertificateRow) -> i64,
) -> Result<Vec<CertificateRow>, DbErr> {
    let standing = certificate::Entity::find()
        .filter(Column::Id.eq(id))
        .filter(Column::Validity.gte(seconds(now)))
        .filter(Column::Revoked.is_null())
        .order_by_asc(Column::Version)
        .limit(MOST_ROWS)
        .all(db)
        .await?;
    let mut revoked = into_rows(standing);
    for row in &mut revoked {
        let time = at(row);
        if row.version == 0 {
            row.version = retire(db, id, Some(time)).await?;
        } else {
            certificate::Entity::update_many()
                .col_expr(Column::Revoked, Expr::value(seconds(time)))
                .col_expr(Column::Updated, touched(db.engine()))
                .filter(Column::Id.eq(id))
                .filter(Column::Version.eq(row.version))
                .exec(db)
                .await?;
        }
        row.revoked = Some(time);
    }
    if !revoked.is_empty() {
        note(db, line).await?;
    }
    Ok(revoked)
}

/// Frees version 0 of an id if a revoked row stands there: somebody set `revoked` by hand.
pub(super) async fn make_room(db: &Db<'_>, id: &str) -> Result<(), DbErr> {
    let current = certificate::Entity::find_by_id((0, id.to_owned())).one(db).await?;
    if current.is_some_and(|row| row.revoked.is_some()) {
        retire(db, id, None).await?;
    }
    Ok(())
}

/// Frees version 0 of an id, as npm Eventflow does: its row gets the number of rows that the id has, which is
/// returned.
async fn retire(db: &Db<'_>, id: &str, revoked: Option<i64>) -> Result<u32, DbErr> {
    let count = certificate::Entity::find().filter(Column::Id.eq(id)).count(db).await?;
    let version = u32::try_from(count).unwrap_or(u32::MAX);
    let mut update = certificate::Entity::update_many()
        .col_expr(Column::Version, Expr::value(version))
        .col_expr(Column::Updated, touched(db.engine()));
    if let Some(at) = revoked {
        update = update.col_expr(Column::Revoked, Expr::value(seconds(at)));
    }
    update.filter(Column::Id.eq(id)).filter(Column::Version.eq(0)).exec(db).await?;
    Ok(version)
}

async fn note(db: &Db<'_>, line: &LogLine) -> Result<(), DbErr> {
    let LogLine { agent, message, details } = line.clone();
    let values = vec![time::value(time::now()), agent.into(), message.into(), details.into()];
    let sql = "INSERT INTO log (timestamp, agent, message, error) VALUES (@local(?), ?, ?, @json(?))";
    db.run(sql, values).await.map(drop)
}

fn into_rows(rows: Vec<certificate::Model>) -> Vec<CertificateRow> {
    rows.into_iter().map(Into::into).collect()
}

fn seconds(at: i64) -> NaiveDateTime {
    time::datetime(at.saturating_mul(1_000))
}

fn unix(at: NaiveDateTime) -> i64 {
    at.and_utc().timestamp()
}
