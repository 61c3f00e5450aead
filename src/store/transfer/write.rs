//! Into a database: many rows in one transaction, with how far that is in the file.

use sea_orm::{DbErr, Value};

use super::{
    super::{
        Store, StoreError,
        engine::{Ask, Engine},
        marker,
        sql::{fill, refused, rows_of, update_from},
        writer::Db,
    },
    TRANSFER_FORMAT, TransferHead,
    cell::Cell,
    table::{COUNTED, Column, How, TABLES, Table},
    tally,
};

/// The most rows of one statement.
const ROWS: usize = 256;

/// How the rows of a file stand in its lines, by what its first line says.
#[derive(Debug)]
pub struct TransferLayout {
    tables: Vec<Laid>,
}

#[derive(Debug)]
struct Laid {
    table: &'static Table,
    columns: Vec<&'static Column>,
}

/// A row of a file.
#[derive(Debug)]
pub struct TransferRow {
    /// Its place among the file's tables.
    laid: usize,
    cells: Vec<Cell>,
}

impl TransferRow {
    /// Roughly what it takes up.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.cells.iter().map(Cell::bytes).sum()
    }

    /// Its place among the tables of the file's first line.
    #[must_use]
    pub fn table(&self) -> usize {
        self.laid
    }
}

/// A row that the database doesn't take.
#[derive(Debug)]
pub struct RowRefused {
    /// Which of those that were given; none: it isn't the fault of one of them.
    pub at: Option<usize>,
    /// What the database says.
    pub error: StoreError,
}

impl TransferLayout {
    /// Of a file; what a newer version writes beyond what this one knows is named by the error.
    ///
    /// # Errors
    /// A sentence about what this version doesn't know.
    pub fn of(head: &TransferHead) -> Result<Self, String> {
        if head.format != TRANSFER_FORMAT {
            return Err(format!("its format is {}, and this version reads {TRANSFER_FORMAT}", head.format));
        }
        let mut tables = Vec::with_capacity(head.tables.len());
        for told in &head.tables {
            let table = Table::place(&told.name).and_then(|place| TABLES.get(place));
            let table = table.ok_or_else(|| format!("it has a table {:?}", told.name))?;
            let column = |name: &String| {
                let found = table.columns.iter().find(|column| column.name == name.as_str());
                found.ok_or_else(|| format!("its table {} has a column {name:?}", table.name))
            };
            let columns = told.columns.iter().map(column).collect::<Result<_, _>>()?;
            tables.push(Laid { table, columns });
        }
        Ok(Self { tables })
    }

    /// Reads a line of a row.
    ///
    /// # Errors
    /// A sentence about what is wrong in it.
    pub fn parse(&self, line: &[u8]) -> Result<TransferRow, String> {
        let values: Vec<serde_json::Value> =
            serde_json::from_slice(line).map_err(|error| format!("it is no JSON array: {error}"))?;
        let mut values = values.into_iter();
        let name = values.next();
        let name =
            name.as_ref().and_then(serde_json::Value::as_str).ok_or("it begins with no table's name")?;
        let laid = self.tables.iter().position(|laid| laid.table.name == name);
        let laid = laid.ok_or_else(|| format!("the file's first line names no table {name:?}"))?;
        let columns = &self.tables[laid].columns;
        if values.len() != columns.len() {
            let (found, wanted) = (values.len(), columns.len());
            return Err(format!("it has {found} values, and a row of {name} has {wanted}"));
        }
        let cells = columns.iter().zip(values).map(|(column, value)| {
            column.parse(value).map_err(|wanted| format!("its {} is not {wanted}", column.name))
        });
        Ok(TransferRow { laid, cells: cells.collect::<Result<_, _>>()? })
    }

    /// Whether a table of the file's first line is left out in this database.
    #[must_use]
    pub fn is_left_out(&self, table: usize, store: &Store) -> bool {
        let engine = store.writer.engine();
        self.tables.get(table).is_some_and(|laid| !laid.table.is_on(engine))
    }
}

impl Store {
    /// Begins the import of this export, or goes on with it: how many lines of rows are in already.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`] if there is something that this import hasn't written, or whatever the database says.
    pub async fn import_begin(&self, head: &TransferHead) -> Result<u64, StoreError> {
        match marker::import(&self.readers).await? {
            Some((id, rows)) if id == head.id => return Ok(rows),
            Some(_) => return Err(StoreError::ImportUnfinished),
            None => {}
        }
        let refused = refused("begin an import");
        if let Some((table, rows)) = tally::first_used(&self.readers).await.map_err(&refused)? {
            return Err(StoreError::NotEmpty { table: table.to_owned(), rows });
        }
        let transaction = self.writer.begin_unfenced().await.map_err(&refused)?;
        let begun = marker::begin_import(&transaction.db(), &head.id).await;
        transaction.end(begun).await.map(|()| 0).map_err(refused)
    }

    /// Writes rows in their order, all or none; from then on `rows` lines of rows are in.
    ///
    /// # Errors
    /// The row that the database doesn't take, or whatever it says.
    pub async fn import_rows(
        &self,
        layout: &TransferLayout,
        head: &TransferHead,
        batch: Vec<TransferRow>,
        rows: u64,
    ) -> Result<(), RowRefused> {
        let whole = |error| RowRefused { at: None, error: refused("take rows")(error) };
        let transaction = self.writer.begin_unfenced().await.map_err(whole)?;
        let db = transaction.db();
        let written = async {
            insert_all(&db, layout, &batch).await?;
            marker::import_reached(&db, &head.id, rows).await
        };
        let written = written.await;
        let Err(error) = transaction.end(written).await else { return Ok(()) };
        Err(self.culprit(layout, &batch, error).await)
    }

