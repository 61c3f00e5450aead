//! Out of a database: page by page, by the keys of the tables.

use sea_orm::{ConnectionTrait, DbErr, QueryResult, Value};

use super::{
    super::{
        Store, StoreError,
        engine::{Ask, Engine, number, size},
        marker, migration,
        sql::{marks, refused},
        time,
    },
    TRANSFER_FORMAT, TransferHead, TransferHub, TransferTable,
    cell::Cell,
    table::{Column, TABLES, Table},
    tally,
};

/// Rows of one page, and the bytes of their large column: one row always fits.
const ROWS: usize = 1_000;
const BYTES: usize = 4 * 1024 * 1024;

/// Where a page begins.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferPlace {
    /// Which table.
    table: usize,
    /// Behind the row of this key; empty: at the table's begin.
    after: Vec<Cell>,
}

/// Rows, each as a line without its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TransferPage {
    /// The lines.
    pub lines: Vec<Vec<u8>>,
    /// Where to go on; none: that was all.
    pub next: Option<TransferPlace>,
}

impl TransferPlace {
    /// The begin of the first table.
    pub const START: Self = Self { table: 0, after: Vec::new() };

    /// Behind the row of this line, as [`Store::transfer_page`] has written it; none: it has written no such line.
    #[must_use]
    pub fn after(line: &[u8]) -> Option<Self> {
        let mut values: Vec<serde_json::Value> = serde_json::from_slice(line).ok()?;
        if values.is_empty() {
            return None;
        }
        let table = Table::place(values.remove(0).as_str()?)?;
        let columns = TABLES.get(table)?.columns;
        if values.len() != columns.len() {
            return None;
        }
        let key = columns.iter().zip(values).take(TABLES.get(table)?.key);
        let after: Result<_, _> = key.map(|(column, value)| column.parse(value)).collect();
        Some(Self { table, after: after.ok()? })
    }
}

impl Store {
    /// What there is to move, as the first line of a file says it. `id` names the export.
    ///
    /// # Errors
    /// [`StoreError::ImportUnfinished`] if this database is the target of an import that isn't over, or whatever the database
    /// says.
    pub async fn transfer_head(&self, id: String) -> Result<TransferHead, StoreError> {
        if marker::import(&self.readers).await?.is_some() {
            return Err(StoreError::ImportUnfinished);
        }
        let read = async {
            let db = &self.readers;
            let mut tables = Vec::new();
            for table in TABLES.iter().filter(|table| table.is_on(db.engine())) {
                tables.push(TransferTable {
                    name: table.name.to_owned(),
                    columns: table.columns.iter().map(|column| column.name.to_owned()).collect(),
                    rows: tally::rows(db, table).await?,
                });
            }
            Ok(TransferHead {
                format: TRANSFER_FORMAT,
                id,
                program: env!("CARGO_PKG_VERSION").to_owned(),
                engine: self.engine_name().to_owned(),
                schema: migration::latest(),
                made: time::now(),
                tables,
                states: tally::states(db).await?,
                hubs: hubs(db).await?,
            })
        };
        read.await.map_err(refused("count what it holds"))
    }

    /// Some rows from a place on; a page ends with its table at the latest.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn transfer_page(&self, place: &TransferPlace) -> Result<TransferPage, StoreError> {
        let Some(table) = TABLES.get(place.table) else { return Ok(TransferPage::default()) };
        let engine = self.readers.engine();
        let following = TransferPlace { table: place.table + 1, after: Vec::new() };
        if !table.is_on(engine) {
            return Ok(TransferPage { lines: Vec::new(), next: Some(following) });
        }
        let read = async {
            let limit = match table.large {
                Some(large) => fitting(&self.readers, table, large, &place.after).await?,
                None => ROWS,
            };
            let columns: Vec<String> = table.columns.iter().map(|column| column.read_as(engine)).collect();
            let (tail, values) = tail(table, &place.after, limit, engine);
            let rows = self.readers.rows(format!("SELECT {} {tail}", columns.join(", ")), values).await?;
            let mut lines = Vec::with_capacity(rows.len());
            let mut last = Vec::new();
            for row in &rows {
                let mut cells = cells(row, table.columns).map_err(|error| named(table, row, error))?;
                lines.push(line(table.name, &cells)?);
                cells.truncate(table.key);
                last = cells;
            }
            // What is shorter than was asked for is the end of its table.
            let next = if rows.len() < limit || rows.is_empty() {
                following
            } else {
                TransferPlace { table: place.table, after: last }
            };
            let is_more = next.table < TABLES.len();
            Ok(TransferPage { lines, next: is_more.then_some(next) })
        };
        read.await.map_err(refused("read a page of a table"))
    }

    /// The hubs whose leases live: that serve this database, or may have a moment ago, and for how many milliseconds their
    /// leases are to live. On SQLite the lock of the data folder says it.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn leases(&self) -> Result<Vec<(String, i64)>, StoreError> {
        if !self.is_on_server() {
            return Ok(Vec::new());
        }
        let sql =
            "SELECT hub_id, until_ms - @now_ms FROM v1_hub_lease WHERE until_ms > @now_ms ORDER BY hub_id";
        let read = async {
            let rows = self.readers.rows(sql, Vec::new()).await?;
            rows.iter()
                .map(|row| Ok((row.try_get_by_index(0)?, number(row, 1)?)))
                .collect::<Result<_, DbErr>>()
        };
        read.await.map_err(refused("list the hubs that serve it"))
    }
}

