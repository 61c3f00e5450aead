//! Certificates and keys at rest. What their bytes mean is not the store's business.
//!
//! What changes rows does so under the [lock](super::writer::Writer::certificates) that the npm stack takes, for no longer
//! than its transaction: keys are made and opened before and after.

use sea_orm::{
    ActiveModelTrait,
    ActiveValue::{NotSet, Set},
    ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    sea_query::Expr,
};

use super::{
    Store, StoreError,
    engine::Engine,
    entity::certificate::{self, Column},
    leaves::make_room,
    sql::{is_duplicate, refused},
    time,
};
use crate::pki::{CertificateRow, CertificateRows};

impl From<certificate::Model> for CertificateRow {
    fn from(row: certificate::Model) -> Self {
        Self {
            version: row.version,
            id: row.id,
            cert: row.cert,
            key: row.key,
            key_iv: row.key_iv,
            key_salt: row.key_salt,
            key_tag: row.key_tag,
            pass: row.pass,
            pass_iv: row.pass_iv,
            pass_salt: row.pass_salt,
            pass_tag: row.pass_tag,
            validity: row.validity.and_utc().timestamp(),
            revoked: row.revoked.map(|at| at.and_utc().timestamp()),
        }
    }
}

impl CertificateRows for Store {
    type Error = StoreError;

    async fn current(&self, id: &str) -> Result<Option<CertificateRow>, StoreError> {
        let row = certificate::Entity::find()
            .filter(Column::Id.eq(id))
            .filter(Column::Version.eq(0))
            .filter(Column::Revoked.is_null())
            .one(&self.readers)
            .await;
        row.map(|row| row.map(Into::into)).map_err(refused("read a certificate"))
    }

    async fn insert(&self, row: CertificateRow) -> Result<bool, StoreError> {
        let refused = refused("store a certificate");
        let lock = self.writer.certificates().await.map_err(&refused)?;
        let transaction = self.writer.begin().await.map_err(&refused)?;
        let inserted = async {
            make_room(&transaction.db(), &row.id).await?;
            model(row, self.writer.engine()).insert(&transaction.db()).await
        };
        let inserted = inserted.await;
        let inserted = transaction.end(inserted).await;
        lock.release().await;
        match inserted {
            Ok(_) => Ok(true),
            Err(error) if is_duplicate(&error) => Ok(false),
            Err(error) => Err(refused(error)),
        }
    }

    async fn retire(&self, row: &CertificateRow) -> Result<(), StoreError> {
        let id = row.id.as_str();
        let refused = refused("retire a certificate");
        let lock = self.writer.certificates().await.map_err(&refused)?;
        let transaction = self.writer.begin().await.map_err(&refused)?;
        let moved = async {
            let count =
                certificate::Entity::find().filter(Column::Id.eq(id)).count(&transaction.db()).await?;
            certificate::Entity::update_many()
                .col_expr(Column::Version, Expr::value(u32::try_from(count).unwrap_or(u32::MAX)))
                .col_expr(Column::Updated, touched(self.writer.engine()))
                .filter(Column::Id.eq(id))
                .filter(Column::Version.eq(0))
                // Another hub may have put its successor there meanwhile.
                .filter(Column::Cert.eq(&row.cert))
                .exec(&transaction.db())
                .await
        };
        let moved = moved.await;
        let moved = transaction.end(moved).await;
        lock.release().await;
        moved.map(drop).map_err(refused)
    }
}

/// When a row was changed, for its column. MySQL's is in the zone of npm's sessions, which the server's own time is.
pub(super) fn touched(engine: Engine) -> Expr {
    match engine {
        Engine::MySql => Expr::cust("current_timestamp(3)"),
        Engine::Sqlite | Engine::Postgres => Expr::value(time::datetime(time::now())),
    }
}

/// A row as the entity holds it. On MySQL the server gives its times.
pub(super) fn model(row: CertificateRow, engine: Engine) -> certificate::ActiveModel {
    let now = if engine == Engine::MySql { NotSet } else { Set(time::datetime(time::now())) };
    let seconds = |at: i64| time::datetime(at.saturating_mul(1_000));
    certificate::ActiveModel {
        version: Set(row.version),
        id: Set(row.id),
        created: now.clone(),
        updated: now,
        cert: Set(row.cert),
        key: Set(row.key),
        key_iv: Set(row.key_iv),
        key_salt: Set(row.key_salt),
        key_tag: Set(row.key_tag),
        pass: Set(row.pass),
        pass_iv: Set(row.pass_iv),
        pass_salt: Set(row.pass_salt),
        pass_tag: Set(row.pass_tag),
        validity: Set(seconds(row.validity)),
        revoked: Set(row.revoked.map(seconds)),
    }
}

impl Store {
    /// All certificates, by id, the one in use before its predecessors.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn certificates(&self) -> Result<Vec<CertificateRow>, StoreError> {
        let rows = certificate::Entity::find()
            .order_by_asc(Column::Id)
            .order_by_asc(Column::Version)
            .all(&self.readers)
            .await;
        rows.map(|rows| rows.into_iter().map(Into::into).collect()).map_err(refused("list the certificates"))
    }
}
