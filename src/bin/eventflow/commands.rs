//! What `consume` and `subscribe` run for an event: commands by its name.

use std::{collections::HashMap, sync::Arc};

use clap::Args;
use eventflow::{
    event::{Name, Pattern},
    spoke::Unhandled,
};

use crate::output::remark;

/// Which command to run for which event.
#[derive(Debug, Clone, Args)]
pub(crate) struct Run {
    /// Run this for each event, by `sh -c`; with --on for those of all other names
    #[arg(long, value_name = "CMD")]
    pub(crate) exec: Option<String>,
    /// Run this for each event of exactly this name; may be repeated
    #[arg(long, value_name = "NAME=CMD", value_parser = on)]
    pub(crate) on: Vec<(String, String)>,
}

fn on(text: &str) -> Result<(String, String), String> {
    let (name, command) =
        text.split_once('=').ok_or_else(|| "must be NAME=CMD, such as created='./created'".to_owned())?;
    let name = Name::parse(name).map_err(|error| error.to_string())?;
    if command.trim().is_empty() {
        return Err(format!("the command for {name:?} is empty: nothing would be done"));
    }
    Ok((name.to_string(), command.to_owned()))
}

/// Commands by the name of the event.
#[derive(Debug, Clone)]
pub(crate) struct Commands {
    by_name: HashMap<String, Arc<str>>,
    otherwise: Option<Arc<str>>,
}

impl Commands {
    /// None, if nothing is to be run at all. Of two for one name the later counts.
    pub(crate) fn of(run: Run) -> Option<Self> {
        let Run { exec, on } = run;
        if exec.is_none() && on.is_empty() {
            return None;
        }
        let by_name = on.into_iter().map(|(name, command)| (name, command.into())).collect();
        Some(Self { by_name, otherwise: exec.map(Into::into) })
    }

    /// The command for events of this name.
    pub(crate) fn get(&self, name: &str) -> Result<&Arc<str>, Unhandled> {
        let found = self.by_name.get(name).or(self.otherwise.as_ref());
        found.ok_or_else(|| Unhandled { name: name.to_owned() })
    }
}

/// Says what is allowed but hardly meant: a star that is no wildcard, a command that never runs.
pub(crate) fn doubt(domain: &str, name: &str, run: &Run) {
    for (what, pattern) in [("domain", domain), ("name", name)] {
        if let Some(doubt) = literal_star(what, pattern) {
            remark(&doubt);
        }
    }
    // A pattern that is none is refused by the hub's client, with its reason.
    let Ok(pattern) = Pattern::parse(name) else { return };
    for (on, _) in run.on.iter().filter(|(on, _)| !pattern.matches(on)) {
        remark(&format!("the command for {on:?} never runs: the name pattern {name:?} doesn't match it"));
    }
}

fn literal_star(what: &str, pattern: &str) -> Option<String> {
    let segment = pattern.split('.').find(|segment| {
        let wildcards = segment.contains('*') || segment.contains('>');
        wildcards && !["*", ">"].contains(segment)
    })?;
    let sign = if segment.contains('*') { '*' } else { '>' };
    Some(format!(
        "in the {what} pattern {pattern:?} the {sign} of {segment:?} stands for itself: `{sign}` is a wildcard only \
         as a whole segment between dots"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_command_runs_or_else_the_other() {
        let on = ["created=a", "paid=b=c"].map(|text| on(text).unwrap()).to_vec();
        let commands = Commands::of(Run { exec: None, on: on.clone() }).unwrap();
        assert_eq!(commands.get("paid").map(|command| &**command), Ok("b=c"));
        assert_eq!(commands.get("else"), Err(Unhandled { name: "else".to_owned() }));
        let commands = Commands::of(Run { exec: Some("d".to_owned()), on }).unwrap();
        assert_eq!(commands.get("else").map(|command| &**command), Ok("d"));
        assert!(Commands::of(Run { exec: None, on: Vec::new() }).is_none());
    }

    #[test]
    fn a_command_needs_a_name() {
        for wrong in ["", "created", "=a", "created=", "a\u{1}=b"] {
            assert!(on(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_star_within_a_segment_is_doubted() {
        for pattern in ["a*", "*a", "a.b*.c", "**", "a>", "a.>x"] {
            let doubt = literal_star("domain", pattern).unwrap_or_default();
            assert!(doubt.contains(pattern) && doubt.contains("stands for itself"), "{pattern}: {doubt}");
        }
        for pattern in ["*", "a.*", "*.a", "a.>", ">", "a"] {
            assert_eq!(literal_star("domain", pattern), None, "{pattern}");
        }
    }
}
