//! Runs the hub until a signal stops it.

use std::process::ExitCode;

use eventflow::{config::HubConfig, event::code};

use crate::exit;

/// Starts the hub, says so, waits for a signal, drains.
pub(crate) fn run(config: HubConfig) -> ExitCode {
    let _ = config;
    exit::failed(code::UNSUPPORTED, "this build has no hub")
}
