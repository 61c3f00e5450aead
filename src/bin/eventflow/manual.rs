//! What the program tells of itself: completions for shells, man pages, and the pages in `docs/commands`.

mod page;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use eventflow::event::code;

use crate::{arguments::Cli, failure::Failure, output::Printer};

/// Print a script that completes commands and options in a shell.
///
/// bash: eventflow completions bash > ~/.local/share/bash-completion/completions/eventflow
///
/// zsh: eventflow completions zsh > a folder of $fpath, as _eventflow
///
/// fish: eventflow completions fish > ~/.config/fish/completions/eventflow.fish
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow completions bash")]
pub(crate) struct Completions {
    /// For this shell
    pub(crate) shell: Shell,
}

/// Write a man page for each command into a folder.
///
/// `man DIR/eventflow.1` shows the first of them; in the folder man1 of a path in MANPATH, `man eventflow` does.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow man man1")]
pub(crate) struct Man {
    /// The folder; it is made if it isn't there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Write a page in Markdown for each command into a folder: what docs/commands is made by.
#[derive(Debug, Args)]
#[command(hide = true, after_help = "Example: eventflow docs docs/commands")]
pub(crate) struct Docs {
    /// The folder; it is made if it isn't there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Prints the script.
pub(crate) fn completions(arguments: &Completions, mut printer: Printer) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "eventflow", &mut script);
    printer.line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(printer.flush()?)
}

/// Writes the man pages.
pub(crate) fn man(arguments: &Man, mut printer: Printer) -> Result<(), Failure> {
    let folder = &arguments.folder;
    made(folder).and_then(|()| pages_of_man(folder)).map_err(|error| cannot_write(folder, &error))?;
    printer.greet(&format!("man {} shows the first page", folder.join("eventflow.1").display()));
    Ok(printer.flush()?)
}

fn pages_of_man(folder: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), folder)
}

/// Writes the pages in Markdown.
pub(crate) fn docs(arguments: &Docs, mut printer: Printer) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let write = || {
        made(folder)?;
        for (name, text) in page::all(&definition()) {
            fs::write(folder.join(name), text)?;
        }
        Ok(())
    };
    write().map_err(|error| cannot_write(folder, &error))?;
    Ok(printer.flush()?)
}

/// The commands as they are parsed, with what they inherit.
fn definition() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn made(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

fn cannot_write(folder: &Path, error: &io::Error) -> Failure {
    Failure::new(code::INTERNAL, format!("the pages can't be written into {}: {error}", folder.display()))
}
