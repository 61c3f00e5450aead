//! When a hub of ours first served this database: what is older is history.

use sea_orm::DbErr;

use super::{Store, StoreError, engine::Ask, sql::refused, writer::Db};

/// The name of the marker's row.
const FIRST_START: &str = "first_start";

/// Sets the marker, if it isn't set: by the clock that gives rows their times. Of hubs that start at once one does it.
pub(super) async fn set(db: &Db<'_>) -> Result<(), DbErr> {
    let sql = "INSERT INTO v1_marker (name, at) VALUES (?, @now_ms) @else_leave(name)";
    db.run(sql, vec![FIRST_START.into()]).await.map(drop)
}

impl Store {
    /// When a hub of ours first served this database, in milliseconds since 1970, rounded down to a whole second; none
    /// before the first [registration](Store::register_hub).
    ///
    /// npm's column `published` has whole seconds, so that what is published in the second of the first start seems older
    /// than the start itself.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn first_start(&self) -> Result<Option<i64>, StoreError> {
        let read = async {
            let sql = "SELECT at FROM v1_marker WHERE name = ?";
            let row = self.readers.row(sql, vec![FIRST_START.into()]).await?;
            let at: Option<i64> = row.map(|row| row.try_get_by_index(0)).transpose()?;
            Ok(at.map(|at| at - at.rem_euclid(1_000)))
        };
        read.await.map_err(refused("read when it was first served"))
    }
}
