//! Small tools for SQL: what an error means, and statements over many rows.

use std::collections::HashSet;

use sea_orm::{
    ConnectionTrait, DbErr, RuntimeErr, SqlErr, Statement, Value,
    sqlx::{self, error::ErrorKind, mysql::MySqlDatabaseError, postgres::PgDatabaseError},
};

use super::{
    StoreError,
    engine::{Ask, Engine},
    server::is_fenced,
};
use crate::event::EventId;

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
                _ if is_fenced(error) => Class::Unavailable,
                _ => Class::Other,
            };
        };
        match inner.as_ref() {
            sqlx::Error::Database(database) => match database.kind() {
                ErrorKind::UniqueViolation | ErrorKind::ForeignKeyViolation => Class::Constraint,
                _ => Self::of_code(database.as_ref()),
            },
            sqlx::Error::Io(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed => Class::Unavailable,
            _ => Class::Other,
        }
    }
}

impl Class {
    fn of_code(error: &dyn sqlx::error::DatabaseError) -> Self {
        if let Some(mysql) = error.try_downcast_ref::<MySqlDatabaseError>() {
            return Self::of_mysql(mysql.number());
        }
        let code = error.code().unwrap_or_default();
        if error.try_downcast_ref::<PgDatabaseError>().is_some() {
            return Self::of_sqlstate(&code);
        }
        match code.parse::<i32>().map(|code| code & 0xFF) {
            Ok(BUSY | LOCKED | PROTOCOL) => Class::Busy,
            Ok(FULL) => Class::Full,
            Ok(READONLY | IOERR | CANTOPEN) => Class::Unavailable,
            Ok(CORRUPT | NOTADB) => Class::Corrupt,
            _ => Class::Other,
        }
    }

    /// Of PostgreSQL, <https://www.postgresql.org/docs/15/errcodes-appendix.html>.
    fn of_sqlstate(code: &str) -> Self {
        match code {
            // An upsert that meets its own row: a row of this key is there.
            "21000" => Class::Constraint,
            // Serialization failure, deadlock, lock not available.
            "40001" | "40P01" | "55P03" => Class::Busy,
            // Disk full, out of memory, too many connections.
            "53100" | "53200" => Class::Full,
            "53300" => Class::Unavailable,
            // Read-only transaction: a server that has become a standby.
            "25006" => Class::Unavailable,
            // Data or index corrupted.
            "XX001" | "XX002" => Class::Corrupt,
            // Connection exceptions, operator intervention (shutdown, crash, start), system errors.
            _ if ["08", "57", "58"].iter().any(|class| code.starts_with(class)) => Class::Unavailable,
            _ => Class::Other,
        }
    }

