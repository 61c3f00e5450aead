//! Three databases, one set of statements.
//!
//! Statements are written once, with `?` for each value, and with *words* for what the engines say differently. A word
//! begins with `@` and may have one argument: `@now`, `@text(e.data)`. [`Engine::statement`] puts them into what the
//! engine at hand understands; the table of all words stands in [`word`].
//!
//! Moments are in UTC but for what npm leaves to the database's clock: `timestamp`, `published`, `created` and `updated` of
//! the tables that it shares are in the zone of the server's sessions. `@utc` reads such a column, `@local` makes a value
//! for one; our sessions are in that zone where the two may differ, see [`super::NpmTimeZone`].
//!
//! What differs in its shape rather than in its words (updates from rows, conditional upserts, what `RETURNING` returns) is
//! written where it is used, by a `match` on the engine.
//!
//! Values of moments are [`Value::ChronoDateTime`], see [`super::time::value`]: SQLite gets them as text with exactly three
//! decimals, which sorts like what it means.

use std::borrow::Cow;

use sea_orm::{ConnectionTrait, DbBackend, DbErr, QueryResult, Statement, Value};

use super::time;

/// Which database speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// SQLite, in this process.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    MySql,
}

impl From<DbBackend> for Engine {
    fn from(backend: DbBackend) -> Self {
        match backend {
            DbBackend::Postgres => Self::Postgres,
            DbBackend::MySql => Self::MySql,
            _ => Self::Sqlite,
        }
    }
}

impl From<Engine> for DbBackend {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => Self::Sqlite,
            Engine::Postgres => Self::Postgres,
            Engine::MySql => Self::MySql,
        }
    }
}

impl Engine {
    /// Whether it is SQLite: one process, one writer, statements in one message.
    pub(super) fn is_sqlite(self) -> bool {
        self == Self::Sqlite
    }

    /// A statement with its values, in this engine's words.
    pub(super) fn statement(self, sql: &str, values: Vec<Value>) -> Statement {
        let sql = self.words(sql);
        let (sql, values) = match self {
            Self::Sqlite => (sql, texts(values)),
            Self::MySql => (sql, values),
            Self::Postgres => (Cow::Owned(numbered(&sql)), values),
        };
        Statement::from_sql_and_values(self.into(), sql, values)
    }

    /// The text with its words replaced.
    fn words<'a>(self, sql: &'a str) -> Cow<'a, str> {
        let Some(first) = memchr::memchr(b'@', sql.as_bytes()) else { return Cow::Borrowed(sql) };
        let mut said = String::with_capacity(sql.len() * 2);
        said.push_str(&sql[..first]);
        let mut rest = &sql[first..];
        while let Some(after) = rest.strip_prefix('@') {
            // Variables of MySQL begin with two.
            let after = match after.strip_prefix('@') {
                Some(variable) => {
                    said.push_str("@@");
                    let next = memchr::memchr(b'@', variable.as_bytes()).unwrap_or(variable.len());
                    said.push_str(&variable[..next]);
                    rest = &variable[next..];
                    continue;
                }
                None => after,
            };
            let end = after.find(|letter: char| !letter.is_ascii_alphabetic() && letter != '_');
            let (name, behind) = after.split_at(end.unwrap_or(after.len()));
            let (argument, behind) = argument(behind);
            // A word's own text may have words in it.
            said.push_str(&self.words(&word(self, name, argument)));
            let next = memchr::memchr(b'@', behind.as_bytes()).unwrap_or(behind.len());
            said.push_str(&behind[..next]);
            rest = &behind[next..];
        }
        Cow::Owned(said)
    }
}

/// What stands in the parentheses with which the text begins, and what follows them.
fn argument(text: &str) -> (&str, &str) {
    let mut open = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => open += 1,
            b')' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return if at == 0 { ("", text) } else { (&text[1..at], &text[at + 1..]) };
        }
    }
    ("", text)
}

