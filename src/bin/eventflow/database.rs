//! Which database a command works on that needs no hub: as the hub's configuration says, or as it is named.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use eventflow::{
    config::{self, FileText, Flag, HubConfig},
    event::code,
    hub::DatabasePlace,
};

use crate::{arguments::DATA_FOLDER, failure::Failure};

/// The hub's configuration.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct HubFile {
    /// The hub's configuration, a TOML file; its variables count too, as they do for the hub
    #[arg(long, global = true, env = "EVENTFLOW_CONFIG", hide_env_values = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl HubFile {
    /// Reads it, with the process's own variables; a data folder that was named wins.
    pub(crate) fn load(&self, folder: &Path) -> Result<HubConfig, Failure> {
        let refused = |sentence: String| Failure::Misused { code: code::INVALID_CONFIG.to_owned(), sentence };
        let text = match &self.config {
            Some(path) if !path.as_os_str().is_empty() => {
                let read = fs::read_to_string(path).map_err(|error| {
                    refused(format!("the configuration {} can't be read: {error}", path.display()))
                })?;
                Some((path.display().to_string(), read))
            }
            _ => None,
        };
        let file = text.as_ref().map(|(path, text)| FileText { path, text });
        let variables = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
        let named = (folder != Path::new(DATA_FOLDER))
            .then(|| Flag { name: "data".to_owned(), value: Some(folder.display().to_string()) });
        match config::load(file, variables, named) {
            Ok(loaded) => Ok(loaded.config),
            Err(problems) => Err(refused(format!("the hub's configuration isn't valid: {problems}"))),
        }
    }
}

/// Parses a URL or a data folder.
pub(crate) fn place(text: &str) -> Result<DatabasePlace, String> {
    DatabasePlace::parse(text)
}
