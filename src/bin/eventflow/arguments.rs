//! The command line, as types. Its help texts are what people learn the program from.

use std::{path::PathBuf, time::Duration};

use clap::{Args, CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use eventflow::wire::HubAddress;

use crate::{backup::Backup, cert::Cert, hub::Hub};

const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   refused, failed or not in time
  2   wrong usage
  3   not found
  69  no hub could be reached, or it is stopping
  77  the credentials can't be used
  130 cut short by a second signal

People's output on a terminal; JSON lines with --json and wherever standard output is no terminal.
The first SIGINT or SIGTERM ends what is under way, the second cuts it short: commands of --exec are
killed and their events handed back; that counts as an attempt.";

/// Publish, subscribe, consume and read events.
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
        let Command::Publish(publish) = &self.command else { return None };
        if let Some(surplus) = &publish.surplus {
            let text = format!("unexpected argument '{surplus}' found: give the data by --data '…'");
            return Some(Self::command().error(ErrorKind::UnknownArgument, text));
        }
        let (kind, sentence) = match (publish.is_stream(), &publish.name) {
            (false, None) => {
                (ErrorKind::MissingRequiredArgument, "publish needs a domain and a name, or `-` alone")
            }
            (true, _) if publish.has_fields() => (
                ErrorKind::ArgumentConflict,
                "with `-` the lines of standard input say all: give no name, --pid, \
                  --data, --id or --rid",
            ),
            _ => return None,
        };
        Some(Self::command().error(kind, sentence))
    }
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
        default_value = "./eventflow-data"
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
    Subscribe(Subscribe),
    Consume(Consume),
    Log(Log),
    Show(Show),
    Backup(Backup),
    Cert(Cert),
    Hub(Hub),
}

impl Command {
    /// How long to try to reach a hub; this was given for it.
    pub(crate) fn connect_deadline(&self, given: Option<Duration>) -> Duration {
        let (lasting, timeout) = match self {
            Self::Publish(Publish { timeout, .. })
            | Self::Log(Log { timeout, .. })
            | Self::Show(Show { timeout, .. }) => (false, Some(*timeout)),
            Self::Subscribe(Subscribe { end, .. }) | Self::Consume(Consume { end, .. }) => {
                (true, end.timeout)
            }
            Self::Cert(_) => (false, None),
            // It needs no link.
            Self::Backup(_) | Self::Hub(_) => (false, None),
        };
        let deadline = given.unwrap_or(Duration::from_secs(if lasting { 15 } else { 5 }));
        timeout.map_or(deadline, |timeout| deadline.min(timeout))
    }
}

/// Publish one event, or many from standard input.
///
/// It returns when the hub has the event on disk. Publishing the same id and content again is harmless.
///
/// With `-` instead of a domain, each line of standard input is one event:
/// {"domain": …, "name": …, "pid": …, "data": …, "id": …, "rid": …}, where all but domain and name may be left
/// out. A line that is refused is reported with its number, the others are published; at the end come the counts.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow publish orders created --pid order-1 --data '{\"total\":12}'")]
pub(crate) struct Publish {
    /// The domain; `-`: read events from standard input
    #[arg(value_name = "DOMAIN|-")]
    pub(crate) domain: String,
    /// What happened
    pub(crate) name: Option<String>,
    /// Taken for the data by many; it is refused with a word on how to give that.
    #[arg(hide = true)]
    pub(crate) surplus: Option<String>,
    /// The process whose log the event belongs to [default: the event's own id, a process of its own]
    #[arg(long)]
    pub(crate) pid: Option<String>,
    /// The payload; `-`: standard input, @FILE: a file [default: null]
    #[arg(long, value_name = "JSON|-|@FILE")]
    pub(crate) data: Option<String>,
    /// The event's id [default: a new ULID]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The id of the event that this one answers
    #[arg(long)]
    pub(crate) rid: Option<String>,
    /// How long to try until the event is acknowledged, connecting included
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

impl Publish {
    /// Whether events come from standard input, one a line.
    pub(crate) fn is_stream(&self) -> bool {
        self.domain == "-"
    }