async fn hubs(db: &impl ConnectionTrait) -> Result<Vec<TransferHub>, DbErr> {
    let sql = "SELECT e.hub_id, e.epoch, coalesce(s.seq, 0) FROM v1_hub_epoch e \
               LEFT JOIN v1_hub_seq s ON s.hub_id = e.hub_id ORDER BY e.hub_id";
    let rows = db.rows(sql, Vec::new()).await?;
    let hub = |row: &QueryResult| {
        Ok(TransferHub { id: row.try_get_by_index(0)?, epoch: number(row, 1)?, seq: number(row, 2)? })
    };
    rows.iter().map(hub).collect()
}

/// How many of the next rows fit into a page by their large column, at least one.
async fn fitting(
    db: &impl ConnectionTrait,
    table: &Table,
    large: &str,
    after: &[Cell],
) -> Result<usize, DbErr> {
    let (tail, values) = tail(table, after, ROWS, db.engine());
    let sizes = db.rows(format!("SELECT @bytes(t.{large}) {tail}"), values).await?;
    let mut bytes = 0_usize;
    for (fit, row) in sizes.iter().enumerate() {
        bytes = bytes.saturating_add(size(row, 0)?);
        if bytes > BYTES && fit > 0 {
            return Ok(fit);
        }
    }
    Ok(ROWS)
}

/// From which rows on, in the order of the key.
fn tail(table: &Table, after: &[Cell], limit: usize, engine: Engine) -> (String, Vec<Value>) {
    let key = &table.columns[..table.key.min(table.columns.len())];
    let names: Vec<String> = key.iter().map(|column| format!("t.{}", column.quoted(engine))).collect();
    let names = names.join(", ");
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    if !table.only.is_empty() {
        conditions.push(table.only.to_owned());
    }
    if let (Some(first), Some(cell)) = (key.first(), after.first()) {
        // It says no more than the next one, but MySQL finds no range in a comparison of rows.
        conditions.push(format!("t.{} >= ?", first.quoted(engine)));
        values.push(first.value(cell.clone()));
        conditions.push(format!("({names}) > ({})", marks(key.len())));
        values.extend(key.iter().zip(after).map(|(column, cell)| column.value(cell.clone())));
    }
    let mut tail = format!("FROM {} t", table.of);
    if !conditions.is_empty() {
        tail.push_str(" WHERE ");
        tail.push_str(&conditions.join(" AND "));
    }
    tail.push_str(&format!(" ORDER BY {names} LIMIT ?"));
    values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
    (tail, values)
}

fn cells(row: &QueryResult, columns: &[Column]) -> Result<Vec<Cell>, DbErr> {
    columns.iter().enumerate().map(|(index, column)| column.take(row, index)).collect()
}

/// Says of which row that is.
fn named(table: &Table, row: &QueryResult, error: DbErr) -> DbErr {
    let key: Vec<String> = table.columns[..table.key]
        .iter()
        .enumerate()
        .filter_map(|(index, column)| column.take(row, index).ok())
        .map(|cell| format!("{cell:?}"))
        .collect();
    DbErr::Custom(format!("the row {} of the table {}: {error}", key.join(", "), table.of))
}

fn line(table: &str, cells: &[Cell]) -> Result<Vec<u8>, DbErr> {
    // As one array: the name, then the cells.
    struct Line<'a>(&'a str, &'a [Cell]);
    impl serde::Serialize for Line<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;
            let mut line = serializer.serialize_seq(Some(self.1.len() + 1))?;
            line.serialize_element(self.0)?;
            for cell in self.1 {
                line.serialize_element(cell)?;
            }
            line.end()
        }
    }
    serde_json::to_vec(&Line(table, cells)).map_err(|error| DbErr::Json(error.to_string()))
}