/// What a word means.
fn word(engine: Engine, name: &str, argument: &str) -> String {
    use Engine::{MySql, Postgres, Sqlite};
    let said = match (name, engine) {
        // The present moment in UTC, as a column of moments holds it: the beginning of its millisecond, and the same
        // throughout a statement.
        ("now", Sqlite) => "strftime('%Y-%m-%d %H:%M:%f', 'now')",
        ("now", Postgres) => "date_trunc('milliseconds', statement_timestamp() AT TIME ZONE 'UTC')",
        ("now", MySql) => "utc_timestamp(3)",
        // A column of moments in the zone of npm's sessions, in UTC.
        ("utc", Sqlite | Postgres) => "{}",
        ("utc", MySql) => "convert_tz({}, @@session.time_zone, '+00:00')",
        // A moment for such a column.
        ("local", Sqlite | Postgres) => "{}",
        ("local", MySql) => "convert_tz({}, '+00:00', @@session.time_zone)",
        // A moment in milliseconds since 1970.
        ("ms", Sqlite) => "CAST(round(unixepoch({}, 'subsec') * 1000) AS INTEGER)",
        ("ms", Postgres) => "CAST(floor(extract(epoch FROM {}) * 1000) AS bigint)",
        ("ms", MySql) => "(timestampdiff(MICROSECOND, '1970-01-01', {}) DIV 1000)",
        // The present moment in milliseconds since 1970. The same throughout a statement.
        ("now_ms", Sqlite) => "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER)",
        ("now_ms", Postgres | MySql) => "@ms(@now)",
        // A column of JSON as text.
        ("text", Sqlite) => "{}",
        ("text", Postgres) => "CAST({} AS text)",
        ("text", MySql) => "CAST({} AS char)",
        // Text for a column of JSON.
        ("json", Postgres) => "CAST({} AS json)",
        ("json", Sqlite | MySql) => "{}",
        // How many bytes a column of JSON has as text.
        ("bytes", Sqlite | MySql) => "octet_length({})",
        ("bytes", Postgres) => "octet_length(CAST({} AS text))",
        // The index to read by: the one that answers in the order that is asked for.
        ("index", Sqlite) => "INDEXED BY {}",
        ("index", Postgres) => "",
        // There it is one of npm's, which has another name.
        ("index", MySql) if argument == "event_domain" => "",
        ("index", MySql) => "FORCE INDEX ({})",
        // A join that begins with its left table.
        ("join", Sqlite) => "CROSS JOIN",
        ("join", Postgres) => "JOIN",
        ("join", MySql) => "STRAIGHT_JOIN",
        // A column for whose sake no index is chosen.
        ("loose", Sqlite) => "+{}",
        ("loose", Postgres | MySql) => "{}",
        // An id of a row of values, to compare with a column: MySQL would convert the column else, and find no index.
        ("id", Sqlite | Postgres) => "{}",
        ("id", MySql) => "CONVERT({} USING ascii)",
        // A moment as text, and back.
        ("moment_text", Sqlite | Postgres) => "CAST({} AS text)",
        ("moment_text", MySql) => "CAST({} AS char)",
        ("moment", Sqlite) => "{}",
        ("moment", Postgres) => "CAST({} AS timestamp)",
        ("moment", MySql) => "CAST({} AS datetime(3))",
        // A number that a sum makes a decimal of.
        ("whole", Sqlite) => "{}",
        ("whole", Postgres) => "CAST({} AS bigint)",
        ("whole", MySql) => "CAST({} AS signed)",
        // The value that an insert came with, where its row is there already.
        ("new", Sqlite | Postgres) => "excluded.{}",
        ("new", MySql) => "VALUES({})",
        // What an insert does if there is a row of this key.
        ("else_set", Sqlite | Postgres) => "ON CONFLICT ({}) DO UPDATE SET",
        ("else_set", MySql) => "ON DUPLICATE KEY UPDATE",
        // An insert that leaves the row of this key as it is; the argument is a column of that key.
        ("else_leave", Sqlite | Postgres) => "ON CONFLICT DO NOTHING",
        ("else_leave", MySql) => "ON DUPLICATE KEY UPDATE {0} = {0}",
        // Until the transaction ends nobody else writes the rows that are read.
        ("locked", Sqlite) => "",
        ("locked", Postgres | MySql) => "FOR UPDATE",
        // The same, or an error at once if somebody else has them.
        ("locked_now", Sqlite) => "",
        ("locked_now", Postgres | MySql) => "FOR UPDATE NOWAIT",
        ("rows", _) => return rows(engine, argument),
        _ => {
            debug_assert!(false, "no such word: @{name}");
            ""
        }
    };
    said.replace("{0}", argument).replace("{}", argument)
}

