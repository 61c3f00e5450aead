//! What became of a stream so far: a bar for whoever watches, counts at the end.

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use eventflow::{spoke::PublishError, wire::Published};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::{
    failure::{sentence, with_code},
    output::{self, Style},
};

/// How often the bar moves by itself.
const TICK: Duration = Duration::from_millis(100);

/// What became of a stream.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(super) struct Counts {
    pub(super) published: u64,
    pub(super) duplicate: u64,
    pub(super) refused: u64,
}

impl Counts {
    pub(super) fn line(&self, style: Style) -> String {
        let Self { published, duplicate, refused } = self;
        match style {
            Style::Json => output::json(self),
            Style::People { .. } => {
                format!("published {published}, there already {duplicate}, refused {refused}")
            }
        }
    }
}

/// Counts, and shows it on a terminal.
pub(super) struct Progress {
    pub(super) counts: Counts,
    bar: ProgressBar,
}

impl Progress {
    /// Shown on standard error if that is a terminal, unless it is to be quiet.
    pub(super) fn start(quiet: bool) -> Self {
        let bar = if quiet || !io::stderr().is_terminal() { ProgressBar::hidden() } else { visible() };
        Self { counts: Counts::default(), bar }
    }

    /// The hub has answered.
    pub(super) fn answered(&mut self, line: u64, answer: Result<Published, PublishError>) {
        match answer {
            Ok(Published { fresh: true, .. }) => self.counts.published += 1,
            Ok(Published { fresh: false, .. }) => self.counts.duplicate += 1,
            Err(error) => return self.refused(line, &with_code(&sentence(&error), error.code())),
        }
        self.bar.inc(1);
    }

    /// A line is not published: why is told at once.
    pub(super) fn refused(&mut self, line: u64, sentence: &str) {
        self.counts.refused += 1;
        self.bar.inc(1);
        self.bar.set_message(format!(", {} refused", self.counts.refused));
        output::remark(&format!("line {line}: {sentence}"));
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn visible() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // A template that it can't read leaves the default in place: the bar is there all the same.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} lines, {rate}{msg}") {
        bar.set_style(style.with_key("rate", rate));
    }
    output::keep_below(bar.clone());
    bar.tick();
    bar.enable_steady_tick(TICK);
    bar
}

/// Without the decimals of `{per_sec}`.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // It writes to a string, which can't fail.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_for_people_and_programs() {
        let counts = Counts { published: 253, duplicate: 1, refused: 3 };
        assert_eq!(counts.line(Style::Json), r#"{"published":253,"duplicate":1,"refused":3}"#);
        let people = Style::People { colours: false };
        assert_eq!(counts.line(people), "published 253, there already 1, refused 3");
    }

    #[test]
    fn answers_are_counted_by_kind() {
        let mut progress = Progress::start(true);
        let done = Published::fresh(5, 7);
        progress.answered(1, Ok(done));
        progress.answered(2, Ok(Published { fresh: false, ..done }));
        progress.refused(3, "it is no event");
        assert_eq!(progress.counts, Counts { published: 1, duplicate: 1, refused: 1 });
    }
}
