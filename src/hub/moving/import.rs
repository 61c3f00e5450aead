//! Out of a file into a database.

use std::io::{self, BufRead};

use super::{
    MoveError, Moved, Progress,
    lines::{Lines, Sum},
};
use crate::{
    hub::Offline,
    store::{RowRefused, Store, TRANSFER_FORMAT, TransferEnd, TransferHead, TransferLayout, TransferRow},
};

/// How to go on with what was stopped.
const AGAIN: &str = "run it again, and it goes on where it was";
/// Rows of one transaction, and their bytes; one row always fits.
const ROWS: usize = 2_000;
const BYTES: usize = 4 << 20;

/// Reads an export into a database that holds nothing, or goes on with that. The program waits while it reads: it has a
/// thread to itself. After each transaction `told` is told; if it says false, that ends it. At the end both are counted.
///
/// # Errors
/// [`MoveError`]; until it was done without one, no hub starts on the database.
pub async fn import(
    target: &Offline,
    from: impl BufRead,
    file: &str,
    mut told: impl FnMut(Progress) -> bool,
) -> Result<Moved, MoveError> {
    let mut lines = Lines::new(from);
    let head = head(&mut lines, file)?;
    let layout =
        TransferLayout::of(&head).map_err(|why| MoveError::Version { program: head.program.clone(), why })?;
    let store = &target.store;
    let before = store.import_begin(&head).await?;
    let mut batch = Batch { store, layout: &layout, head: &head, rows: Vec::new(), bytes: 0, upto: before };
    let mut sum = Sum::default();
    sum.add(lines.last());
    let all = head.rows();
    let mut counts = vec![0_u64; head.tables.len()];
    let mut rows = 0_u64;
    let end = loop {
        let line = lines.next().map_err(failed(file))?;
        let Some(line) = line else {
            batch.write().await?;
            return Err(MoveError::CutOff { line: lines.count });
        };
        if line.starts_with(b"{") {
            break end(lines.last(), lines.count)?;
        }
        let row = match layout.parse(line) {
            Ok(row) => row,
            Err(why) => {
                let (line, whole) = (lines.count, lines.whole);
                batch.write().await?;
                // What follows the last line's beginning may be missing.
                return Err(if whole {
                    MoveError::Line { line, why }
                } else {
                    MoveError::CutOff { line: line - 1 }
                });
            }
        };
        sum.add(lines.last());
        rows += 1;
        if let Some(count) = counts.get_mut(row.table()) {
            *count += 1;
        }
        if rows > before {
            batch.push(row, rows);
        }
        if batch.is_full() || (rows <= before && rows.is_multiple_of(100_000)) {
            batch.write().await?;
            if !told(Progress { rows, all, before: before.min(rows) }) {
                return Err(MoveError::Stopped { rows, how: AGAIN });
            }
        }
    };
    batch.write().await?;
    if end.rows != rows || end.sha256 != sum.text() {
        let what = if end.rows == rows {
            "its sum differs from that in its last line".to_owned()
        } else {
            format!("its last line says {} rows, and it has {rows}", end.rows)
        };
        return Err(MoveError::Differs { what });
    }
    if lines.next().map_err(failed(file))?.is_some() {
        return Err(MoveError::Line { line: lines.count, why: "it stands behind the last line".to_owned() });
    }
    told(Progress { rows, all, before });
    let moved = compare(store, &layout, head, &counts).await?;
    Ok(moved)
}

/// Reads the first line.
fn head<R: BufRead>(lines: &mut Lines<R>, file: &str) -> Result<TransferHead, MoveError> {
    let no = |why: String| MoveError::NoExport { why };
    let line = lines.next().map_err(failed(file))?.ok_or_else(|| no("the file is empty".to_owned()))?;
    let told: serde_json::Value =
        serde_json::from_slice(line).map_err(|error| no(format!("it is no JSON: {error}")))?;
    let format = told.get("eventflow-export").and_then(serde_json::Value::as_u64);
    let format = format.ok_or_else(|| no("it has no number `eventflow-export`".to_owned()))?;
    if format != u64::from(TRANSFER_FORMAT) {
        let program = told.get("program").and_then(serde_json::Value::as_str).unwrap_or("unknown");
        return Err(MoveError::format(program, format));
    }
    serde_json::from_value(told).map_err(|error| no(error.to_string()))
}

/// Reads the last line.
fn end(line: &[u8], number: u64) -> Result<TransferEnd, MoveError> {
    let end: Result<TransferEnd, _> = serde_json::from_slice(line);
    end.map_err(|error| MoveError::Line { line: number, why: format!("it is no last line: {error}") })
}

/// Rows that are written together.
struct Batch<'a> {
    store: &'a Store,
    layout: &'a TransferLayout,
    head: &'a TransferHead,
    rows: Vec<TransferRow>,
    bytes: usize,
    /// The number of the last of them.
    upto: u64,
}

impl Batch<'_> {
    fn push(&mut self, row: TransferRow, number: u64) {
        self.bytes += row.bytes();
        self.upto = number;
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= ROWS || self.bytes >= BYTES
    }

    async fn write(&mut self) -> Result<(), MoveError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        let count = rows.len() as u64;
        let written = self.store.import_rows(self.layout, self.head, rows, self.upto).await;
        written.map_err(|refused| match refused {
            // The first row stands in line 2.
            RowRefused { at: Some(at), error } if !error.is_retryable() => {
                MoveError::Line { line: self.upto - count + at as u64 + 2, why: error.to_string() }
            }
            RowRefused { error, .. } => error.into(),
        })
    }
}

/// Counts what is in, compares it with what the file says, and ends the import if that is the same.
async fn compare(
    store: &Store,
    layout: &TransferLayout,
    head: TransferHead,
    counts: &[u64],
) -> Result<Moved, MoveError> {
    let (found, states) = store.import_tally(layout).await?;
    let mut differs = Vec::new();
    let mut left_out = Vec::new();
    for (at, table) in head.tables.iter().enumerate() {
        let (read, found) = (counts.get(at).copied().unwrap_or(0), found.get(at).copied().unwrap_or(0));
        if layout.is_left_out(at, store) {
            if read > 0 {
                left_out.push(table.name.clone());
            }
            continue;
        }
        // The mark of this import stands among the markers.
        let found = if table.name == "v1_marker" { found.saturating_sub(1) } else { found };
        if table.rows != read || table.rows != found {
            differs.push(format!("{}: {} exported, {read} read, {found} found", table.name, table.rows));
        }
    }
    for state in head.states.keys().chain(states.keys()).collect::<std::collections::BTreeSet<_>>() {
        let of = |states: &std::collections::BTreeMap<String, u64>| states.get(state).copied().unwrap_or(0);
        if of(&head.states) != of(&states) {
            differs.push(format!("{state}: {} exported, {} found", of(&head.states), of(&states)));
        }
    }
    if !differs.is_empty() {
        return Err(MoveError::Differs { what: differs.join("; ") });
    }
    store.import_end(&head).await?;
    let rows = counts.iter().sum();
    let hubs = head.hubs.into_iter().map(|hub| hub.id).collect();
    let tables = head.tables.into_iter().map(|table| (table.name, table.rows)).collect();
    Ok(Moved { tables, states, rows, left_out, hubs })
}

fn failed(file: &str) -> impl Fn(io::Error) -> MoveError + '_ {
    move |source| MoveError::File { action: "read", file: file.to_owned(), source }
}
