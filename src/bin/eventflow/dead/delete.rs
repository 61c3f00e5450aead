//! `eventflow dead delete`.

use clap::{ArgGroup, Args};
use eventflow::{
    event::{EventId, code},
    spoke::SpokeConfig,
    wire::Trace,
};

use super::{In, Narrowed, none, not_dead};
use crate::{
    confirm::Sure,
    connect,
    failure::{CUT_SHORT, Failure},
    output::{Printer, remark},
    stop::Stop,
};

/// Delete a dead event, or all of a group: the events themselves, from all logs and groups.
///
/// An event that isn't dead in the group is left alone (exit code 3), and so is one that another group isn't done with,
/// unless --unfinished says otherwise (exit code 1). On a terminal it asks before all go.
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
    /// Also what other groups aren't done with: they don't get it any more
    #[arg(long)]
    unfinished: bool,
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
    let Delete { id, narrowed, sure, unfinished, of, .. } = arguments;
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
        if let Some(groups) = wanting(&trace).filter(|_| !unfinished) {
            return Err(Failure::new(code::NOT_ALLOWED, left_alone(&id, &groups)));
        }
        stop.unless_forced(spoke.delete(&id)).await?;
        spoke.close().await;
        printer.done("deleted", &id)?;
        return Ok(printer.flush()?);
    }
    let (mut found, mut left) = (false, 0_u64);
    let mut reader = narrowed.narrow(group.dead());
    while let Some(page) = stop.unless_requested(reader.next_page()).await? {
        let ids: Vec<EventId> = page.into_iter().map(|dead| dead.id).collect();
        for id in ids {
            if stop.is_requested() {
                return Err(CUT_SHORT);
            }
            found = true;
            if !unfinished {
                let (_, trace) = stop.unless_requested(spoke.show(&id)).await?;
                if let Some(groups) = wanting(&trace) {
                    remark(&left_alone(id.as_str(), &groups));
                    left += 1;
                    continue;
                }
            }
            stop.unless_forced(spoke.delete(&id)).await?;
            printer.done("deleted", &id)?;
        }
        printer.flush()?;
    }
    let ended = match (found, left) {
        (false, _) => Err(none(&spoke, &of, &narrowed).await),
        (true, 0) => Ok(()),
        (true, left) => Err(Failure::new(code::NOT_ALLOWED, format!("{left} of them were left alone"))),
    };
    spoke.close().await;
    ended
}

/// The groups that aren't done with an event, if there are any.
fn wanting(trace: &Trace) -> Option<String> {
    let is_open = |state: &str| !matches!(state, "success" | "dead" | "expired");
    let open = trace.groups.iter().filter(|stands| is_open(&stands.state));
    let names = open.map(|stands| match &stands.group {
        Some(group) => format!("the group {:?} ({})", group.as_str(), stands.state),
        None => format!("the default group ({})", stands.state),
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn left_alone(id: &str, groups: &str) -> String {
    format!("the event {id:?} was left alone: {groups} would lose it; --unfinished deletes it all the same")
}