    /// Of MySQL and MariaDB, <https://mariadb.com/kb/en/mariadb-error-code-reference/>.
    fn of_mysql(number: u16) -> Self {
        match number {
            // Lock wait time-out, deadlock, too many locks, locked where nobody waits.
            1205 | 1213 | 1206 | 3572 => Class::Busy,
            // Disk full, table full.
            1021 | 1114 => Class::Full,
            // Too many connections, shutdown, killed, read-only, aborted connections.
            1040 | 1053 | 1927 | 1290 | 1836 | 1317 | 1152 | 1158..=1161 | 1203 | 3100 | 3168 => {
                Class::Unavailable
            }
            // Crashed or corrupted tables.
            1034 | 1035 | 1194 | 1195 => Class::Corrupt,
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
        _ if is_fenced(&source) => StoreError::Fenced,
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

/// Fills up the values of `rows` rows to those of a [`rounded`] statement, with nulls of the types that the last row has:
/// PostgreSQL wants all values of a column to be of one.
pub(super) fn fill(values: &mut Vec<Value>, rows: usize, columns: usize) {
    let missing = rounded(rows) - rows;
    let last = values.len().saturating_sub(columns);
    let nulls: Vec<Value> = values[last..].iter().map(Value::as_null).collect();
    for _ in 0..missing {
        values.extend_from_slice(&nulls);
    }
}

/// A table expression of so many rows, [`rounded`], of so many columns: `column1`, `column2`, … Those that only fill up
/// have a null in `column1`. It must be given a name.
pub(super) fn rows_of(rows: usize, columns: usize) -> String {
    format!("@rows({},{columns})", rounded(rows))
}

/// The same; the texts of one column, counted from 1, may be long.
pub(super) fn rows_with_text(rows: usize, columns: usize, text: usize) -> String {
    format!("@rows({},{columns},{text})", rounded(rows))
}

/// Statements one after the other, each with values of its own; the first error ends them.
///
/// SQLite gets them in one message: between us and it lie two threads, and what a transaction costs follows the number of
/// its messages more than that of its rows. Servers take one after the other.
pub(super) struct Script {
    engine: Engine,
    steps: Vec<Step>,
}

struct Step {
    sql: String,
    values: Vec<Value>,
    /// How many rows it must write.
    expected: Option<u64>,
}

/// What SQLite says when [`Script::expect`] isn't met.
const UNEXPECTED: &str = "integer overflow";
/// The same for servers, where we count ourselves.
const MISCOUNT: &str = "a statement wrote another number of rows than was expected";

impl Script {
    /// An empty one for this engine.
    pub(super) fn new(engine: Engine) -> Self {
        Self { engine, steps: Vec::new() }
    }

    /// For which engine it is.
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }

    /// Adds a statement.
    pub(super) fn add(&mut self, sql: impl Into<String>, values: impl IntoIterator<Item = Value>) {
        self.steps.push(Step { sql: sql.into(), values: values.into_iter().collect(), expected: None });
    }

    /// Ends the script by an error, see [`is_unexpected`], if the statement before didn't write so many rows.
    pub(super) fn expect(&mut self, rows: usize) {
        if let Some(step) = self.steps.last_mut() {
            step.expected = Some(rows as u64);
        }
    }

    /// Runs all of it, up to the first error.
    pub(super) async fn run(self, db: &impl ConnectionTrait) -> Result<(), DbErr> {
        if self.engine.is_sqlite() {
            return match self.message(false) {
                Some(message) => db.execute_raw(message).await.map(drop),
                None => Ok(()),
            };
        }
        for Step { sql, values, expected } in self.steps {
            let written = db.run(sql, values).await?;
            if expected.is_some_and(|rows| rows != written) {
                return Err(DbErr::Custom(MISCOUNT.to_owned()));
            }
        }
        Ok(())
    }

    /// All of it as one message for SQLite, as a whole transaction or within one; none if there is nothing to do.
    pub(super) fn message(self, is_transaction: bool) -> Option<Statement> {
        if self.steps.is_empty() && !is_transaction {
            return None;
        }
        let mut sql = String::with_capacity(self.steps.iter().map(|step| step.sql.len() + 100).sum());
        let mut all: Vec<Value> =
            Vec::with_capacity(self.steps.iter().map(|step| step.values.len() + 1).sum());
        if is_transaction {
            sql.push_str("BEGIN IMMEDIATE;");
        }
        for Step { sql: step, values, expected } in self.steps {
            sql.push_str(&step);
            sql.push(';');
            all.extend(values);
            if let Some(rows) = expected {
                // It has no better word for it outside of triggers.
                sql.push_str("SELECT CASE WHEN changes() = ? THEN 0 ELSE abs(-9223372036854775807 - 1) END;");
                all.push(signed(rows).into());
            }
        }
        if is_transaction {
            sql.push_str("COMMIT;");
        }
        sql.pop();
        Some(self.engine.statement(&sql, all))
    }
}

/// Whether a script ended since a statement didn't write as many rows as [`Script::expect`] said.
pub(super) fn is_unexpected(error: &DbErr) -> bool {
    matches!(error, DbErr::Custom(text) if text == MISCOUNT)
        || database_error(error).is_some_and(|error| error.message() == UNEXPECTED)
}

/// A part of a statement and the values of its marks.
pub(super) type Part = (String, Vec<Value>);

/// An update of a table from a named table of values: `UPDATE … FROM`, or, on MySQL, a join, in which the values stand in
/// another order. Columns of the table are set by their bare names.
pub(super) fn update_from(engine: Engine, table: &str, set: Part, rows: Part, which: &str) -> Part {
    let (mut values, others, sql) = match engine {
        Engine::MySql => {
            (rows.1, set.1, format!("UPDATE {table} JOIN {} SET {} WHERE {which}", rows.0, set.0))
        }
        Engine::Sqlite | Engine::Postgres => {
            (set.1, rows.1, format!("UPDATE {table} SET {} FROM {} WHERE {which}", set.0, rows.0))
        }
    };
    // Moved: cloning them would copy each text.
    values.extend(others);
    (sql, values)
}

/// Updates rows that have an `event_id`, and says which these were. MySQL can't say that of an update: there the rows are
/// locked and read first.
pub(super) async fn update_which(
    db: &impl ConnectionTrait,
    table: &str,
    set: Part,
    which: Part,
) -> Result<HashSet<EventId>, DbErr> {
    let ids = if db.engine() == Engine::MySql {
        let read = format!("SELECT event_id FROM {table} WHERE {} FOR UPDATE", which.0);
        let rows = db.rows(read, which.1).await?;
        let ids: Vec<String> = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, _>>()?;
        for piece in pieces(&ids) {
            let mut values = set.1.clone();
            let mut named = piece.iter().map(|id| id.as_str().into()).collect();
            fill(&mut named, piece.len(), 1);
            values.append(&mut named);
            let marks = marks(rounded(piece.len()));
            db.run(format!("UPDATE {table} SET {} WHERE event_id IN ({marks})", set.0), values).await?;
        }
        ids
    } else {
        let sql = format!("UPDATE {table} SET {} WHERE {} RETURNING event_id", set.0, which.0);
        let rows = db.rows(sql, [set.1, which.1].concat()).await?;
        rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, _>>()?
    };
    Ok(ids.into_iter().map(EventId::from_stored).collect())
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

/// A statement for tests that arrange, or look at, what no API would.
#[cfg(test)]
pub(super) fn statement(sql: impl AsRef<str>, values: Vec<Value>) -> Statement {
    super::tests::engines::engine().statement(sql.as_ref(), values)
}
