//! Asking before something goes that can't be brought back.

use std::io::{self, IsTerminal as _, Write as _};

use clap::Args;

use crate::{
    failure::{CUT_SHORT, Failure},
    output::remark,
    stop::Stop,
};

/// Whether the user is sure.
#[derive(Debug, Clone, Args)]
pub(crate) struct Sure {
    /// Don't ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

impl Sure {
    /// Asks whoever sits there; nobody does where input or the question's place is no terminal. A no is a failure.
    pub(crate) async fn confirm(&self, question: &str, stop: &Stop) -> Result<(), Failure> {
        if self.yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(());
        }
        let _ = write!(io::stderr(), "{question} [y/N] ");
        let (sender, answer) = tokio::sync::oneshot::channel();
        // A thread of its own: the end of the program doesn't wait for somebody who doesn't answer.
        std::thread::spawn(move || {
            let mut answer = String::new();
            let read = io::stdin().read_line(&mut answer).map(|_| answer);
            let _ = sender.send(read);
        });
        let yes = tokio::select! {
            answer = answer => answer.is_ok_and(|answer| answer.is_ok_and(|answer| is_yes(&answer))),
            () = stop.requested() => return Err(CUT_SHORT),
        };
        if yes {
            return Ok(());
        }
        remark("nothing was done");
        Err(Failure::Silent { exit: 1 })
    }
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        for yes in ["y\n", " YES "] {
            assert!(is_yes(yes), "{yes}");
        }
        for no in ["", "\n", "n\n", "yep\n"] {
            assert!(!is_yes(no), "{no}");
        }
    }
}
