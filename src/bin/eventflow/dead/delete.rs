//! `eventflow dead delete`.

use clap::{ArgGroup, Args};
use eventflow::{event::EventId, spoke::SpokeConfig};

use super::{In, Narrowed, none, not_dead};
use crate::{
    confirm::Sure,
    connect,
    failure::{CUT_SHORT, Failure},
    output::Printer,
    stop::Stop,
};

/// Delete a dead event, or all of a group: the events themselves, from all logs and groups.
///
/// An event that isn't dead in the group is left alone (exit code 3). On a terminal it asks before all go.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: eventflow dead delete --all --domain orders --yes",
    group = ArgGroup::new("what").required(true).args(["id", "all"])
)]
pub(super) struct Delete {
    /// The event's id
    #[arg(conflicts_with_all = ["domain", "name"])]
    id: Option<String>,
    /// All dead events of the group, narrowed by --domain and --name
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    narrowed: Narrowed,
    #[command(flatten)]
    sure: Sure,
    #[command(flatten)]
    pub(super) of: In,
}

/// Asks, deletes and names each.
pub(super) async fn run(
    arguments: Delete,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Delete { id, narrowed, sure, of, .. } = arguments;
    if id.is_none() {
        let question = format!("delete all events of {} that are dead in {}?", narrowed.told(), of.called());
        sure.confirm(&question, &stop).await?;
    }
    let spoke = connect::connect(config, &stop).await?;
    let group = of.of(&spoke);
    if let Some(id) = id {
        let (_, trace) = stop.unless_requested(spoke.show(&id)).await?;
        let is_dead = trace.groups.iter().any(|stands| {
            let name = stands.group.as_ref().map_or("", |group| group.as_str());
            name == of.group && stands.state == "dead"
        });
        if !is_dead {
            return Err(not_dead(&id, &of, &trace));
        }
        stop.unless_forced(spoke.delete(&id)).await?;
        spoke.close().await;
        printer.done("deleted", &id)?;
        return Ok(printer.flush()?);
    }
    let mut found = false;
    loop {
        // Always the first page: what was on it is gone.
        let page = stop.unless_requested(narrowed.narrow(group.dead()).next_page()).await?;
        let ids: Vec<EventId> = page.into_iter().flatten().map(|dead| dead.id).collect();
        if ids.is_empty() {
            break;
        }
        for id in ids {
            if stop.is_requested() {
                return Err(CUT_SHORT);
            }
            stop.unless_forced(spoke.delete(&id)).await?;
            printer.done("deleted", &id)?;
            found = true;
        }
        printer.flush()?;
    }
    let ended = if found { Ok(()) } else { Err(none(&spoke, &of, &narrowed).await) };
    spoke.close().await;
    ended
}
