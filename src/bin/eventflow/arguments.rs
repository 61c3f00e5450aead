//! The command line, as types. Its help texts are what people learn the program from.

use std::{path::PathBuf, time::Duration};

use clap::{Args, CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use eventflow::{event::code, wire::HubAddress};

use crate::{
    adopt::Adopt,
    association::{Associate, Dissociate},
    backlog,
    backup::Backup,
    bench::Bench,
    cert::Cert,
    consume::Consume,
    dead::Dead,
    delete::Delete,
    failure::with_code,
    group::Group,
    hub::Hub,
    log::Log,
    manual::{Completions, Docs, Man},
    nudge::Nudge,
    parse::{duration, hub_address},
    pids::Pids,
    publish::Publish,
    recur::Recur,
    request::Request,
    schedule::{Cancel, Schedule, WITHOUT_DATE},
    schedules::Schedules,
    show::Show,
    state,
    subscribe::Subscribe,
    wait::Wait,
};

/// The data folder that is looked into if none is named.
pub(crate) const DATA_FOLDER: &str = "./eventflow-data";

const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   refused, or failed: an outcome that isn't success is a failure too
  2   wrong usage, down to what --data or a date says: nothing was done
  3   not found: no such event, schedule, certificate, group, or nothing in a log
  4   not in time: what was waited for didn't come
  69  no hub could be reached, or it is stopping
  77  the credentials can't be used
  130 cut short by a signal

People's output on a terminal; JSON lines with --json and wherever standard output is no terminal.
The first SIGINT or SIGTERM ends what is under way, the second cuts it short: commands of --exec are
killed and their events handed back; that counts as an attempt.";

/// Publish, subscribe, consume, wait for and read events.
#[derive(Debug, Parser)]
#[command(name = "eventflow", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) link: Link,
    /// Print JSON lines, even on a terminal
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    /// Tell more on standard error: each link and each attempt to make one
    #[arg(long, short, global = true, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Don't show what is under way: neither progress nor what has begun
    #[arg(long, short, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the process's own arguments; prints help or what is wrong, and exits, if that is what is to be done.
    pub(crate) fn read() -> Self {
        let cli = Self::parse();
        if let Some(error) = cli.misuse() {
            error.exit();
        }
        cli
    }

    /// What the definition can't say.
    fn misuse(&self) -> Option<clap::Error> {
        let (name, (kind, sentence)) = match &self.command {
            Command::Publish(publish) => ("publish", misused_publish(publish)?),
            Command::Schedule(schedule) if schedule.when().is_none() => {
                let sentence = with_code(WITHOUT_DATE, code::SCHEDULE_INVALID_DATE);
                ("schedule", (ErrorKind::MissingRequiredArgument, sentence))
            }
            Command::Request(request) if request.name == "-" => ("request", named_dash("request")),
            Command::Schedule(schedule) if schedule.name == "-" => ("schedule", named_dash("schedule")),
            Command::Log(log) if log.is_backwards() => {
                let sentence = "nothing lies between --from and --to: --from is later".to_owned();
                ("log", (ErrorKind::ArgumentConflict, sentence))
            }
            Command::Schedules(schedules) if schedules.is_backwards() => {
                let sentence = "nothing lies between --from and --to: --from is later".to_owned();
                ("schedules", (ErrorKind::ArgumentConflict, sentence))
            }
            Command::State(state) if state.is_stream() == state.pid.is_some() => {
                let sentence = "state needs a domain and a process, or `-` alone".to_owned();
                ("state", (ErrorKind::MissingRequiredArgument, sentence))
            }
            _ => return None,
        };
        let mut program = Self::command();
        // So that the command knows its usage.
        program.build();
        Some(match program.find_subcommand_mut(name) {
            Some(command) => command.error(kind, sentence),
            None => program.error(kind, sentence),
        })
    }
}

fn misused_publish(publish: &Publish) -> Option<(ErrorKind, String)> {
    if let Some(surplus) = &publish.surplus {
        let text = format!("unexpected argument '{surplus}' found: give the data by --data '…'");
        return Some((ErrorKind::UnknownArgument, text));
    }
    if !publish.is_stream() && publish.name.as_deref() == Some("-") {
        return Some(named_dash("publish"));
    }
    let (kind, sentence) = match (publish.is_stream(), &publish.name) {
        (false, None) => {
            (ErrorKind::MissingRequiredArgument, "publish needs a domain and a name, or `-` alone")
        }
        (false, Some(_)) if publish.batch => {
            (ErrorKind::ArgumentConflict, "--batch is for many events: publish - --batch reads them")
        }
        (true, _) if publish.is_about_one() => (
            ErrorKind::ArgumentConflict,
            "with `-` the lines of standard input say all: give no name, --pid, \
             --data, --id, --rid, --wait or --persist",
        ),
        _ => return None,
    };
    Some((kind, sentence.to_owned()))
}

