//! What a spoke proves itself by, now: dials take it from here, renewals put it here.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use tokio::time::Instant;

use super::Renewal;
use crate::pki::{Bundle, PkiError};

/// The bundle in use. Links that are up keep what they began with.
#[derive(Debug)]
pub(super) struct Credentials {
    bundle: Mutex<Arc<Bundle>>,
    /// One renewal at a time; holds the latest one, and when it was.
    pub(super) renewing: tokio::sync::Mutex<Option<(Instant, Renewal)>>,
}

impl Credentials {
    pub(super) fn new(bundle: Bundle) -> Self {
        Self { bundle: Mutex::new(Arc::new(bundle)), renewing: tokio::sync::Mutex::new(None) }
    }

    pub(super) fn bundle(&self) -> Arc<Bundle> {
        // Whoever panicked while it held the lock left one bundle or the other.
        self.bundle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn replace(&self, bundle: Bundle) {
        *self.bundle.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(bundle);
    }

    /// The bundle, if it holds. One that has expired may have been renewed in its file by somebody else: a hub does
    /// that with the operator's.
    ///
    /// # Errors
    /// [`PkiError::Expired`] above all: there is nothing to dial with.
    pub(super) fn that_hold(&self) -> Result<Arc<Bundle>, PkiError> {
        let bundle = self.bundle();
        match (bundle.check(SystemTime::now()), bundle.path()) {
            (Ok(()), _) => Ok(bundle),
            (Err(PkiError::Expired { .. }), Some(path)) => {
                let mut read = Bundle::read(path)?;
                read.hub_name.clone_from(&bundle.hub_name);
                tracing::info!(path = %path.display(), "the credentials expired, and are taken anew from their file");
                self.replace(read);
                Ok(self.bundle())
            }
            (Err(error), _) => Err(error),
        }
    }
}
