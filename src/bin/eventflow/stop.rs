//! SIGINT and SIGTERM: the first ends what is under way, the second cuts it short.

use std::{future::Future, io};

use tokio::sync::watch;

use crate::failure::{CUT_SHORT, Failure};

/// What the signals have asked for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nothing,
    Drain,
    Abort,
}

/// Tells whether a signal came.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<Asked>);

impl Stop {
    /// Listens from now on.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut signals = Signals::new()?;
        let (sender, receiver) = watch::channel(Asked::Nothing);
        tokio::spawn(async move {
            for asked in [Asked::Drain, Asked::Abort] {
                signals.next().await;
                sender.send_replace(asked);
            }
            // The channel stays open: a closed one would look like no signal at all.
            sender.closed().await;
        });
        Ok(Self(receiver))
    }

    /// Waits for the first signal.
    pub(crate) async fn requested(&self) {
        self.reached(Asked::Drain).await;
    }

    /// Waits for the second signal.
    pub(crate) async fn forced(&self) {
        self.reached(Asked::Abort).await;
    }

    /// What a work brings, unless the first signal comes before: for what nobody misses.
    pub(crate) async fn unless_requested<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        tokio::select! {
            brought = work => Ok(brought?),
            () = self.requested() => Err(CUT_SHORT),
        }
    }

    /// What a work brings, unless the second signal comes before: for what would be left in doubt.
    pub(crate) async fn unless_forced<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        tokio::select! {
            brought = work => Ok(brought?),
            () = self.forced() => Err(CUT_SHORT),
        }
    }

    /// Whether the first signal has come.
    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow() >= Asked::Drain
    }

    async fn reached(&self, least: Asked) {
        if self.0.clone().wait_for(|asked| *asked >= least).await.is_err() {
            // Nobody listens to signals any more, so none can come.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_signal_forces() {
        let (sender, receiver) = watch::channel(Asked::Nothing);
        let stop = Stop(receiver);
        assert!(!stop.is_requested());
        let early = tokio::time::timeout(std::time::Duration::from_millis(1), stop.requested());
        assert!(early.await.is_err());
        sender.send_replace(Asked::Drain);
        stop.requested().await;
        assert!(stop.is_requested());
        sender.send_replace(Asked::Abort);
        stop.requested().await;
        stop.forced().await;
    }
}