/// A table of values, so many rows of so many columns: `column1`, `column2`, … A third number says which column has texts
/// that may be long; none if it isn't there.
fn rows(engine: Engine, argument: &str) -> String {
    let mut numbers = argument.split(',').map(|number| number.parse::<usize>().unwrap_or(1));
    let (rows, columns) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
    if engine == Engine::MySql {
        let long = numbers.next();
        // Measured on MariaDB 10.11: of values that make up more than some 4 MB it cuts the texts short, and says nothing,
        // unless they are results of a function.
        let mark = |column| if Some(column) == long { "CONVERT(? USING utf8mb4)" } else { "?" };
        let first: Vec<String> =
            (1..=columns).map(|column| format!("{} AS column{column}", mark(column))).collect();
        let marks: Vec<&str> = (1..=columns).map(mark).collect();
        let mut all = format!("(SELECT {}", first.join(","));
        for _ in 1..rows {
            all.push_str(" UNION ALL SELECT ");
            all.push_str(&marks.join(","));
        }
        all.push(')');
        return all;
    }
    let row = format!("({}),", vec!["?"; columns].join(","));
    let mut all = String::with_capacity(row.len() * rows + 10);
    all.push_str("(VALUES ");
    all.extend(std::iter::repeat_n(row.as_str(), rows));
    all.pop();
    all.push(')');
    all
}

/// `$1`, `$2`, … for each `?` outside of quotes.
fn numbered(sql: &str) -> String {
    let mut said = String::with_capacity(sql.len() + sql.len() / 2);
    let mut quoted = false;
    let mut count = 0;
    for letter in sql.chars() {
        match letter {
            '\'' => {
                quoted = !quoted;
                said.push(letter);
            }
            '?' if !quoted => {
                count += 1;
                said.push('$');
                said.push_str(&count.to_string());
            }
            _ => said.push(letter),
        }
    }
    said
}

/// Moments as SQLite holds them. Most of a batch share theirs.
fn texts(mut values: Vec<Value>) -> Vec<Value> {
    let mut last: Option<(chrono::NaiveDateTime, String)> = None;
    for value in &mut values {
        let Value::ChronoDateTime(moment) = value else { continue };
        let text = moment.map(|moment| match &last {
            Some((same, text)) if *same == moment => text.clone(),
            _ => {
                let text = time::text(time::millis(moment));
                last = Some((moment, text.clone()));
                text
            }
        });
        *value = text.into();
    }
    values
}

/// Statements of ours, asked of whatever connection there is.
pub(super) trait Ask: ConnectionTrait {
    /// Which engine answers.
    fn engine(&self) -> Engine {
        self.get_database_backend().into()
    }