    fn has_fields(&self) -> bool {
        [&self.name, &self.pid, &self.data, &self.id, &self.rid].into_iter().any(Option::is_some)
    }
}

/// Print events as they come; every subscriber gets each of them.
///
/// Patterns: `*` alone matches all; between dots `*` is one segment, and `>` at the end one or more.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow subscribe orders '*' --count 1")]
pub(crate) struct Subscribe {
    /// Domain or pattern
    pub(crate) domain: String,
    /// Name or pattern
    #[arg(default_value = "*")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) end: End,
}

/// Work on events; each goes to one consumer, and how it ended is recorded.
///
/// With --exec the command gets the event as JSON on its standard input, and its fields as EVENTFLOW_EVENT_ID,
/// _TIMESTAMP, _DOMAIN, _NAME, _PID, _RID, _SEQ and _ATTEMPT. Exit code 0: done; any other: failed, with the end of
/// its standard error as the reason. If the shell can't run it at all (126, 127), the event is handed back
/// and the consumer ends. Without --exec each event is printed and done.
///
/// With --count the exit code is 1 if a command failed.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow consume orders created --exec 'jq .data.total' --concurrency 4")]
pub(crate) struct Consume {
    /// Domain or pattern
    pub(crate) domain: String,
    /// Name or pattern
    #[arg(default_value = "*")]
    pub(crate) name: String,
    /// Run this for each event, by `sh -c`
    #[arg(long, value_name = "CMD")]
    pub(crate) exec: Option<String>,
    /// Commands that run at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) concurrency: u32,
    #[command(flatten)]
    pub(crate) end: End,
}

/// When to end by itself.
#[derive(Debug, Args)]
pub(crate) struct End {
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// End after so long; with --count, exit code 1 if there were fewer
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// Print the event log of one process, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow log orders order-1")]
pub(crate) struct Log {
    /// The domain
    pub(crate) domain: String,
    /// The process
    pub(crate) pid: String,
    /// At most so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// How long to wait for each answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Print one event and what became of it: published by whom, attempts, outcome.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow show 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2")]
pub(crate) struct Show {
    /// The event's id
    pub(crate) id: String,
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// `HOST:PORT`, where an IPv6 address stands in brackets.
pub(crate) fn hub_address(text: &str) -> Result<HubAddress, String> {
    let wrong = || "must be HOST:PORT, such as 127.0.0.1:50001 or [::1]:50001".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or_else(wrong)?,
        None if host.contains(':') => return Err(wrong()),
        None => host,
    };
    let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?;
    if host.is_empty() { Err(wrong()) } else { Ok(HubAddress { id: None, host: host.to_owned(), port }) }
}

/// `500ms`, `30s`, `5m`, `24h`, `7d`.
fn duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[number.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 0,
    };
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    match millis {
        // Deadlines beyond a year can overflow clocks, and mean nothing.
        Some(millis @ 1..=31_536_000_000) => Ok(Duration::from_millis(millis)),
        _ => Err("must be a number and a unit (ms, s, m, h or d), such as 30s, at most a year".to_owned()),
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
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with(&format!("Example: eventflow {}", command.get_name())), "{help}");
        }
    }

    #[test]
    fn addresses() {
        for (text, host, port) in
            [("a:1", "a", 1), ("127.0.0.1:50001", "127.0.0.1", 50001), ("[::1]:2", "::1", 2)]
        {
            assert_eq!(hub_address(text), Ok(HubAddress { id: None, host: host.to_owned(), port }));
        }
        for wrong in ["", "a", "a:", ":1", "a:0", "a:70000", "::1:2", "[::1:2", "a:b"] {
            assert!(hub_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "5", "0s", "s", "1.5s", "-1s", "5 s", "400d", "99999999999999999999s", "1é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
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
            "subscribe",
            "log orders",
            "show",
            "consume a --concurrency 0",
            "subscribe a --count 0",
        ] {
            assert!(refused(line), "{line}");
        }
        for line in ["publish -", "publish a b --data -", "subscribe a", "consume a b --exec true", "log a b"]
        {
            assert!(!refused(line), "{line}");
        }
    }
}
