//! The command line of the hub: a few words of its own, and a flag for every setting.

use std::ffi::OsString;

use eventflow::config::{Flag, help as settings};

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Run,
    Check,
    Help,
    HelpMarkdown,
    Version,
}

/// The command line, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) action: Action,
    pub(crate) config: Option<String>,
    /// Checked by the configuration, which knows the settings.
    pub(crate) flags: Vec<Flag>,
}

impl Arguments {
    /// Takes the arguments apart; the error is a sentence.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut parsed = Self { action: Action::Run, config: None, flags: Vec::new() };
        let mut rest = arguments.into_iter().peekable();
        while let Some(argument) = rest.next() {
            let argument = text(argument)?;
            let action = match argument.as_str() {
                "--help" | "-h" => Some(Action::Help),
                "--help-markdown" => Some(Action::HelpMarkdown),
                "--version" | "-V" => Some(Action::Version),
                "--check" => Some(Action::Check),
                _ => None,
            };
            if let Some(action) = action {
                // Help is given whatever else is asked for.
                parsed.action = if parsed.action == Action::Help { Action::Help } else { action };
                continue;
            }
            let Some(flag) = argument.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
                return Err(format!(
                    "{argument:?} is no flag of the hub; `eventflow-hub --help` lists them, and `eventflow` is the \
                     program for publish, subscribe, consume, log and show"
                ));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => {
                    let next = rest.next_if(|next| !next.to_string_lossy().starts_with("--"));
                    (flag.to_owned(), next.map(text).transpose()?)
                }
            };
            match (name.as_str(), value) {
                ("config", Some(path)) => parsed.config = Some(path),
                ("config", None) => return Err("--config needs a value: --config FILE".to_owned()),
                (_, value) => parsed.flags.push(Flag { name, value }),
            }
        }
        Ok(parsed)
    }
}

fn text(argument: OsString) -> Result<String, String> {
    argument.into_string().map_err(|argument| format!("the argument {argument:?} is not UTF-8"))
}

/// The help text.
pub(crate) fn help() -> String {
    format!(
        "\
eventflow-hub {version}: the event broker

Usage: eventflow-hub [--config FILE] [--check] [FLAGS]

Without any flag the hub listens on 127.0.0.1:50001, keeps everything in ./eventflow-data and says
what to type next. SIGINT and SIGTERM drain and stop it.

      --config FILE      Read settings from a TOML file [env: EVENTFLOW_CONFIG]
      --check            Check the configuration, print each value with where it came from, and exit
      --help-markdown    Print the settings as a page of documentation
  -h, --help             Print this
  -V, --version          Print the version

Settings. Flags override environment variables, those override the file. --limits-ping is the variable
EVENTFLOW_LIMITS_PING and, in the file, `ping` under [limits]; so it is for every flag.
{flags}
Exit codes: 0 stopped cleanly, or the configuration is valid; 1 failed; 2 wrong configuration or usage;
69 an address or the database is in use or unavailable; 73 the data folder can't be used;
77 keys or certificates can't be used.

Example: eventflow-hub --data /var/lib/eventflow --hub-internal-port 50001 --log-format json
",
        version = env!("CARGO_PKG_VERSION"),
        flags = settings::flags(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(OsString::from))
    }

    fn flag(name: &str, value: Option<&str>) -> Flag {
        Flag { name: name.to_owned(), value: value.map(str::to_owned) }
    }

    #[test]
    fn flags_take_their_value_from_behind_a_sign_or_the_next_argument() {
        let parsed = parse("--data /a --limits-ping=5s --config f --hub-name --admin-port -1").unwrap();
        assert_eq!(parsed.action, Action::Run);
        assert_eq!(parsed.config.as_deref(), Some("f"));
        let flags = [
            flag("data", Some("/a")),
            flag("limits-ping", Some("5s")),
            flag("hub-name", None),
            flag("admin-port", Some("-1")),
        ];
        assert_eq!(parsed.flags, flags);
    }

    #[test]
    fn actions() {
        for (line, action) in [
            ("", Action::Run),
            ("--check --data a", Action::Check),
            ("-V", Action::Version),
            ("--help --check", Action::Help),
            ("--check -h", Action::Help),
            ("--help-markdown", Action::HelpMarkdown),
        ] {
            assert_eq!(parse(line).unwrap().action, action, "{line}");
        }
    }

    #[test]
    fn what_is_no_flag_is_refused() {
        for line in ["publish a b", "-p 1", "--", "--data a b"] {
            assert!(parse(line).unwrap_err().contains("is no flag of the hub"), "{line}");
        }
        assert_eq!(parse("--config").unwrap_err(), "--config needs a value: --config FILE");
    }

    #[test]
    fn help_fits_and_names_every_exit_code() {
        let help = help();
        for word in
            ["--check", "--limits-silence DURATION", "EVENTFLOW_CONFIG", "69 ", "73 ", "77 ", "Example: "]
        {
            assert!(help.contains(word), "{word}");
        }
    }
}
