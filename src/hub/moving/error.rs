//! Why something can't be moved.

use std::{io, path::PathBuf};

use crate::{
    event::code,
    store::{StoreError, TRANSFER_FORMAT},
};

/// Why something can't be moved. Its text says what, which line, why and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// A database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file can't be written or read.
    #[error("can't {action} {file}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// Which.
        file: String,
        /// The system's words.
        source: io::Error,
    },
    /// The file to write is there.
    #[error(
        "{} is there already: name another file; if it is an export that was interrupted, `--resume` goes on with it",
        path.display()
    )]
    Exists {
        /// Which.
        path: PathBuf,
    },
    /// The file is no export that can be gone on with.
    #[error("the export {file} can't be gone on with: {why}")]
    NotResumable {
        /// Which.
        file: String,
        /// What is wrong, and what to do.
        why: &'static str,
    },
    /// Somebody wrote into the database that is exported.
    #[error(
        "the database changed while it was exported ({what}): stop all hubs, npm's too, and whatever else writes there, and \
         begin anew with another file"
    )]
    Changed {
        /// What differs.
        what: String,
    },
    /// The file is no export.
    #[error("line 1 is no head of an export ({why}): name a file that `eventflow export` has written")]
    NoExport {
        /// What is wrong.
        why: String,
    },
    /// The file is of a format or a schema that this version doesn't know.
    #[error(
        "the export was written by version {program}, and this one, {own}, can't read it ({why}): import it by that \
         version, or export by this one",
        own = env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// Which version wrote it.
        program: String,
        /// What this one doesn't know.
        why: String,
    },
    /// A line is damaged, or the database doesn't take it.
    #[error(
        "line {line} can't be imported: {why}; nothing from that line on is in. Export again, or mend the line, and run the \
         same import again: it goes on where it was"
    )]
    Line {
        /// Which, from 1 on.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The file ends before its end.
    #[error(
        "the file ends behind line {line} without its last line: its export isn't over (go on with it by `eventflow export \
         --resume`) or it was cut off; run the same import again with the whole file, and it goes on where it was"
    )]
    CutOff {
        /// The last whole line.
        line: u64,
    },
    /// What was imported isn't what was exported.
    #[error(
        "the file isn't what was exported: {what}; hubs won't start on this database. Export again, and import that into an \
         empty one"
    )]
    Differs {
        /// What differs.
        what: String,
    },
    /// A signal.
    #[error("stopped by a signal after {rows} rows: {how}")]
    Stopped {
        /// Rows that are over.
        rows: u64,
        /// How to go on.
        how: &'static str,
    },
}

impl MoveError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            _ => code::TRANSFER,
        }
    }

    /// Of a head whose format isn't [`TRANSFER_FORMAT`].
    pub(super) fn format(program: &str, format: u64) -> Self {
        let why = format!("its format is {format}, not {TRANSFER_FORMAT}");
        Self::Version { program: program.to_owned(), why }
    }
}
