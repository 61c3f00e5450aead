//! The parts of an event on the command line, as `publish`, `request` and `schedule` take them.

use std::io::{self, Read as _};

use clap::Args;
use eventflow::{
    event::{Data, EventId, Fault, code},
    spoke,
};

use crate::{failure::Failure, ndjson};

/// What an event is besides its domain and its name.
#[derive(Debug, Clone, Args)]
pub(crate) struct Fields {
    /// The process whose log the event belongs to [default: the event's own id, a process of its own]
    #[arg(long)]
    pub(crate) pid: Option<String>,
    /// The payload; `-`: standard input, @FILE: a file [default: null]
    #[arg(long, value_name = "JSON|-|@FILE")]
    pub(crate) data: Option<String>,
    /// The event's id [default: a new ULID]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The id of the event that this one answers
    #[arg(long)]
    pub(crate) rid: Option<String>,
}

impl Fields {
    /// Whether any is given.
    pub(crate) fn any(&self) -> bool {
        [&self.pid, &self.data, &self.id, &self.rid].into_iter().any(Option::is_some)
    }

    /// The event. It is checked before a link is made: what is wrong here needs no hub to say so.
    pub(crate) fn event(self, domain: &str, name: &str) -> Result<(EventId, spoke::Publish), Failure> {
        let data = self.data.as_deref().map(data).transpose()?;
        let id =
            EventId::parse(self.id.unwrap_or_else(new_id)).map_err(|error| Failure::misused(error.into()))?;
        let event = ndjson::event(domain, name, self.pid, Some(id.to_string()), self.rid, data, new_id);
        Ok((id, event.map_err(Failure::misused)?))
    }
}

pub(crate) fn new_id() -> String {
    ulid::Ulid::new().to_string()
}

/// The payload: JSON text, `-` for standard input, `@FILE` for a file.
pub(crate) fn data(given: &str) -> Result<Data, Failure> {
    let text = match (given, given.strip_prefix('@')) {
        ("-", _) => read("standard input", io::stdin())?,
        (_, Some(path)) => {
            let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
            read(path, file)?
        }
        _ => given.to_owned(),
    };
    ndjson::payload(&text).map_err(|error| {
        let mut fault = Fault::from(error);
        // On the command line a bare word looks like a text, and the shell takes one pair of quotes away.
        if text == given && given.starts_with(|first: char| first.is_alphabetic()) {
            fault.message += "; a text needs JSON's quotes within the shell's: --data '\"text\"'";
        }
        Failure::misused(fault)
    })
}

fn read(name: &str, from: impl io::Read) -> Result<String, Failure> {
    let limit = ndjson::MAX_LINE as u64;
    let mut text = String::new();
    from.take(limit + 1).read_to_string(&mut text).map_err(|error| unreadable(name, &error))?;
    if text.len() as u64 > limit {
        let sentence = format!("{name} is longer than {limit} bytes: no hub takes an event of that size");
        return Err(misused(code::EVENT_TOO_LARGE, sentence));
    }
    Ok(text)
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    misused(code::INVALID_DATA, format!("the data can't be read from {name}: {error}"))
}

fn misused(code: &str, sentence: String) -> Failure {
    Failure::misused(Fault::refused(code, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_comes_from_a_file_or_the_argument() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.json");
        std::fs::write(&path, "{\n  \"a\": 1\n}\n").unwrap();
        assert_eq!(data(&format!("@{}", path.display())).unwrap().as_str(), r#"{"a":1}"#);
        assert_eq!(data("[1]").unwrap().as_str(), "[1]");
        for wrong in ["@/nowhere", "{", "@"] {
            let Failure::Misused { code, .. } = data(wrong).unwrap_err() else { panic!("it is to be told") };
            assert_eq!(code, code::INVALID_DATA, "{wrong}");
        }
    }
}