    /// Which row it was: each alone, in a transaction that is taken back.
    async fn culprit(&self, layout: &TransferLayout, batch: &[TransferRow], error: DbErr) -> RowRefused {
        let whole = |error| RowRefused { at: None, error: refused("take rows")(error) };
        let Ok(transaction) = self.writer.begin_unfenced().await else { return whole(error) };
        let db = transaction.db();
        let mut found = None;
        for (at, row) in batch.iter().enumerate() {
            if let Err(error) = insert_all(&db, layout, std::slice::from_ref(row)).await {
                found = Some(RowRefused { at: Some(at), error: refused("take a row")(error) });
                break;
            }
        }
        transaction.roll_back().await;
        found.unwrap_or_else(|| whole(error))
    }

    /// What is in, counted as a file's first line counts it: rows by the file's tables, and states.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn import_tally(
        &self,
        layout: &TransferLayout,
    ) -> Result<(Vec<u64>, std::collections::BTreeMap<String, u64>), StoreError> {
        let engine = self.writer.engine();
        let read = async {
            let mut rows = Vec::with_capacity(layout.tables.len());
            for laid in &layout.tables {
                let count =
                    if laid.table.is_on(engine) { tally::rows(&self.readers, laid.table).await? } else { 0 };
                rows.push(count);
            }
            Ok((rows, tally::states(&self.readers).await?))
        };
        read.await.map_err(refused("count what it holds"))
    }

    /// The import is over: hubs may start.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn import_end(&self, head: &TransferHead) -> Result<(), StoreError> {
        let refused = refused("end an import");
        let transaction = self.writer.begin_unfenced().await.map_err(&refused)?;
        let db = transaction.db();
        let ended = async {
            if db.engine() == Engine::Postgres {
                for table in COUNTED {
                    let sql = format!(
                        "SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
                    );
                    db.row(sql, Vec::new()).await?;
                }
            }
            if !db.engine().is_sqlite() {
                // Whatever hub comes first knows by it that the others don't run.
                let sql = "INSERT INTO v1_hub_lease (hub_id, epoch, host, folder, until_ms) \
                           SELECT e.hub_id, e.epoch, '', '', 0 FROM v1_hub_epoch e \
                           WHERE NOT EXISTS (SELECT 1 FROM v1_hub_lease l WHERE l.hub_id = e.hub_id)";
                db.run(sql, Vec::new()).await?;
            }
            marker::end_import(&db, &head.id).await
        };
        let ended = ended.await;
        transaction.end(ended).await.map_err(refused)
    }

    /// Whether this database is the target of an import that isn't over.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn is_import_unfinished(&self) -> Result<bool, StoreError> {
        Ok(marker::import(&self.readers).await?.is_some())
    }
}

/// Rows of one table after the other.
async fn insert_all(db: &Db<'_>, layout: &TransferLayout, batch: &[TransferRow]) -> Result<(), DbErr> {
    for run in batch.chunk_by(|one, next| one.laid == next.laid) {
        let Some(laid) = run.first().and_then(|row| layout.tables.get(row.laid)) else { continue };
        if !laid.table.is_on(db.engine()) {
            continue;
        }
        for piece in run.chunks(ROWS) {
            match laid.table.how {
                How::Insert => insert(db, laid, piece).await?,
                How::Set => set(db, laid, piece).await?,
            }
        }
    }
    Ok(())
}

async fn insert(db: &Db<'_>, laid: &Laid, rows: &[TransferRow]) -> Result<(), DbErr> {
    let engine = db.engine();
    let names: Vec<String> = laid.columns.iter().map(|column| column.quoted(engine)).collect();
    let marks: Vec<&str> = laid.columns.iter().map(|column| column.written_as(engine)).collect();
    let row = format!("({})", marks.join(","));
    let all = vec![row.as_str(); rows.len()].join(",");
    let sql = format!("INSERT INTO {} ({}) VALUES {all}", laid.table.of, names.join(", "));
    db.run(sql, values(laid, rows)).await.map(drop)
}

async fn set(db: &Db<'_>, laid: &Laid, rows: &[TransferRow]) -> Result<(), DbErr> {
    let [key, column] = laid.columns.as_slice() else {
        return Err(DbErr::Custom(format!("a row of {} has two values", laid.table.name)));
    };
    let mut values = values(laid, rows);
    fill(&mut values, rows.len(), 2);
    let (sql, values) = update_from(
        db.engine(),
        laid.table.of,
        (format!("{} = @id(n.column2)", column.name), Vec::new()),
        (format!("{} n", rows_of(rows.len(), 2)), values),
        &format!("{} = @id(n.column1)", key.name),
    );
    let written = db.run(sql, values).await?;
    if written == rows.len() as u64 {
        return Ok(());
    }
    Err(DbErr::Custom(format!("it names a row of {} that isn't there", laid.table.of)))
}

fn values(laid: &Laid, rows: &[TransferRow]) -> Vec<Value> {
    let values = rows.iter().flat_map(|row| laid.columns.iter().zip(row.cells.iter().cloned()));
    values.map(|(column, cell)| column.value(cell)).collect()
}
