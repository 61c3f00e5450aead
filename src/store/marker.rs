//! When a hub of ours first served this database: what is older is history.

//!
//! Beside that a mark of an import that is under way: which one, and how far it has come.

use sea_orm::{ConnectionTrait, DbErr};

use super::{
    Store, StoreError,
    engine::Ask,
    sql::{refused, signed, unsigned},
    writer::Db,
};

/// The name of the marker's row.
const FIRST_START: &str = "first_start";
/// With what the name of an import's row begins; its id follows.
const IMPORT: &str = "import ";

/// The import that is under way, and how many lines of rows are in.
pub(super) async fn import(db: &impl ConnectionTrait) -> Result<Option<(String, u64)>, StoreError> {
    let read = async {
        let sql = "SELECT name, at FROM v1_marker WHERE name LIKE 'import %'";
        let Some(row) = db.row(sql, Vec::new()).await? else { return Ok(None) };
        let (name, at): (String, i64) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        Ok(Some((name.trim_start_matches(IMPORT).to_owned(), unsigned(at))))
    };
    read.await.map_err(refused("say whether an import is under way"))
}

/// An import begins.
pub(super) async fn begin_import(db: &Db<'_>, id: &str) -> Result<(), DbErr> {
    let sql = "INSERT INTO v1_marker (name, at) VALUES (?, 0)";
    db.run(sql, vec![format!("{IMPORT}{id}").into()]).await.map(drop)
}

/// It has come so far.
pub(super) async fn import_reached(db: &Db<'_>, id: &str, rows: u64) -> Result<(), DbErr> {
    let sql = "UPDATE v1_marker SET at = ? WHERE name = ?";
    db.run(sql, vec![signed(rows).into(), format!("{IMPORT}{id}").into()]).await.map(drop)
}

/// It is over.
pub(super) async fn end_import(db: &Db<'_>, id: &str) -> Result<(), DbErr> {
    let sql = "DELETE FROM v1_marker WHERE name = ?";
    db.run(sql, vec![format!("{IMPORT}{id}").into()]).await.map(drop)
}

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
