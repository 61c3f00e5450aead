//! `eventflow cert renew`: a new certificate for one's own bundle.

use chrono::Local;
use clap::Args;
use eventflow::spoke::{RenewError, SpokeConfig};
use serde_json::json;

use crate::{
    connect::connect,
    failure::{CUT_SHORT, Failure},
    output::{Printer, Style, harmless, json},
    stop::Stop,
};

/// Renew the certificate of the bundle that this program connects with, and replace its file.
///
/// A connected spoke does this by itself when two thirds of the certificate's life are over. By hand it is of use for
/// a bundle that is used too seldom. An expired one can't be renewed: issue a new one.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow cert renew --bundle billing.toml")]
pub(super) struct Renew {}

/// Connects, renews and prints.
pub(super) async fn run(config: SpokeConfig, mut printer: Printer, stop: Stop) -> Result<(), Failure> {
    let spoke = connect(config, &stop).await?;
    let renewal = tokio::select! {
        renewal = spoke.renew() => renewal?,
        () = stop.requested() => return Err(CUT_SHORT),
    };
    spoke.close().await;
    let line = match printer.style() {
        Style::Json => {
            json(&json!({ "id": renewal.id, "not_after": renewal.not_after, "file": renewal.file }))
        }
        Style::People { .. } => {
            let file = renewal.file.map(|file| format!(", in {}", file.display())).unwrap_or_default();
            let until = crate::output::time(renewal.not_after, &Local);
            harmless(&format!("{} holds until {until}{file}", renewal.id))
        }
    };
    printer.line(&line)?;
    Ok(printer.flush()?)
}

impl From<RenewError> for Failure {
    fn from(error: RenewError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
