//! Events from standard input, one a line.

use std::io;

use eventflow::{event::Fault, spoke};
use tokio::sync::mpsc;

use crate::{
    fields::new_id,
    ndjson::{self, Input},
};

/// Lines read ahead of the link.
const AHEAD: usize = 64;

/// Reads standard input on a thread of its own, which the end of the program doesn't wait for.
pub(super) struct Lines {
    lines: mpsc::Receiver<io::Result<Input>>,
    number: u64,
    bytes: usize,
}

impl Lines {
    pub(super) fn read() -> Self {
        let (sender, lines) = mpsc::channel(AHEAD);
        std::thread::spawn(move || {
            let mut input = io::BufReader::with_capacity(256 << 10, io::stdin());
            while let Some(line) = ndjson::next_line(&mut input, ndjson::MAX_LINE).transpose() {
                let failed = line.is_err();
                if sender.blocking_send(line).is_err() || failed {
                    break;
                }
            }
        });
        Self { lines, number: 0, bytes: 0 }
    }

    /// The bytes of the lines so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next line that isn't empty, with its number: an event, or what is wrong with it. Safe to cancel.
    pub(super) async fn next(&mut self) -> io::Result<Option<(u64, Result<spoke::Publish, Fault>)>> {
        while let Some(line) = self.lines.recv().await {
            self.number += 1;
            let event = match line? {
                Input::Line(line) => {
                    self.bytes = self.bytes.saturating_add(line.len());
                    let line = if self.number == 1 { ndjson::without_mark(&line) } else { &line };
                    if line.trim().is_empty() {
                        continue;
                    }
                    ndjson::parse(line, new_id)
                }
                Input::Bad(fault) => Err(fault),
            };
            return Ok(Some((self.number, event)));
        }
        Ok(None)
    }
}
