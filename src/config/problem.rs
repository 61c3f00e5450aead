//! What is wrong with a configuration, and where.

use std::fmt;

use crate::event::code;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of the file.
    File {
        /// The file, as it was named.
        path: String,
        /// 1 is the first.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag, without its hyphens.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Problem {
    /// Stable, `E_EVENTFLOW_…`.
    pub code: &'static str,
    /// Where, what, and what would be right.
    pub message: String,
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { code: code::INVALID_CONFIG, message: message.into() }
    }
}

/// All that is wrong with a configuration; shown, one line for each problem.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigProblems {
    /// What must be put right; at least one.
    pub problems: Vec<Problem>,
    /// What may surprise: often the reason of a problem, such as a variable that is misspelled.
    pub warnings: Vec<Warning>,
}

impl ConfigProblems {
    /// The code of the first problem.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.problems.first().map_or(code::INVALID_CONFIG, |problem| problem.code)
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}

/// Something that does no harm but may surprise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning(pub String);

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `; did you mean …?` with the candidate that is nearest to `word`, if one is near enough.
pub(super) fn hint(word: &str, candidates: impl IntoIterator<Item = String>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

/// The last part of a key alone (`ping` for `limits.ping`) is as good as the whole.
fn nearest(word: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    let word = bare(word);
    let limit = (word.chars().count() / 3).max(2);
    let distance = |candidate: &str| {
        let candidate = bare(candidate);
        let whole = strsim::damerau_levenshtein(&word, &candidate);
        let tails = candidate.match_indices(['.', '-', '_']).map(|(at, _)| &candidate[at + 1..]);
        tails.map(|tail| strsim::damerau_levenshtein(&word, tail) + 1).fold(whole, usize::min)
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(&candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Without what all flags, or all variables, begin with.
fn bare(word: &str) -> String {
    let word = word.trim_start_matches('-');
    word.strip_prefix("EVENTFLOW_").unwrap_or(word).to_ascii_lowercase()
}
