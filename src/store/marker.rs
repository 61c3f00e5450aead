//! When a hub of ours first served this database: what is older is history.

use sea_orm::DbErr;

use super::{Store, StoreError, engine::Ask, sql::refused, time, writer::Db};

/// The name of the marker's row.
const FIRST_START: &str = "first_start";

/// Sets the marker, if it isn't set.
pub(super) async fn set(db: &Db<'_>) -> Result<(), DbErr> {
    let sql = "INSERT INTO v1_marker (name, at) SELECT ?, ? \
               WHERE NOT EXISTS (SELECT 1 FROM v1_marker WHERE name = ?)";
    let values = vec![FIRST_START.into(), time::now().into(), FIRST_START.into()];
    db.run(sql, values).await.map(drop)
}

impl Store {
    /// When a hub of ours first served this database, in milliseconds since 1970; none before the first
    /// [registration](Store::register_hub).
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn first_start(&self) -> Result<Option<i64>, StoreError> {
        let read = async {
            let sql = "SELECT at FROM v1_marker WHERE name = ?";
            let row = self.readers.row(sql, vec![FIRST_START.into()]).await?;
            row.map(|row| row.try_get_by_index(0)).transpose()
        };
        read.await.map_err(refused("read when it was first served"))
    }
}
