//! `eventflow associate` and `eventflow dissociate`.

use std::time::Duration;

use clap::{ArgGroup, Args};
use eventflow::spoke::{Association, SpokeConfig};

use crate::{connect, failure::Failure, output::Printer, parse, stop::Stop};

/// Associate an event with a child process or an entity, by whose log it is then found.
///
/// To do it again changes nothing. If there is no such event the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow associate 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2 --entity customer-4")]
pub(crate) struct Associate {
    #[command(flatten)]
    pub(crate) link: Between,
}

/// Take an association of an event back.
///
/// If it isn't there nothing changes. If there is no such event the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow dissociate 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2 --entity customer-4")]
pub(crate) struct Dissociate {
    #[command(flatten)]
    pub(crate) link: Between,
}

/// An event, and what it belongs to besides its process.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("with").required(true).args(["child", "entity"]))]
pub(crate) struct Between {
    /// The event's id
    pub(crate) id: String,
    /// A child process: its domain and its pid
    #[arg(long, num_args = 2, value_names = ["DOMAIN", "PID"])]
    pub(crate) child: Option<Vec<String>>,
    /// An entity
    #[arg(long, value_name = "EID")]
    pub(crate) entity: Option<String>,
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

impl Between {
    fn association(&self) -> Association {
        match (self.child.as_deref(), &self.entity) {
            (Some([domain, cpid]), _) => Association::child_process(domain, cpid),
            // One of them is there, or the arguments would have been refused.
            (_, entity) => Association::entity(entity.as_deref().unwrap_or_default()),
        }
    }
}

/// Associates.
pub(crate) async fn associate(
    Associate { link }: Associate,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = link.timeout;
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(spoke.associate(&link.id, link.association())).await?;
    spoke.close().await;
    printer.done("associated", &link.id)?;
    Ok(printer.flush()?)
}

/// Takes it back.
pub(crate) async fn dissociate(
    Dissociate { link }: Dissociate,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = link.timeout;
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(spoke.dissociate(&link.id, link.association())).await?;
    spoke.close().await;
    printer.done("dissociated", &link.id)?;
    Ok(printer.flush()?)
}
