//! New leaves in time: at two thirds of the life, on a key pair that this end makes, while the link stays.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout},
};

use super::{
    backoff::Backoff,
    command::{Failure, Found, closed},
    credentials::Credentials,
    fleet::{Board, Fleet},
    query::Query,
};
use crate::{
    event::{Fault, code},
    pki::{FreshKey, PkiError},
    wire::{Answer, Renewed},
};

/// The clock is looked at this often: it may be set.
const LOOK: Duration = Duration::from_secs(30);
/// The shortest rest between two renewals: a hub takes one a second.
const LEAST: Duration = Duration::from_secs(1);
/// Bounds of the first and the longest wait after a failure; both follow the leaf's life.
const FIRST: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));
const LONGEST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3_600));

/// What a renewal brought.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renewal {
    /// Whose certificate it is.
    pub id: String,
    /// When it ends to hold, in milliseconds since 1970.
    pub not_after: i64,
    /// The bundle's file that was replaced, if it was read from one.
    pub file: Option<PathBuf>,
}

/// A certificate could not be renewed: the one in use stays.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RenewError {
    /// The hub refused.
    #[error("the hub refused to renew the certificate: {0}")]
    Refused(Fault),
    /// No answer in time.
    #[error("the hub didn't renew the certificate within {:.1} s", waited.as_secs_f64())]
    TimedOut {
        /// The request's deadline.
        waited: Duration,
    },
    /// No key could be made, or the hub's answer can't be used.
    #[error("the certificate can't be renewed: {0}")]
    Unusable(#[source] PkiError),
    /// The certificate was renewed and is in use, but its file is the old one.
    #[error("the certificate was renewed, but only this program has it: {0}")]
    NotKept(#[source] PkiError),
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

impl RenewError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(fault) | Self::Closed(fault) => &fault.code,
            Self::TimedOut { .. } => code::TIMEOUT,
            Self::Unusable(error) | Self::NotKept(error) => error.code(),
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Refused(fault) => fault.is_retryable(),
            Self::Unusable(error) => error.is_retryable(),
            Self::NotKept(_) | Self::Closed(_) => false,
        }
    }
}

impl fmt::Debug for RenewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.code())
    }
}

/// Renews credentials over the link. Holds nothing that keeps the link's task alive.
#[derive(Debug, Clone)]
pub(super) struct Renewer {
    pub(super) credentials: Arc<Credentials>,
    pub(super) fleet: Weak<Fleet>,
}

impl Renewer {
    /// Renews now; one that has just been made is as good.
    pub(super) async fn renew(&self) -> Result<Renewal, RenewError> {
        let mut latest = self.credentials.renewing.lock().await;
        if let Some((at, renewal)) = &*latest
            && at.elapsed() < LEAST
        {
            return Ok(renewal.clone());
        }
        let key = FreshKey::generate().map_err(RenewError::Unusable)?;
        let Renewed { cert, root, not_after } = self.ask(key.public_key().to_owned()).await?;
        let renewed = self.credentials.bundle().renewed(&key, cert, root).map_err(RenewError::Unusable)?;
        let id = renewed.uid().map_err(RenewError::Unusable)?.to_string();
        self.credentials.replace(renewed.clone());
        let file = renewed.path().map(PathBuf::from);
        if file.is_some() {
            let kept = spawn_blocking(move || renewed.write_back()).await;
            // The task ends early only when the runtime stops.
            kept.map_err(|_| RenewError::Closed(closed()))?.map_err(RenewError::NotKept)?;
        }
        let renewal = Renewal { id, not_after, file };
        *latest = Some((Instant::now(), renewal.clone()));
        Ok(renewal)
    }

    async fn ask(&self, key: String) -> Result<Renewed, RenewError> {
        let Some(fleet) = self.fleet.upgrade() else { return Err(RenewError::Closed(closed())) };
        let waited = fleet.deadline;
        let answered = fleet.post(Query::Renew(key)).ok_or_else(|| RenewError::Closed(fleet.closed()))?;
        // Not held while the answer is awaited: the last handle to go away ends the spoke.
        drop(fleet);
        let asked = async { answered.await.map_err(|_| RenewError::Closed(closed())) };
        match timeout(waited, asked).await.map_err(|_| RenewError::TimedOut { waited })?? {
            Ok(Found { answer: Answer::Renewed(renewed), .. }) => Ok(*renewed),
            Ok(_) => {
                let text = "the hub answered a renewal by something else: update the hub or this client";
                Err(RenewError::Refused(Fault::refused(code::INVALID_RECORD, text)))
            }
            Err(Failure::Refused(fault) | Failure::LinkLost(fault)) => Err(RenewError::Refused(fault)),
            Err(Failure::Closed(fault)) => Err(RenewError::Closed(fault)),
        }
    }

    /// Renews in time until the spoke is closed.
    pub(super) async fn run(self, board: Arc<Board>) {
        loop {
            // Without a leaf there is nothing to renew: such credentials are a test's.
            let Ok(due) = self.credentials.bundle().renew_at() else { return };
            if sleep_until(due, &board).await.is_err() {
                return;
            }
            let mut backoff = self.backoff();
            while let Err(error) = self.in_time(&board).await {
                if board.status().closed {
                    return;
                }
                let wait = backoff.next().max(FIRST.0);
                tracing::warn!(code = error.code(), ?wait, "the certificate isn't renewed yet: {error}");
                if rest(wait, &board).await.is_err() {
                    return;
                }
            }
            if rest(LEAST, &board).await.is_err() {
                return;
            }
        }
    }

    /// One try, once there is a link; given up if that is lost.
    async fn in_time(&self, board: &Board) -> Result<(), RenewError> {
        let gone = || RenewError::Closed(closed());
        if board.when(|status| status.hub.is_some()).await.closed {
            return Err(gone());
        }
        let renewed = tokio::select! {
            renewed = self.renew() => renewed,
            () = lost(board) => {
                let text = "the link was lost before the certificate was renewed";
                return Err(RenewError::Refused(Fault::retryable(code::LINK_LOST, text, Duration::ZERO)));
            }
        };
        match renewed {
            Ok(renewal) => {
                tracing::info!(
                    spoke.id = renewal.id,
                    not_after = renewal.not_after,
                    "the certificate was renewed"
                );
                Ok(())
            }
            Err(error @ RenewError::NotKept(_)) => {
                tracing::warn!(code = error.code(), "{error}");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Many tries fit into what is left of the leaf's life, if it is long.
    fn backoff(&self) -> Backoff {
        let bundle = self.credentials.bundle();
        let end = bundle.leaf().map_or(0, |(_, end)| u64::try_from(end).unwrap_or(0));
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(end);
        let left = end.duration_since(SystemTime::now()).unwrap_or_default();
        Backoff::new((left / 30).clamp(FIRST.0, FIRST.1), (left / 5).clamp(LONGEST.0, LONGEST.1))
    }
}

/// The spoke is closed.
struct Closed;

/// Waits until there is no link.
async fn lost(board: &Board) {
    // Without a task there is no link either.
    board.when(|status| status.hub.is_none()).await;
}

/// Sleeps until the clock says so.
async fn sleep_until(due: SystemTime, board: &Board) -> Result<(), Closed> {
    while let Ok(left) = due.duration_since(SystemTime::now())
        && !left.is_zero()
    {
        rest(left.min(LOOK), board).await?;
    }
    Ok(())
}

async fn rest(wait: Duration, board: &Board) -> Result<(), Closed> {
    match timeout(wait, board.when(|status| status.closed)).await {
        Ok(_) => Err(Closed),
        Err(_) => Ok(()),
    }
}
