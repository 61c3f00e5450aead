//! How the program ends: one sentence on standard error, and a number that scripts can tell apart.

use std::{io, process::ExitCode};

use eventflow::event::code;

/// The exit code for an error code.
pub(crate) fn number(error: &str) -> u8 {
    match error {
        code::INVALID_CONFIG | code::INVALID_CONFIG_NAME => 2,
        code::ADDRESS | code::DB_IN_USE | code::DB_UNAVAILABLE | code::DB_FULL => 69,
        code::DATA_FOLDER => 73,
        code::VAULT | code::CERTIFICATE | code::BUNDLE => 77,
        _ => 1,
    }
}

/// Says why the hub can't go on.
pub(crate) fn failed(error: &str, sentence: &str) -> ExitCode {
    if sentence.contains(error) {
        eprintln!("eventflow-hub: {sentence}");
    } else {
        eprintln!("eventflow-hub: {sentence} ({error})");
    }
    ExitCode::from(number(error))
}

/// Says what is wrong with the command line.
pub(crate) fn usage(sentence: &str) -> ExitCode {
    eprintln!("eventflow-hub: {sentence}");
    ExitCode::from(2)
}

/// Says all that is wrong with the configuration.
pub(crate) fn configuration(sentences: &str) -> ExitCode {
    eprintln!("eventflow-hub: the configuration is not valid:");
    for sentence in sentences.lines() {
        eprintln!("  {sentence}");
    }
    ExitCode::from(2)
}

/// The sentence for a file that can't be read.
pub(crate) fn unreadable_file(path: &str, error: &io::Error) -> String {
    format!("{path}: the file can't be read: {error} ({})", code::INVALID_CONFIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_can_tell_failures_apart() {
        let rows = [
            (code::INVALID_CONFIG_NAME, 2),
            (code::ADDRESS, 69),
            (code::DB_IN_USE, 69),
            (code::DATA_FOLDER, 73),
            (code::VAULT, 77),
            (code::DB_SCHEMA_NEWER, 1),
            (code::INTERNAL, 1),
        ];
        for (error, expected) in rows {
            assert_eq!(number(error), expected, "{error}");
        }
    }
}
