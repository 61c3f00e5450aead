//! Stand-in for the credentials, until they are merged.

use std::path::Path;

use crate::{event::code, wire::HubAddress};

/// What a spoke needs to connect.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// Where hubs listen.
    pub hubs: Vec<HubAddress>,
}

impl Bundle {
    /// Reads it from a file.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn read(_path: &Path) -> Result<Self, PkiError> {
        Err(PkiError)
    }
}

/// What went wrong with credentials.
#[derive(Debug, thiserror::Error)]
#[error("the credentials can't be used")]
pub struct PkiError;

impl PkiError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        code::CERTIFICATE
    }
}
