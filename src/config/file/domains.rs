//! `[[domain]]` in the file.

use toml::de::{DeArray, DeTable, DeValue};

use super::{File, scalar};
use crate::{
    config::{
        domain::{DOMAIN_KEYS, DomainPolicy},
        load::{DomainEntry, Gathered},
        problem::{Origin, Problem, hint},
    },
    event::Pattern,
};

/// Entries are few: a binding that is made, and a domain that is looked at, is compared with all of them.
const MOST: usize = 256;

impl File<'_> {
    /// Reads the entries, each a table.
    pub(super) fn domains(&self, entries: &DeArray<'_>, into: &mut Gathered) {
        for (place, entry) in entries.iter().enumerate() {
            let line = self.line(entry.span().start);
            match entry.get_ref() {
                _ if entry.span().start >= self.readable => {}
                _ if place >= MOST => {
                    into.problems.push(self.problem(line, format!("there are more than {MOST} [[domain]]")));
                    return;
                }
                DeValue::Table(table) => self.domain(place, line, table, into),
                _ => {
                    let sentence = "domain must be a list of tables: write [[domain]]".to_owned();
                    into.problems.push(self.problem(line, sentence));
                }
            }
        }
    }

    fn domain(&self, place: usize, line: usize, table: &DeTable<'_>, into: &mut Gathered) {
        let mut entry = DomainEntry {
            policy: DomainPolicy::new(Pattern::any()),
            origin: self.origin(line),
            keys: Vec::new(),
        };
        let mut has_pattern = false;
        for (key, value) in table.iter().filter(|(key, _)| key.span().start < self.readable) {
            let line = self.line(key.span().start);
            let key = key.get_ref().as_ref();
            has_pattern |= key == "pattern";
            if let Err(sentence) = self.key(key, value.get_ref(), line, &mut entry) {
                into.problems.push(self.problem(line, format!("domain[{place}].{key}{sentence}")));
            }
        }
        if has_pattern {
            into.domains.push(entry);
        } else {
            let sentence = format!("domain[{place}] needs a pattern, such as pattern = \"orders.>\"");
            into.problems.push(self.problem(line, sentence));
        }
    }

    /// Reads one key of an entry; the error goes on behind the key's name.
    fn key(
        &self,
        key: &str,
        value: &DeValue<'_>,
        line: usize,
        entry: &mut DomainEntry,
    ) -> Result<(), String> {
        let known = DOMAIN_KEYS.iter().find(|known| known.key == key);
        if known.is_none() && key != "pattern" {
            let keys = DOMAIN_KEYS.iter().map(|known| known.key.to_owned());
            return Err(format!(" is not a setting{}", hint(key, keys.chain(["pattern".to_owned()]))));
        }
        let text = scalar(value).ok_or(" must be one text, number, or true or false")?;
        let refused = |reason: String| format!(" = {text:?} {reason}");
        match known {
            Some(known) => {
                (known.set)(&mut entry.policy, &text).map_err(refused)?;
                entry.keys.push((known.key, self.origin(line)));
            }
            None => {
                let pattern = Pattern::parse(text.clone());
                entry.policy.pattern = pattern.map_err(|error| refused(error.reason.to_owned()))?;
            }
        }
        Ok(())
    }

    fn origin(&self, line: usize) -> Origin {
        Origin::File { path: self.path.to_owned(), line }
    }

    fn problem(&self, line: usize, sentence: String) -> Problem {
        Problem::new(format!("{}:{line}: {sentence}", self.path))
    }
}
