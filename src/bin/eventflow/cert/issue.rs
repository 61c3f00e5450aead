//! `eventflow cert issue`: a bundle for a spoke.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use chrono::Local;
use clap::Args;
use eventflow::event::code;
use serde::{Deserialize, Serialize};
use serde_json::json;
use ureq::http::Method;

use crate::{
    admin::Admin,
    failure::Failure,
    output::{Printer, Style, harmless, json, time},
};

/// Issue credentials for a spoke: a bundle of certificate, private key, root and the hub's address.
///
/// The bundle is written into a file that only you may read; the hub keeps no copy of the key. Bring it to the spoke's
/// machine and name it there by --bundle or EVENTFLOW_BUNDLE. The spoke renews the certificate by itself while it is
/// connected.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow cert issue --out billing.toml --lifetime 90d")]
pub(super) struct Issue {
    /// Configured name under which the spoke's id ends; by default that of the hub's spokes, EVENTFLOW-SPOKE
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The whole id, which ends with .NAME; by default a new one
    #[arg(long)]
    id: Option<String>,
    /// How long the first certificate holds, such as 12h; by default as the hub is configured, 90d. It limits no access:
    /// a connected spoke renews to the hub's certificates.spoke_leaf; to end access use `eventflow cert revoke`
    #[arg(long, value_name = "DURATION")]
    lifetime: Option<String>,
    /// The bundle's file, which must not exist; by default ID.toml in this folder; - for standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Wish {
    name: Option<String>,
    id: Option<String>,
    lifetime: Option<String>,
}

#[derive(Deserialize)]
struct Issued {
    id: String,
    not_after: i64,
    bundle: String,
}

/// Asks, writes and prints.
pub(super) async fn run(arguments: Issue, admin: &Admin, mut printer: Printer) -> Result<(), Failure> {
    let Issue { name, id, lifetime, out } = arguments;
    let to_stdout = out.as_deref() == Some(Path::new("-"));
    // Before anything is issued: credentials that can't be written are lost.
    let mut file = match &out {
        Some(path) if !to_stdout => Some(Reserved::take(path)?),
        _ => None,
    };
    let wish = Wish { name, id, lifetime };
    let issued: Issued = admin.send(Method::POST, "/certificates", Some(&wish)).await?;
    if to_stdout {
        printer.line(issued.bundle.trim_end())?;
        return Ok(printer.flush()?);
    }
    let mut reserved = match file.take() {
        Some(file) => file,
        None => Reserved::take(Path::new(&format!("{}.toml", issued.id)))?,
    };
    reserved.fill(&issued.bundle)?;
    let path = std::path::absolute(&reserved.path).unwrap_or_else(|_| reserved.path.clone());
    let Issued { id, not_after, .. } = issued;
    match printer.style() {
        Style::Json => printer.line(&json(&json!({ "id": id, "not_after": not_after, "file": path })))?,
        Style::People { .. } => {
            printer.line(&harmless(&format!("{id} holds until {}", time(not_after, &Local))))?;
            printer.line(&harmless(&format!("its bundle is {}: it holds a private key", path.display())))?;
        }
    }
    Ok(printer.flush()?)
}

/// A new file, for this user alone, which goes again if it isn't filled.
struct Reserved {
    path: PathBuf,
    file: File,
    filled: bool,
}

impl Reserved {
    fn take(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let file = options.open(path).map_err(|error| unwritten(path, &error))?;
        Ok(Self { path: path.to_owned(), file, filled: false })
    }

    fn fill(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|error| unwritten(&self.path, &error))?;
        self.filled = true;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.filled {
            // What stays is an empty file, which a next try names.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::AlreadyExists => "remove it, or name another one by --out",
        _ => "name another one by --out",
    };
    let sentence = format!("the bundle can't be written to {}: {error}: {remedy}", path.display());
    Failure::new(code::DATA_FOLDER, sentence)
}
