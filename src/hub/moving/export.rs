//! Out of a database into a file.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, BufWriter, Seek as _, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use ulid::Ulid;

use super::{
    MoveError, Moved, Progress,
    lines::{Lines, Sum},
};
use crate::{
    hub::Offline,
    store::{Store, TransferEnd, TransferHead, TransferPlace},
};

/// Written at once.
const BUFFER: usize = 256 << 10;

/// Where an export goes.
pub enum ExportTo<'a> {
    /// Into a file, which mustn't be there; readable for this user alone.
    New(&'a Path),
    /// On with a file that an interrupted export has left.
    Resumed(&'a Path),
    /// To standard output or the like. Nobody goes on with it.
    Stream(&'a mut (dyn Write + Send)),
}

/// Writes all that a database holds. The program waits while it writes: it has a thread to itself. After each page `told`
/// is told; if it says false, that ends it.
///
/// # Errors
/// [`MoveError`], without the file's last line, by which an import knows that it is whole.
pub async fn export(
    source: &Offline,
    to: ExportTo<'_>,
    told: impl FnMut(Progress) -> bool,
) -> Result<Moved, MoveError> {
    let store = &source.store;
    let head = store.transfer_head(Ulid::new().to_string()).await?;
    match to {
        ExportTo::Stream(out) => {
            let file = "standard output".to_owned();
            let begun = Begun::new(head, BufWriter::with_capacity(BUFFER, out), file, "begin anew")?;
            begun.run(store, told).await.map(|(moved, _)| moved)
        }
        ExportTo::New(path) => {
            let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            let out = out.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => MoveError::Exists { path: path.to_owned() },
                _ => failed("write", &path.display().to_string())(error),
            })?;
            let out = BufWriter::with_capacity(BUFFER, out);
            Begun::new(head, out, path.display().to_string(), RESUME)?.into_file(store, told).await
        }
        ExportTo::Resumed(path) => resumed(path, head)?.into_file(store, told).await,
    }
}

/// A file that is being written.
struct Begun<W> {
    head: TransferHead,
    out: W,
    file: String,
    sum: Sum,
    place: Option<TransferPlace>,
    /// Rows of each of the head's tables that the file has, and all of them.
    rows: Vec<u64>,
    all: u64,
    before: u64,
    /// How to go on with it.
    again: &'static str,
}

/// Of a file.
const RESUME: &str = "run it again with `--resume`, and it goes on where it was";

impl<W: Write> Begun<W> {
    fn new(head: TransferHead, out: W, file: String, again: &'static str) -> Result<Self, MoveError> {
        let rows = vec![0; head.tables.len()];
        let (place, sum) = (Some(TransferPlace::START), Sum::default());
        let mut begun = Self { head, out, file, sum, place, rows, all: 0, before: 0, again };
        let line =
            serde_json::to_vec(&begun.head).map_err(|error| failed("write", &begun.file)(error.into()))?;
        begun.put(&line)?;
        Ok(begun)
    }

    fn put(&mut self, line: &[u8]) -> Result<(), MoveError> {
        self.sum.add(line);
        self.out.write_all(line).and_then(|()| self.out.write_all(b"\n")).map_err(failed("write", &self.file))
    }

    fn count(&mut self, line: &[u8]) {
        let name = name_of(line);
        if let Some(at) = self.head.tables.iter().position(|table| table.name.as_bytes() == name) {
            self.rows[at] += 1;
        }
        self.all += 1;
    }

    /// Writes what is missing, and the last line once it is all.
    async fn run(
        mut self,
        store: &Store,
        mut told: impl FnMut(Progress) -> bool,
    ) -> Result<(Moved, W), MoveError> {
        let all = self.head.rows();
        while let Some(place) = self.place.take() {
            let page = store.transfer_page(&place).await?;
            for line in &page.lines {
                self.count(line);
                self.put(line)?;
            }
            self.place = page.next;
            if !told(Progress { rows: self.all, all, before: self.before }) {
                self.out.flush().map_err(failed("write", &self.file))?;
                return Err(MoveError::Stopped { rows: self.all, how: self.again });
            }
        }
        self.unchanged(store).await?;
        let end = TransferEnd { end: true, rows: self.all, sha256: self.sum.text() };
        let line = serde_json::to_vec(&end).map_err(|error| failed("write", &self.file)(error.into()))?;
        self.put(&line)?;
        self.out.flush().map_err(failed("write", &self.file))?;
        let hubs = self.head.hubs.iter().map(|hub| hub.id.clone()).collect();
        let tables = self.head.tables.into_iter().map(|table| (table.name, table.rows)).collect();
        let (states, rows) = (self.head.states, self.all);
        Ok((Moved { tables, states, rows, left_out: Vec::new(), hubs }, self.out))
    }

