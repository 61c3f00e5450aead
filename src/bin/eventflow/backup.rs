//! `eventflow backup FILE`: a copy of a running hub's database.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use eventflow::event::code;
use tempfile::NamedTempFile;
use ureq::http::Method;

use crate::{
    admin::{Admin, AdminLink},
    failure::Failure,
    output::{Printer, Style, json, size},
    stop::Stop,
};

/// How often progress is shown.
const SHOWN: Duration = Duration::from_millis(100);
/// Read at once.
const PIECE: usize = 256 << 10;

/// Copy the database of a running hub into a file.
///
/// The hub goes on working. The file holds all that was committed when the copy began, checked, readable for you alone.
/// It takes its name when it is whole. Keys in it are encrypted: keep the file key-phrase of the data folder too, apart
/// from it. To restore, put both into a new folder, as eventflow.db and key-phrase, and start a hub with it.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow backup eventflow-2026-11-30.db")]
pub(crate) struct Backup {
    /// The file to write
    pub(crate) file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) link: AdminLink,
}

/// Gets the copy; `folder` is the hub's data folder.
pub(crate) async fn run(
    backup: Backup,
    folder: &Path,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Backup { link, file: path, force } = backup;
    let admin = Admin::find(&link, folder, stop)?;
    if !force && path.exists() {
        return Err(exists(&path));
    }
    let failed = |error: io::Error| cannot_write(&path, &error);
    let place = match path.parent() {
        Some(place) if !place.as_os_str().is_empty() => place,
        _ => Path::new("."),
    };
    // Mode 0600 from its first moment. Its name stays here, so that it goes with us.
    let (file, temporary) = NamedTempFile::new_in(place).map_err(failed)?.into_parts();
    let shown = path.clone();
    let is_watched = printer.style() != Style::Json && io::stderr().is_terminal();
    if is_watched {
        eprint!("eventflow: the hub makes the copy …");
    }
    let sink = move |from: &mut dyn Read, length: Option<u64>| {
        receive(from, file, length, is_watched).map_err(|error| cannot_write(&shown, &error))
    };
    let received = admin.download(Method::POST, "/backup", sink).await;
    if is_watched {
        eprintln!();
    }
    let bytes = received?;
    let kept = if force { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
    kept.map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => exists(&path),
        _ => failed(refused.error),
    })?;
    // The name itself.
    File::open(place).and_then(|place| place.sync_all()).map_err(failed)?;
    let line = match printer.style() {
        Style::Json => json(&serde_json::json!({ "file": path, "bytes": bytes })),
        Style::People { .. } => format!("{}: {}, checked", path.display(), size(bytes)),
    };
    printer.line(&line)?;
    Ok(printer.flush()?)
}

/// Writes what comes, to the disk; it must be as long as was said.
fn receive(from: &mut dyn Read, mut to: File, length: Option<u64>, is_watched: bool) -> io::Result<u64> {
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    let mut shown: Option<Instant> = None;
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            break;
        }
        to.write_all(&piece[..read])?;
        bytes += read as u64;
        if is_watched && (shown.is_none_or(|shown| shown.elapsed() >= SHOWN) || length == Some(bytes)) {
            shown = Some(Instant::now());
            let whole = length.map_or(String::new(), |length| format!(" of {}", size(length)));
            eprint!("\r\x1b[Keventflow: {}{whole}", size(bytes));
        }
    }
    if length.is_some_and(|length| length != bytes) {
        let text =
            format!("the hub's answer ended after {bytes} bytes: it stopped, or the copy can't be read");
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    to.sync_all()?;
    Ok(bytes)
}

fn exists(path: &Path) -> Failure {
    let sentence =
        format!("{} is there already: name another file, or replace it by --force", path.display());
    Failure::new(code::BACKUP, sentence)
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(code::BACKUP, format!("the backup {} can't be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_ends_early_is_no_backup() {
        let receive = |length| receive(&mut &b"half"[..], tempfile::tempfile().unwrap(), length, false);
        assert_eq!(receive(Some(4)).unwrap(), 4);
        assert_eq!(receive(None).unwrap(), 4);
        assert_eq!(receive(Some(8)).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
