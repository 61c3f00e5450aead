//! Tables and indexes in each engine's terms.
//!
//! - Ids and names are ASCII, and compare byte by byte: by a collation of PostgreSQL's columns and of MySQL's tables.
//! - Moments have milliseconds.
//! - MySQL has no partial indexes: there the columns of the condition come first, see [`Wanted::mysql`].

use sea_orm_migration::{
    SchemaManager,
    sea_orm::{ConnectionTrait, DbErr},
    sea_query::{
        Alias, ColumnDef, Expr, ForeignKey, ForeignKeyAction, ForeignKeyCreateStatement, Index,
        IndexCreateStatement, Table, TableCreateStatement,
    },
};

use super::super::engine::Engine;

/// What stands behind each text of people's in MySQL.
const UTF8: &str = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

/// Makes columns and tables for one engine.
#[derive(Clone, Copy)]
pub(super) struct Shape(pub(super) Engine);

impl Shape {
    pub(super) fn of(manager: &SchemaManager<'_>) -> Self {
        Self(manager.get_database_backend().into())
    }

    /// An ASCII text of so many characters.
    pub(super) fn ascii(self, name: &'static str, length: u32) -> ColumnDef {
        let mut column = ColumnDef::new(name).string_len(length).take();
        if self.0 == Engine::Postgres {
            column.extra("COLLATE \"C\"");
        }
        column
    }

    /// A text of at most 64 characters, as ids, names and pids are.
    pub(super) fn short(self, name: &'static str) -> ColumnDef {
        self.ascii(name, 64).not_null().take()
    }

    pub(super) fn short_or_null(self, name: &'static str) -> ColumnDef {
        self.ascii(name, 64).null().take()
    }

    /// A text of people, in UTF-8.
    pub(super) fn text(self, name: &'static str) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        match self.0 {
            Engine::MySql => column.custom(Alias::new(format!("longtext {UTF8}"))),
            _ => column.text(),
        };
        column.not_null().take()
    }

    /// A short one.
    pub(super) fn words(self, name: &'static str, length: u32) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        match self.0 {
            Engine::MySql => column.custom(Alias::new(format!("varchar({length}) {UTF8}"))),
            _ => column.string_len(length),
        };
        column.not_null().take()
    }

    /// JSON, as it was written.
    pub(super) fn json(self, name: &'static str) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        match self.0 {
            Engine::Sqlite => column.text(),
            Engine::Postgres | Engine::MySql => column.custom(Alias::new("json")),
        };
        column.not_null().take()
    }

    /// A moment; null if it isn't given one and isn't made `not_null`.
    pub(super) fn moment(self, name: &'static str) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        match self.0 {
            Engine::Sqlite => column.date_time(),
            Engine::Postgres => column.custom(Alias::new("timestamp(3)")),
            Engine::MySql => column.custom(Alias::new("datetime(3)")),
        };
        column
    }

    /// A moment that the database gives if the insert doesn't.
    pub(super) fn time(self, name: &'static str) -> ColumnDef {
        let now = match self.0 {
            Engine::Sqlite => "(strftime('%Y-%m-%d %H:%M:%f', 'now'))",
            Engine::Postgres => "(clock_timestamp() AT TIME ZONE 'UTC')",
            Engine::MySql => "current_timestamp(3)",
        };
        self.moment(name).not_null().default(Expr::cust(now)).take()
    }

    pub(super) fn number(self, name: &'static str) -> ColumnDef {
        ColumnDef::new(name).big_integer().not_null().take()
    }

    pub(super) fn bytes(self, name: &'static str) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        match self.0 {
            Engine::Postgres => column.custom(Alias::new("bytea")),
            _ => column.blob(),
        };
        column.not_null().take()
    }

    /// A port: PostgreSQL has no numbers without sign.
    pub(super) fn port(self, name: &'static str) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        match self.0 {
            Engine::Postgres => column.integer(),
            _ => column.small_unsigned(),
        };
        column.not_null().take()
    }

    /// A number of 32 bits: PostgreSQL has none without sign.
    pub(super) fn count(self, name: &'static str) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        match self.0 {
            Engine::Postgres => column.integer(),
            _ => column.unsigned(),
        };
        column.not_null().take()
    }

    /// A number that the database counts up.
    pub(super) fn counted(self, name: &'static str) -> ColumnDef {
        ColumnDef::new(name).big_integer().not_null().auto_increment().primary_key().take()
    }

    pub(super) fn table(
        self,
        name: &'static str,
        columns: impl IntoIterator<Item = ColumnDef>,
    ) -> TableCreateStatement {
        let mut table = Table::create();
        table.table(name).if_not_exists();
        for column in columns {
            table.col(column);
        }
        if self.0 == Engine::MySql {
            table.engine("InnoDB").character_set("ascii").collate("ascii_bin");
        }
        table
    }

    /// A table whose rows stand in its key: found by one search less, where that pays.
    pub(super) fn table_in_key(
        self,
        name: &'static str,
        columns: impl IntoIterator<Item = ColumnDef>,
    ) -> TableCreateStatement {
        let mut table = self.table(name, columns);
        if self.0 == Engine::Sqlite {
            table.extra("WITHOUT ROWID");
        }
        table
    }
}