    /// What was written must be what was counted before, and what is counted after.
    async fn unchanged(&self, store: &Store) -> Result<(), MoveError> {
        for (table, rows) in self.head.tables.iter().zip(&self.rows) {
            if table.rows != *rows {
                let what = format!("{} had {} rows, and {rows} were read", table.name, table.rows);
                return Err(MoveError::Changed { what });
            }
        }
        let now = store.transfer_head(self.head.id.clone()).await?;
        if now.is_same_source(&self.head) {
            return Ok(());
        }
        let what = if now.hubs == self.head.hubs { "rows or states" } else { "a hub has served it" };
        Err(MoveError::Changed { what: what.to_owned() })
    }
}

impl Begun<BufWriter<File>> {
    /// Runs, and has it on the disk.
    async fn into_file(self, store: &Store, told: impl FnMut(Progress) -> bool) -> Result<Moved, MoveError> {
        let file = self.file.clone();
        let (moved, out) = self.run(store, told).await?;
        out.get_ref().sync_all().map_err(failed("write", &file))?;
        Ok(moved)
    }
}

/// Reads what an interrupted export has written, and cuts off what isn't a whole line.
fn resumed(path: &Path, now: TransferHead) -> Result<Begun<BufWriter<File>>, MoveError> {
    let file = path.display().to_string();
    let no = |why| MoveError::NotResumable { file: file.clone(), why };
    let open = OpenOptions::new().read(true).write(true).open(path).map_err(failed("read", &file))?;
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, &open));
    let first = lines.next().map_err(failed("read", &file))?;
    let head: Option<TransferHead> = first.and_then(|line| serde_json::from_slice(line).ok());
    let head = head.filter(|_| lines.whole).ok_or_else(|| {
        no("its first line is no head of an export: remove it, and export without `--resume`")
    })?;
    if !now.is_same_source(&head) {
        return Err(no("the database has changed since: remove the file, and export without `--resume`"));
    }
    let rows = vec![0; head.tables.len()];
    let mut begun = Begun {
        head,
        out: BufWriter::with_capacity(BUFFER, open.try_clone().map_err(failed("write", &file))?),
        file: file.clone(),
        sum: Sum::default(),
        place: Some(TransferPlace::START),
        rows,
        all: 0,
        before: 0,
        again: RESUME,
    };
    begun.sum.add(lines.last());
    let mut kept = lines.bytes;
    let mut last = Vec::new();
    while let Some(line) = lines.next().map_err(failed("read", &file))? {
        if line.starts_with(b"{") {
            return Err(no("it is whole already"));
        }
        if !lines.whole {
            break;
        }
        last.clear();
        last.extend_from_slice(lines.last());
        kept = lines.bytes;
        begun.sum.add(&last);
        begun.count(&last);
    }
    if begun.all > 0 {
        let place = TransferPlace::after(&last);
        let damaged = "its last whole line is damaged: remove the file, and export without `--resume`";
        begun.place = Some(place.ok_or_else(|| no(damaged))?);
    }
    begun.before = begun.all;
    open.set_len(kept).map_err(failed("write", &file))?;
    begun.out.seek(SeekFrom::Start(kept)).map_err(failed("write", &file))?;
    Ok(begun)
}

/// `"name"` of the table with which a line begins, without its quotes.
fn name_of(line: &[u8]) -> &[u8] {
    let name = line.strip_prefix(b"[\"").unwrap_or_default();
    &name[..memchr::memchr(b'"', name).unwrap_or(0)]
}

fn failed<'a>(action: &'static str, file: &'a str) -> impl Fn(io::Error) -> MoveError + 'a {
    move |source| MoveError::File { action, file: file.to_owned(), source }
}
