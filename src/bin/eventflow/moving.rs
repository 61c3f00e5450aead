//! `eventflow export FILE` and `eventflow import FILE --to URL`: all that a database holds, to another one.

mod progress;

use std::{
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use clap::Args;
use eventflow::hub::{
    DatabasePlace, HubError, Offline,
    moving::{self, ExportTo, MoveError, Moved},
};

use self::progress::Shown;
use crate::{
    database::{HubFile, place},
    failure::{Failure, sentence},
    output::{Printer, Style, json, remark},
    stop::Stop,
    table::table,
};

/// Write all that a hub's database holds into a file, to move it to another database.
///
/// Stop the hub first; npm hubs and whatever else writes there too. The file is lines of JSON, readable for you alone; its
/// last line says that it is whole. Counts are printed: rows by table, events by state. What consumers hold isn't moved as
/// theirs: it is pending at the target. Keys in the file are encrypted: keep the phrase of the hub with it, the file
/// key-phrase in its data folder or the setting certificates.phrase.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow export --from ./eventflow-data eventflow.ndjson")]
pub(crate) struct Export {
    /// The file to write; `-` is standard output
    pub(crate) file: PathBuf,
    /// The database: a data folder or a URL; by default what the hub's configuration says
    #[arg(long, value_name = "FOLDER|URL", value_parser = place)]
    pub(crate) from: Option<DatabasePlace>,
    /// Go on with a file that an interrupted export has left
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) hub: HubFile,
}

/// Read what `eventflow export` has written into an empty database, of any engine.
///
/// The tables are made. An import that was interrupted goes on where it was when it is run again; until it is over no hub
/// starts on the database. At the end rows by table and events by state are counted and compared with the file's: a
/// difference is an error. Then start the hub with its data folder of before, which holds its id and its phrase, and the
/// setting store.url for the new database.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow import eventflow.ndjson --to ./new-data")]
pub(crate) struct Import {
    /// The file; `-` is standard input
    pub(crate) file: PathBuf,
    /// The database: a URL or a data folder
    #[arg(long, value_name = "URL|FOLDER", value_parser = place)]
    pub(crate) to: DatabasePlace,
    #[command(flatten)]
    pub(crate) hub: HubFile,
}

/// Exports; `folder` is the hub's data folder if no other database is named.
pub(crate) async fn export(
    arguments: Export,
    folder: &Path,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Export { file, from, resume, hub } = arguments;
    let config = hub.load(folder)?;
    let from = from.unwrap_or_else(|| DatabasePlace::of(&config));
    let is_stream = file == Path::new("-");
    let source = Offline::existing(&config, &from).await?;
    let mut shown = Shown::new(printer.is_quiet());
    let told = |progress| {
        shown.show(progress);
        !stop.is_requested()
    };
    let mut out = io::stdout();
    let to = match (is_stream, resume) {
        (true, _) => ExportTo::Stream(&mut out),
        (false, true) => ExportTo::Resumed(&file),
        (false, false) => ExportTo::New(&file),
    };
    let done = moving::export(&source, to, told).await;
    source.close().await;
    shown.end();
    let moved = done?;
    if is_stream {
        // Its lines stand there already.
        remark(&format!("{} rows exported", moved.rows));
    } else {
        tell(&moved, &mut printer)?;
    }
    if has_certificates(&moved) {
        remark(&format!("keys of certificates are in it, encrypted: {}", phrase_of(&from)));
    }
    Ok(())
}

/// Imports.
pub(crate) async fn import(
    arguments: Import,
    folder: &Path,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Import { file, to, hub } = arguments;
    let config = hub.load(folder)?;
    let target = Offline::made(&config, &to).await?;
    let mut shown = Shown::new(printer.is_quiet());
    let told = |progress| {
        shown.show(progress);
        !stop.is_requested()
    };
    let name = file.display().to_string();
    let done = if file == Path::new("-") {
        moving::import(&target, io::stdin().lock(), "standard input", told).await
    } else {
        match File::open(&file) {
            Ok(from) => moving::import(&target, BufReader::with_capacity(256 << 10, from), &name, told).await,
            Err(source) => Err(MoveError::File { action: "read", file: name, source }),
        }
    };
    target.close().await;
    shown.end();
    let moved = done?;
    tell(&moved, &mut printer)?;
    for hint in hints(&moved, &to) {
        remark(&hint);
    }
    Ok(())
}

