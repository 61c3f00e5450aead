//! How far it is, on standard error: a line that changes on a terminal, else a line now and then.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use eventflow::hub::moving::Progress;

/// How often it is shown on a terminal, and elsewhere.
const OFTEN: Duration = Duration::from_millis(100);
const RARELY: Duration = Duration::from_secs(10);

/// Shows progress.
pub(super) struct Shown {
    quiet: bool,
    is_terminal: bool,
    begun: Instant,
    last: Option<Instant>,
    written: bool,
}

impl Shown {
    pub(super) fn new(quiet: bool) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { quiet, is_terminal, begun: Instant::now(), last: None, written: false }
    }

    /// Shows it, if it is time or the end.
    pub(super) fn show(&mut self, progress: Progress) {
        let pause = if self.is_terminal { OFTEN } else { RARELY };
        let is_time = self.last.unwrap_or(self.begun).elapsed() >= pause;
        if self.quiet || !(is_time || (progress.rows == progress.all && !self.written)) {
            return;
        }
        self.last = Some(Instant::now());
        self.written = true;
        let line = line(progress, self.begun.elapsed());
        // Whether it can be written changes nothing.
        let _ = if self.is_terminal {
            write!(io::stderr(), "\r\x1b[Keventflow: {line}")
        } else {
            writeln!(io::stderr(), "eventflow: {line}")
        };
    }

    /// Leaves the line.
    pub(super) fn end(&self) {
        if self.written && self.is_terminal {
            let _ = writeln!(io::stderr());
        }
    }
}

/// Count, share and rate: what stood there before isn't of this run.
fn line(progress: Progress, elapsed: Duration) -> String {
    let Progress { rows, all, before } = progress;
    let share = rows.saturating_mul(100).checked_div(all).unwrap_or(100);
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = rows.saturating_sub(before).saturating_mul(1_000) / millis;
    format!("{rows} of {all} rows, {share} %, {rate}/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_count_share_and_the_rate_of_this_run() {
        let told = |rows, all, before| line(Progress { rows, all, before }, Duration::from_secs(2));
        assert_eq!(told(500, 2_000, 100), "500 of 2000 rows, 25 %, 200/s");
        assert_eq!(told(0, 0, 0), "0 of 0 rows, 100 %, 0/s");
    }
}
