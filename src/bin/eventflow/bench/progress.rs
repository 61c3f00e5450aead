//! A bar for whoever watches a run: how far it is, at what rate.

use std::{
    io::{self, IsTerminal as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::output;

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// How far a run is. Moving it costs one addition: the bar looks by itself.
#[derive(Clone)]
pub(super) struct Progress {
    done: Arc<AtomicU64>,
    bar: ProgressBar,
}

impl Progress {
    /// Shown on standard error if that is a terminal, unless it is to be quiet.
    pub(super) fn start(quiet: bool) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        if quiet || !io::stderr().is_terminal() {
            return Self { done, bar: ProgressBar::hidden() };
        }
        let bar = visible();
        let (counter, shown) = (done.clone(), bar.clone());
        // Ends with the bar, or with the program.
        tokio::spawn(async move {
            while !shown.is_finished() {
                tokio::time::sleep(TICK).await;
                shown.set_position(counter.load(Ordering::Relaxed));
            }
        });
        Self { done, bar }
    }

    /// Something new begins, of so many steps.
    pub(super) fn begin(&self, what: &str, steps: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.bar.set_length(steps as u64);
        self.bar.set_message(what.to_owned());
        self.bar.reset();
    }

    /// One step.
    pub(super) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn visible() -> ProgressBar {
    let bar = ProgressBar::new(1);
    // A template that it can't read leaves the default in place: the bar is there all the same.
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {human_pos} of {human_len}, {rate}") {
        bar.set_style(style.with_key("rate", rate));
    }
    output::keep_below(bar.clone());
    bar
}

/// Without the decimals of `{per_sec}`.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // It writes to a string, which can't fail.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}