/// The columns of a key.
pub(super) fn key(columns: &[&'static str]) -> IndexCreateStatement {
    let mut key = Index::create();
    for column in columns {
        key.col(*column);
    }
    key
}

/// A column that names an event, and goes with it.
pub(super) fn of_event(table: &'static str) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("fk_{table}_event"))
        .from(table, "event_id")
        .to("event", "id")
        .on_delete(ForeignKeyAction::Cascade)
        .take()
}

/// An index.
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) table: &'static str,
    pub(super) columns: &'static [&'static str],
    pub(super) unique: bool,
    /// Which rows it holds, in SQL; empty: all.
    pub(super) rows: &'static str,
    /// Its columns on MySQL if it holds some rows only; none: that index isn't made there, since the npm stack has the like.
    pub(super) mysql: Option<&'static [&'static str]>,
}

impl Wanted {
    /// One over all rows.
    pub(super) const fn all(
        name: &'static str,
        table: &'static str,
        columns: &'static [&'static str],
    ) -> Self {
        Self { name, table, columns, unique: false, rows: "", mysql: Some(columns) }
    }

    pub(super) const fn unique(self) -> Self {
        Self { unique: true, ..self }
    }

    /// One over some rows; on MySQL over all, by these columns.
    pub(super) const fn only(self, rows: &'static str, mysql: &'static [&'static str]) -> Self {
        Self { rows, mysql: Some(mysql), ..self }
    }

    /// Not on MySQL: an index that the npm stack's tables come with serves there.
    pub(super) const fn not_on_mysql(self) -> Self {
        Self { mysql: None, ..self }
    }

    /// Makes it, if it isn't there.
    pub(super) async fn make(&self, manager: &SchemaManager<'_>) -> Result<(), DbErr> {
        let engine = Engine::from(manager.get_database_backend());
        let columns = match (engine, self.mysql) {
            (Engine::MySql, None) => return Ok(()),
            (Engine::MySql, Some(columns)) => columns,
            _ => self.columns,
        };
        if engine == Engine::MySql && manager.has_index(self.table, self.name).await? {
            return Ok(());
        }
        let unique = if self.unique { "UNIQUE " } else { "" };
        let if_new = if engine == Engine::MySql { "" } else { "IF NOT EXISTS " };
        let rows = match engine {
            Engine::MySql => String::new(),
            _ if self.rows.is_empty() => String::new(),
            _ => format!(" WHERE {}", self.rows),
        };
        let (name, table, columns) = (self.name, self.table, columns.join(", "));
        let sql = format!("CREATE {unique}INDEX {if_new}{name} ON {table} ({columns}){rows}");
        manager.get_connection().execute_unprepared(&sql).await.map(drop)
    }
}