/// A `-` where the event's name belongs: it would make an event of that name, which nobody means.
fn named_dash(command: &str) -> (ErrorKind, String) {
    let sentence = format!(
        "`-` is no name of an event: `{command} DOMAIN NAME --data -` reads the data from standard input, \
         `publish -` reads events"
    );
    (ErrorKind::InvalidValue, sentence)
}

/// Where hubs are, and who we are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Link {
    /// Credentials; by default operator.toml in the data folder
    #[arg(long, global = true, env = "EVENTFLOW_BUNDLE", hide_env_values = true, value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
    /// The data folder of a hub on this machine
    #[arg(
        long,
        global = true,
        env = "EVENTFLOW_DATA",
        hide_env_values = true,
        value_name = "FOLDER",
        default_value = DATA_FOLDER
    )]
    pub(crate) data_folder: PathBuf,
    /// A hub to dial instead of those that the credentials name; may be repeated
    #[arg(
        long,
        global = true,
        env = "EVENTFLOW_HUB",
        hide_env_values = true,
        value_name = "HOST:PORT",
        value_delimiter = ',',
        value_parser = hub_address
    )]
    pub(crate) hub: Vec<HubAddress>,
    /// How long to try to reach a hub, --timeout at most [default: 15s to subscribe or consume, else 5s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    pub(crate) connect_timeout: Option<Duration>,
}

// Their help stands at the arguments of each.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Publish(Publish),
    Request(Request),
    Subscribe(Subscribe),
    Consume(Consume),
    Wait(Wait),
    Schedule(Schedule),
    Schedules(Schedules),
    Cancel(Cancel),
    Recur(Recur),
    Show(Show),
    Log(Log),
    Pids(Pids),
    State(state::Arguments),
    Associate(Associate),
    Dissociate(Dissociate),
    Delete(Delete),
    Nudge(Nudge),
    Group(Group),
    Backlog(backlog::Arguments),
    Dead(Dead),
    Backup(Backup),
    Bench(Bench),
    Adopt(Adopt),
    #[cfg(feature = "hub")]
    Export(crate::moving::Export),
    #[cfg(feature = "hub")]
    Import(crate::moving::Import),
    #[cfg(feature = "hub")]
    Migrate(crate::migrate::Migrate),
    Cert(Cert),
    Hub(Hub),
    Completions(Completions),
    Man(Man),
    Docs(Docs),
}