/// Prints what was moved: rows by table, and states.
fn tell(moved: &Moved, printer: &mut Printer) -> Result<(), Failure> {
    match printer.style() {
        Style::Json => printer.line(&json(moved))?,
        Style::People { .. } => {
            let row = |(name, count): (&String, &u64)| [name.clone(), count.to_string()];
            let tables =
                moved.tables.iter().filter(|(_, rows)| *rows > 0).map(|(name, rows)| row((name, rows)));
            for line in table(["table", "rows"], tables.collect()) {
                printer.line(&line)?;
            }
            printer.line("")?;
            for line in table(["state", "events"], moved.states.iter().map(row).collect()) {
                printer.line(&line)?;
            }
        }
    }
    Ok(printer.flush()?)
}

fn has_certificates(moved: &Moved) -> bool {
    moved.tables.iter().any(|(name, rows)| name == "certificate" && *rows > 0)
}

fn phrase_of(place: &DatabasePlace) -> String {
    match place {
        DatabasePlace::Folder(folder) => format!(
            "the hub at the target needs the phrase too: {}, unless `certificates.phrase` is set",
            folder.join("key-phrase").display()
        ),
        DatabasePlace::Server(_) => {
            "the hubs at the target need the phrase too: `certificates.phrase`, or the file \
                                     key-phrase of each one's data folder"
                .to_owned()
        }
    }
}

/// What is to be done before a hub starts there.
fn hints(moved: &Moved, to: &DatabasePlace) -> Vec<String> {
    let mut hints = Vec::new();
    match to {
        DatabasePlace::Folder(folder) => {
            if !folder.join("key-phrase").exists() && has_certificates(moved) {
                hints.push(format!(
                    "put the file key-phrase of the hub's former data folder into {}, unless `certificates.phrase` is set: \
                     without it no hub can read its keys there",
                    folder.display()
                ));
            }
            if moved.hubs.len() > 1 {
                hints.push(format!(
                    "{} hubs served the database, and an embedded one has a single hub: what the others were to hand out \
                     yet stays with their ids ({})",
                    moved.hubs.len(),
                    moved.hubs.join(", ")
                ));
            }
        }
        DatabasePlace::Server(url) => hints.push(format!(
            "start each hub with its data folder of before, which holds its id and its phrase, and with `store.url` for {url}"
        )),
    }
    hints
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        Self::new(error.code(), sentence(&error))
    }
}

impl From<MoveError> for Failure {
    fn from(error: MoveError) -> Self {
        match error {
            MoveError::Stopped { .. } => {
                remark(&error.to_string());
                Self::Silent { exit: 130 }
            }
            error => Self::new(error.code(), sentence(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_done_before_a_hub_starts_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let moved = Moved {
            tables: vec![("certificate".to_owned(), 3), ("event".to_owned(), 0)],
            states: Default::default(),
            rows: 3,
            left_out: Vec::new(),
            hubs: vec!["A.HUB".to_owned(), "B.HUB".to_owned()],
        };
        let to = DatabasePlace::Folder(folder.path().to_owned());
        let told = hints(&moved, &to).join("\n");
        assert!(told.contains("key-phrase") && told.contains("A.HUB, B.HUB"), "{told}");
        std::fs::write(folder.path().join("key-phrase"), "x").unwrap();
        let one = Moved { hubs: vec!["A.HUB".to_owned()], ..moved };
        assert_eq!(hints(&one, &to), Vec::<String>::new());
        let to = place("postgres://u:secret@db/x").unwrap();
        let told = hints(&one, &to).join("\n");
        assert!(told.contains("store.url") && !told.contains("secret"), "{told}");
    }
}
