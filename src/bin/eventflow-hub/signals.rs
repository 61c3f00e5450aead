//! The signals that stop the hub.

use std::io;

use eventflow::config::QuitSignal;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and the configured signal.
pub(crate) struct Signals {
    interrupt: Signal,
    quit: Signal,
    name: &'static str,
}

impl Signals {
    /// Listens from now on: what comes is kept until it is asked for.
    pub(crate) fn listen(quit: QuitSignal) -> io::Result<Self> {
        let (kind, name) = match quit {
            QuitSignal::Term => (SignalKind::terminate(), "SIGTERM"),
            QuitSignal::Int => (SignalKind::interrupt(), "SIGINT"),
            QuitSignal::Quit => (SignalKind::quit(), "SIGQUIT"),
            QuitSignal::Hup => (SignalKind::hangup(), "SIGHUP"),
            QuitSignal::Usr1 => (SignalKind::user_defined1(), "SIGUSR1"),
            QuitSignal::Usr2 => (SignalKind::user_defined2(), "SIGUSR2"),
        };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, quit: signal(kind)?, name })
    }

    /// Waits for one, and names it.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            // First, so that one SIGINT isn't told twice if it is the configured signal too.
            biased;
            _ = self.quit.recv() => self.name,
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