impl Command {
    /// How long to try to reach a hub; this was given for it.
    pub(crate) fn connect_deadline(&self, given: Option<Duration>) -> Duration {
        let (lasting, timeout) = match self {
            Self::Subscribe(Subscribe { end, .. }) | Self::Consume(Consume { end, .. }) => {
                (true, end.timeout)
            }
            Self::Publish(Publish { timeout, .. })
            | Self::Request(Request { timeout, .. })
            | Self::Wait(Wait { timeout, .. })
            | Self::Schedule(Schedule { timeout, .. })
            | Self::Schedules(Schedules { timeout, .. })
            | Self::Cancel(Cancel { timeout, .. })
            | Self::Recur(Recur { timeout, .. })
            | Self::Show(Show { timeout, .. })
            | Self::Log(Log { timeout, .. })
            | Self::Pids(Pids { timeout, .. })
            | Self::State(state::Arguments { timeout, .. })
            | Self::Nudge(Nudge { timeout, .. })
            | Self::Backlog(backlog::Arguments { timeout, .. })
            | Self::Delete(Delete { timeout, .. }) => (false, Some(*timeout)),
            Self::Associate(Associate { link }) | Self::Dissociate(Dissociate { link }) => {
                (false, Some(link.timeout))
            }
            Self::Group(group) => (false, Some(group.timeout())),
            Self::Dead(dead) => (false, Some(dead.timeout())),
            Self::Cert(_) | Self::Bench(_) => (false, None),
            #[cfg(feature = "hub")]
            Self::Export(_) | Self::Import(_) | Self::Migrate(_) => (false, None),
            // They need no link.
            Self::Backup(_)
            | Self::Adopt(_)
            | Self::Hub(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Docs(_) => (false, None),
        };
        let deadline = given.unwrap_or(Duration::from_secs(if lasting { 15 } else { 5 }));
        timeout.map_or(deadline, |timeout| deadline.min(timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        fn look(command: &clap::Command, name: &str) {
            for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
                let name = format!("{name} {}", command.get_name());
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.starts_with(&format!("Example: {name}")), "{name}: {help}");
                look(command, &name);
            }
        }
        look(&Cli::command(), "eventflow");
    }

    #[test]
    fn the_timeout_bounds_connecting_too() {
        let deadline = |line: &str| {
            let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
            cli.command.connect_deadline(cli.link.connect_timeout).as_secs()
        };
        assert_eq!(deadline("eventflow show a"), 5);
        assert_eq!(deadline("eventflow subscribe a"), 15);
        assert_eq!(deadline("eventflow publish a b --timeout 2s"), 2);
        assert_eq!(deadline("eventflow consume a --timeout 2s --connect-timeout 20s"), 2);
        assert_eq!(deadline("eventflow log a b --connect-timeout 20s"), 20);
    }

    #[test]
    fn wrong_usage_is_refused() {
        let refused = |line: &str| {
            let words = ["eventflow"].into_iter().chain(line.split_whitespace());
            Cli::try_parse_from(words).map_or(true, |cli| cli.misuse().is_some())
        };
        for line in [
            "",
            "publish",
            "publish orders",
            "publish - created",
            "publish - --pid a",
            "publish orders created {}",
            "publish orders created --batch",
            "publish - --wait",
            "publish orders created --wait --persist",
            "request stock",
            "wait",
            "wait orders",
            "wait --name paid",
            "wait orders order-1 --outcome a",
            "wait --answer-to a --outcome b",
            "wait orders order-1 --after a --since 1h",
            "wait orders order-1 --since yesterday",
            "schedule orders reminded",
            "publish orders -",
            "request orders - --data -",
            "schedule orders - --in 1h",
            "log a --from 1h --to 2h",
            "schedule orders reminded --in 1h --at 5",
            "schedule orders reminded --at 1h",
            "schedules --from 2h --to 1h",
            "schedules orders",
            "log --name paid",
            "log orders order-1 --child a",
            "log --child a",
            "log --entity a --child b",
            "state",
            "state orders",
            "state - order-1",
            "associate a",
            "associate a --child parcels",
            "associate a --entity b --child c d",
            "delete",
            "delete a --log b c",
            "subscribe a --on created",
            "subscribe",
            "show",
            "consume a --concurrency 0",
            "subscribe a --count 0",
            "consume a --from all",
            "consume a --group b --lease 500ms",
            "publish a b --group c",
            "wait a b --group c",
            "group",
            "group set billing",
            "group set billing --max-attempts 0",
            "group seek billing",
            "group unbind billing orders",
            "dead",
            "dead redrive",
            "dead redrive a --all",
            "dead redrive a --domain orders",
            "dead delete a --name paid",
            "dead delete --domain orders",
            "bench",
            "bench publish --events 0",
            "bench consume --bytes 8",
            "bench storm --hub-flag=--store-durability=relaxed",
            "bench idle --embedded --hub-pid 7",
        ] {
            assert!(refused(line), "{line}");
        }
        for line in [
            "publish -",
            "publish - --batch --quiet",
            "publish a b --data -",
            "subscribe a --on b=c --on d=e",
            "consume a b --exec true",
            "wait a b --name c --name d --now",
            "wait --outcome a --now",
            "schedule a b --in 0s",
            "schedule a b --at 2030-01-31T12:00:00Z",
            "schedules",
            "schedules --domain orders.* --from 1h --to 2h --limit 5",
            "log a",
            "log a b --from 1h --to 1896091200000",
            "log a --child b",
            "log --entity b",
            "log a --entity b",
            "state -",
            "state a b",
            "associate a --child b c",
            "delete --log a b --yes",
            "consume a --group b --from all --lease 1m --exec-timeout 5m --exec true",
            "publish a b --wait --group c",
            "wait --outcome a --group b",
            "group set billing --key-order --dead-blocks false --dead-letter \"\"",
            "group seek billing --to 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2",
            "backlog",
            "backlog billing",
            "dead list --group billing --limit 5",
            "dead redrive --all --domain orders --name *",
            "bench publish --embedded --hub-flag --store-durability=relaxed --rounds 3",
            "bench --svg a.svg latency --rate 100 --rate 1000 --duration 2s",
        ] {
            assert!(!refused(line), "{line}");
        }
    }
}
