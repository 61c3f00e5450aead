//! A page in Markdown for each command, from the definition that parses the command line.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};

/// The words before the command that a help text shows.
const EXAMPLE: &str = "Example: ";

/// File names and texts: `README.md` for the program, `NAME.md` for a command, `NAME-SUB.md` for one below it.
pub(super) fn all(root: &Command) -> Vec<(String, String)> {
    let mut pages = vec![("README.md".to_owned(), overview(root))];
    add(root, &mut Vec::new(), &mut pages);
    pages
}

fn add<'a>(command: &'a Command, above: &mut Vec<&'a Command>, pages: &mut Vec<(String, String)>) {
    above.push(command);
    for below in visible(command) {
        pages.push((file(below, above), page(below, above)));
        add(below, above, pages);
    }
    above.pop();
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// `above` begins with the program itself.
fn file(command: &Command, above: &[&Command]) -> String {
    let names: Vec<_> = above.iter().skip(1).chain([&command]).map(|command| command.get_name()).collect();
    format!("{}.md", names.join("-"))
}

fn overview(root: &Command) -> String {
    let mut text = format!("# {}\n\n{}\n\n", root.get_name(), about(root));
    text += "<!-- Made by `eventflow docs docs/commands` from the program's own help. -->\n\n";
    usage(&mut text, root);
    text += "\n| command | |\n|---|---|\n";
    for command in visible(root) {
        let _ = writeln!(text, "| [{0}]({0}.md) | {1} |", command.get_name(), cell(&short(command)));
    }
    text += "\n## Options of every command\n";
    arguments(&mut text, root, |argument| argument.is_global_set());
    if let Some(end) = root.get_after_help() {
        // Its columns stand as they are.
        let _ = write!(text, "\n## How it ends\n```text\n{}\n```\n", end.to_string().trim_end());
    }
    text
}

fn page(command: &Command, above: &[&Command]) -> String {
    let names: Vec<_> = above.iter().chain([&command]).map(|command| command.get_name()).collect();
    let mut text = format!("# {}\n\n{}\n\n", names.join(" "), about(command));
    usage(&mut text, command);
    let below: Vec<_> = visible(command).collect();
    if !below.is_empty() {
        text += "\n| command | |\n|---|---|\n";
        let inner: Vec<_> = above.iter().copied().chain([command]).collect();
        for below in below {
            let _ = writeln!(
                text,
                "| [{}]({}) | {} |",
                below.get_name(),
                file(below, &inner),
                cell(&short(below))
            );
        }
    }
    // A global option stands with the command that declares it.
    let inherited = |argument: &Arg| {
        above.iter().any(|above| above.get_arguments().any(|other| other.get_id() == argument.get_id()))
    };
    arguments(&mut text, command, |argument| !(argument.is_global_set() && inherited(argument)));
    let mut parents = vec!["[every command](README.md)".to_owned()];
    for (depth, parent) in above.iter().enumerate().skip(1) {
        parents.push(format!("[{}]({})", parent.get_name(), file(parent, &above[..depth])));
    }
    let _ = write!(text, "\nBesides: the options of {}.\n", parents.join(" and of "));
    if let Some(example) = command.get_after_help() {
        let example = example.to_string();
        let example = example.trim().strip_prefix(EXAMPLE).unwrap_or(&example);
        let _ = write!(text, "\n## Example\n```sh\n{example}\n```\n");
    }
    text
}

fn usage(text: &mut String, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim().strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = write!(text, "```text\n{usage}\n```\n");
}

/// The tables of arguments and options, if there are any that are wanted.
fn arguments(text: &mut String, command: &Command, wanted: impl Fn(&Arg) -> bool) {
    let wanted = |argument: &&Arg| {
        let own = !["help", "version"].contains(&argument.get_id().as_str());
        own && !argument.is_hide_set() && wanted(argument)
    };
    let (positional, options): (Vec<_>, Vec<_>) =
        command.get_arguments().filter(wanted).partition(|argument| argument.is_positional());
    for (title, arguments) in [("argument", positional), ("option", options)] {
        if arguments.is_empty() {
            continue;
        }
        let _ = write!(text, "\n| {title} | |\n|---|---|\n");
        for argument in arguments {
            let _ = writeln!(text, "| {} | {} |", signature(argument), cell(&meaning(argument)));
        }
    }
}

/// `--limit N`, `-y, --yes`, `DOMAIN`.
fn signature(argument: &Arg) -> String {
    let mut words = Vec::new();
    if let Some(short) = argument.get_short() {
        words.push(format!("-{short},"));
    }
    if let Some(long) = argument.get_long() {
        words.push(format!("--{long}"));
    }
    if matches!(argument.get_action(), ArgAction::Set | ArgAction::Append) {
        match argument.get_value_names() {
            Some(names) => words.extend(names.iter().map(ToString::to_string)),
            None => words.push(argument.get_id().as_str().to_uppercase()),
        }
    }
    format!("`{}`", words.join(" ").replace('|', "\\|"))
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = help.trim().trim_end_matches('.').to_owned();
    let possible: Vec<_> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !possible.is_empty() && matches!(argument.get_action(), ArgAction::Set | ArgAction::Append) {
        let _ = write!(text, ": {}", possible.join(", "));
    }
    let defaults = argument.get_default_values();
    if !defaults.is_empty() && matches!(argument.get_action(), ArgAction::Set | ArgAction::Append) {
        let defaults: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
        let _ = write!(text, "; default `{}`", defaults.join(" "));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, "; from the environment: `{}`", variable.to_string_lossy());
    }
    text
}

fn about(command: &Command) -> String {
    command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default()
}

fn short(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// As the text of a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}
