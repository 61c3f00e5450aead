//! Small tools for SQL: what an error means, and statements over many rows.

use sea_orm::{
    ConnectionTrait, DatabaseBackend, DatabaseConnection, DbErr, RuntimeErr, SqlErr, Statement, Value,
    sqlx::{self, error::ErrorKind},
};

use super::StoreError;

/// What an error of the database means for a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A row with this key is there, or a row that a foreign key names isn't: looking first tells which.
    Constraint,
    /// Somebody else holds a lock: the same again may go through.
    Busy,
    /// No room.
    Full,
    /// The file can't be written or read, or the connection is gone.
    Unavailable,
    /// The file doesn't hold what SQLite wrote into it.
    Corrupt,
    /// Anything else: one of the writes is at fault.
    Other,
}

// Primary result codes, https://www.sqlite.org/rescode.html
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READONLY: i32 = 8;
const IOERR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANTOPEN: i32 = 14;
const PROTOCOL: i32 = 15;
const NOTADB: i32 = 26;

impl Class {
    pub(super) fn of(error: &DbErr) -> Self {
        let (DbErr::Exec(RuntimeErr::SqlxError(inner))
        | DbErr::Query(RuntimeErr::SqlxError(inner))
        | DbErr::Conn(RuntimeErr::SqlxError(inner))) = error
        else {
            return match error {
                DbErr::ConnectionAcquire(_) | DbErr::Conn(_) => Class::Unavailable,
                _ => Class::Other,
            };
        };
        match inner.as_ref() {
            sqlx::Error::Database(database) => match database.kind() {
                ErrorKind::UniqueViolation | ErrorKind::ForeignKeyViolation => Class::Constraint,
                _ => match primary_code(error) {
                    Some(BUSY | LOCKED | PROTOCOL) => Class::Busy,
                    Some(FULL) => Class::Full,
                    Some(READONLY | IOERR | CANTOPEN) => Class::Unavailable,
                    Some(CORRUPT | NOTADB) => Class::Corrupt,
                    _ => Class::Other,
                },
            },
            sqlx::Error::Io(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Class::Unavailable,
            _ => Class::Other,
        }
    }
}

/// SQLite's result code without its extension.
pub(super) fn primary_code(error: &DbErr) -> Option<i32> {
    let code: i32 = database_error(error)?.code()?.parse().ok()?;
    Some(code & 0xFF)
}

fn database_error(error: &DbErr) -> Option<&dyn sqlx::error::DatabaseError> {
    let (DbErr::Exec(RuntimeErr::SqlxError(inner))
    | DbErr::Query(RuntimeErr::SqlxError(inner))
    | DbErr::Conn(RuntimeErr::SqlxError(inner))) = error
    else {
        return None;
    };
    inner.as_database_error()
}

/// Turns the database's error into ours; `action` completes "the database refused to …".
pub(super) fn refused(action: &'static str) -> impl Fn(DbErr) -> StoreError {
    move |source| match Class::of(&source) {
        Class::Full => StoreError::Full { source },
        Class::Busy | Class::Unavailable => StoreError::Unavailable { source },
        Class::Corrupt => StoreError::Corrupt { source },
        Class::Constraint | Class::Other => StoreError::Refused { action, source },
    }
}

/// Whether an insert failed because a row with this key is there.
pub(super) fn is_duplicate(error: &DbErr) -> bool {
    matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
}

/// A statement with its values.
pub(super) fn statement(sql: impl Into<String>, values: Vec<Value>) -> Statement {
    Statement::from_sql_and_values(DatabaseBackend::Sqlite, sql, values)
}

/// The most rows that one statement takes. With seven columns that is 1,792 parameters of the 32,766 that
/// SQLite allows.
const MOST_ROWS: usize = 256;

/// Splits `rows` into statements of at most 256 rows.
pub(super) fn pieces<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    rows.chunks(MOST_ROWS)
}

/// The rows that the statement for so many is made for: 1, 4, 16, 64 or 256. Few lengths mean that the connection finds
/// its statements prepared; what is beyond the rows is filled with nulls, see [`rows_of`].
pub(super) fn rounded(rows: usize) -> usize {
    let mut length = 1;
    while length < rows {
        length *= 4;
    }
    length
}

/// Fills up the values of `rows` rows to those of a [`rounded`] statement.
pub(super) fn fill(values: &mut Vec<Value>, rows: usize, columns: usize) {
    values.resize(values.len() + (rounded(rows) - rows) * columns, Value::String(None));
}

/// A table expression of so many rows, [`rounded`], of so many columns: `column1`, `column2`, … in SQLite's words. Those
/// that only fill up have a null in `column1`.
pub(super) fn rows_of(rows: usize, columns: usize) -> String {
    let rows = rounded(rows);
    let row = format!("({}),", marks(columns));
    let mut all = String::with_capacity(row.len() * rows + 16);
    all.push_str("(VALUES ");
    all.extend(std::iter::repeat_n(row.as_str(), rows));
    all.pop();
    all.push(')');
    all
}

/// Statements that go to the database in one message, one after the other, each with values of its own. Between us and
/// SQLite lie two threads: what a transaction costs follows the number of its messages more than that of its rows.
#[derive(Default)]
pub(super) struct Script {
    sql: String,
    values: Vec<Value>,
}

/// What SQLite says when [`Script::expect`] isn't met.
const UNEXPECTED: &str = "integer overflow";

impl Script {
    /// Adds a statement.
    pub(super) fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        if !self.sql.is_empty() {
            self.sql.push(';');
        }
        self.sql.push_str(sql);
        self.values.extend(values);
    }

    /// Ends the script by an error, see [`is_unexpected`], if the statement before didn't write so many rows. SQLite has
    /// no better word for it outside of triggers.
    pub(super) fn expect(&mut self, rows: usize) {
        let rows = signed(rows as u64);
        self.add(
            "SELECT CASE WHEN changes() = ? THEN 0 ELSE abs(-9223372036854775807 - 1) END",
            [rows.into()],
        );
    }

    /// The same as a whole transaction.
    pub(super) fn into_transaction(mut self) -> Self {
        self.sql = format!("BEGIN IMMEDIATE;{};COMMIT", self.sql);
        self
    }

    /// Runs all of it, up to the first error.
    pub(super) async fn run(self, db: &DatabaseConnection) -> Result<(), DbErr> {
        if self.sql.is_empty() {
            return Ok(());
        }
        db.execute_raw(statement(self.sql, self.values)).await.map(drop)
    }
}

/// Whether a script ended since a statement didn't write as many rows as [`Script::expect`] said.
pub(super) fn is_unexpected(error: &DbErr) -> bool {
    database_error(error).is_some_and(|error| error.message() == UNEXPECTED)
}

/// Whether a row of `event_published`, by this name, is no npm spoke's: those claim by `consumed_spoke` alone.
pub(super) fn ours(row: &str) -> String {
    format!(
        "({row}.consumed_spoke IS NULL OR EXISTS (SELECT 1 FROM v1_claim c WHERE c.event_id = {row}.event_id))"
    )
}

/// `?,?,?`: so many marks.
pub(super) fn marks(count: usize) -> String {
    let mut all = "?,".repeat(count);
    all.pop();
    all
}

/// Cuts a text at `limit` bytes, never inside a character.
pub(super) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
    }
    text
}

/// Sequence numbers are `BIGINT` in the database.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// And back; none is below zero.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