    /// All rows.
    fn rows(
        &self,
        sql: impl AsRef<str>,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Vec<QueryResult>, DbErr>> + Send {
        self.query_all_raw(self.engine().statement(sql.as_ref(), values))
    }

    /// The first row.
    fn row(
        &self,
        sql: impl AsRef<str>,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Option<QueryResult>, DbErr>> + Send {
        self.query_one_raw(self.engine().statement(sql.as_ref(), values))
    }

    /// Runs it; how many rows it wrote, or, on MySQL, found.
    fn run(
        &self,
        sql: impl AsRef<str>,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<u64, DbErr>> + Send {
        let done = self.execute_raw(self.engine().statement(sql.as_ref(), values));
        async move { done.await.map(|done| done.rows_affected()) }
    }
}

impl<C: ConnectionTrait> Ask for C {}

/// A whole number of whatever width the engine gives it.
pub(super) fn number(row: &QueryResult, index: usize) -> Result<i64, DbErr> {
    let wide = row.try_get_by_index::<i64>(index);
    if wide.is_ok() {
        return wide;
    }
    let narrow = row.try_get_by_index::<i32>(index).map(i64::from);
    let unsigned =
        || row.try_get_by_index::<u64>(index).map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    narrow.or_else(|_| unsigned()).or(wide)
}

/// The same as a count.
pub(super) fn small(row: &QueryResult, index: usize) -> Result<u32, DbErr> {
    number(row, index).map(|number| u32::try_from(number).unwrap_or(if number < 0 { 0 } else { u32::MAX }))
}

/// The same as a size.
pub(super) fn size(row: &QueryResult, index: usize) -> Result<usize, DbErr> {
    number(row, index).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(engine: Engine, sql: &str) -> String {
        engine.statement(sql, Vec::new()).sql
    }

    #[test]
    fn words_are_put_into_each_engine() {
        let sql = "SELECT @text(e.data) FROM event e @index(event_published_seq) WHERE @now_ms > ? AND name = '?' AND x = ?";
        assert_eq!(
            said(Engine::Postgres, sql),
            "SELECT CAST(e.data AS text) FROM event e  WHERE CAST(floor(extract(epoch FROM date_trunc('milliseconds', \
             statement_timestamp() AT TIME ZONE 'UTC')) * 1000) AS bigint) > $1 AND name = '?' AND x = $2"
        );
        assert_eq!(
            said(Engine::MySql, sql),
            "SELECT CAST(e.data AS char) FROM event e FORCE INDEX (event_published_seq) WHERE (timestampdiff(MICROSECOND, \
             '1970-01-01', utc_timestamp(3)) DIV 1000) > ? AND name = '?' AND x = ?"
        );
        assert_eq!(said(Engine::Sqlite, "a @join b"), "a CROSS JOIN b");
        let sum = "SELECT @whole(sum(n)), @ms(coalesce(@moment(?), (a))) FROM t";
        assert_eq!(
            said(Engine::Postgres, sum),
            "SELECT CAST(sum(n) AS bigint), CAST(floor(extract(epoch FROM coalesce(CAST($1 AS timestamp), (a))) * 1000) \
             AS bigint) FROM t"
        );
    }

    #[test]
    fn rows_of_values_are_tables() {
        assert_eq!(said(Engine::Sqlite, "@rows(2,3) v"), "(VALUES (?,?,?),(?,?,?)) v");
        assert_eq!(said(Engine::Postgres, "@rows(2,2) v"), "(VALUES ($1,$2),($3,$4)) v");
        assert_eq!(
            said(Engine::MySql, "@rows(2,2) v"),
            "(SELECT ? AS column1,? AS column2 UNION ALL SELECT ?,?) v"
        );
        assert_eq!(said(Engine::Sqlite, "@rows(1,2,2) v"), "(VALUES (?,?)) v");
        assert_eq!(
            said(Engine::MySql, "@rows(2,2,2) v"),
            "(SELECT ? AS column1,CONVERT(? USING utf8mb4) AS column2 UNION ALL SELECT ?,CONVERT(? USING utf8mb4)) v"
        );
    }

    #[test]
    fn sqlite_gets_moments_as_text() {
        let values = vec![time::value(0), time::value(0), Value::ChronoDateTime(None)];
        let statement = Engine::Sqlite.statement("SELECT ?, ?, ?", values.clone());
        let text = || Value::from("1970-01-01 00:00:00.000");
        assert_eq!(statement.values.unwrap().0, [text(), text(), Value::String(None)]);
        assert_eq!(Engine::Postgres.statement("SELECT ?, ?, ?", values.clone()).values.unwrap().0, values);
    }
}
