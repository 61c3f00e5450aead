//! The TOML file: its text becomes assignments, each with its line.

mod domains;

use std::collections::BTreeSet;

use toml::de::{DeTable, DeValue};

use super::{
    load::{Assignment, Gathered},
    problem::{Origin, Problem, hint},
    table::{self, SETTINGS},
};

/// Reads the text of the file named `path`.
pub(super) fn read(path: &str, text: &str, into: &mut Gathered) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut file = File { path, text, readable: text.len() };
    // Only the first: what follows is often false, and so are the settings from there on.
    if let Some((start, error)) = errors
        .iter()
        .map(|error| (error.span().map_or(0, |span| span.start), error))
        .min_by_key(|(start, _)| *start)
    {
        let at = file.line(start);
        into.problems.push(Problem::new(format!("{path}:{at}: not TOML: {}", error.message())));
        into.is_cut = true;
        file.readable = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    }
    file.walk("", document.get_ref(), into);
}

struct File<'a> {
    path: &'a str,
    text: &'a str,
    /// What begins or, but for sections, ends behind this offset can't be trusted.
    readable: usize,
}

impl File<'_> {
    fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|byte| **byte == b'\n').count()
    }

    fn walk(&self, prefix: &str, entries: &DeTable<'_>, into: &mut Gathered) {
        for (name, value) in entries {
            let is_table = matches!(value.get_ref(), DeValue::Table(_));
            if name.span().start >= self.readable || (!is_table && value.span().end > self.readable) {
                continue;
            }
            let line = self.line(name.span().start);
            let key = format!("{prefix}{}", name.get_ref());
            let section = format!("{key}.");
            let is_section = SETTINGS.iter().any(|setting| setting.key.starts_with(&section));
            match (value.get_ref(), table::find(&key)) {
                (DeValue::Array(entries), None) if key == "domain" => self.domains(entries, into),
                (DeValue::Table(entries), None) if is_section => self.walk(&section, entries, into),
                (_, None) => {
                    let sentence = if key == "domain" {
                        "domain is a list: write [[domain]] and the settings of each below".to_owned()
                    } else if is_section {
                        format!("{key} is a section: write [{key}] and its settings below")
                    } else if is_table {
                        format!("{key} is not a section{}", hint(&format!("[{key}]"), sections()))
                    } else {
                        let keys = SETTINGS.iter().map(|setting| setting.key.to_owned());
                        format!("{key} is not a setting{}", hint(&key, keys))
                    };
                    into.problems.push(Problem::new(format!("{}:{line}: {sentence}", self.path)));
                }
                (value, Some(setting)) => match scalar(value) {
                    Some(text) => {
                        let origin = Origin::File { path: self.path.to_owned(), line };
                        into.assignments.push(Assignment { setting, text, origin });
                    }
                    None => into.problems.push(Problem::new(format!(
                        "{}:{line}: {key} must be one text, number, or true or false",
                        self.path
                    ))),
                },
            }
        }
    }
}

/// The sections, as they are written.
fn sections() -> impl Iterator<Item = String> {
    let names: BTreeSet<_> =
        SETTINGS.iter().filter_map(|setting| Some(setting.key.split_once('.')?.0)).collect();
    names.into_iter().map(|section| format!("[{section}]"))
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        // Other radices than ten aren't read as such: the form refuses their letters.
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}
