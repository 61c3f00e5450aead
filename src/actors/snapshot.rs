//! What an actor tells about itself, for people who look into a running hub.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::mail::mail;

/// Rows of one list in a state, at most: a state is to be read, and bounded.
pub const MOST_ROWS: usize = 100;

/// Asks an actor for its state. Each has a shape of its own; what grows with use is cut at [`MOST_ROWS`] and counted.
#[derive(Debug)]
pub struct Snapshot;
mail!(Snapshot => State);

/// The answer: a JSON object.
#[derive(Debug, actix::MessageResponse)]
pub struct State(pub Value);

impl State {
    /// Takes what an actor told.
    #[must_use]
    pub fn of<T: Serialize>(told: &T) -> Self {
        // Only maps whose keys are no text fail, and none of ours has such.
        Self(serde_json::to_value(told).unwrap_or_else(|error| Value::String(error.to_string())))
    }
}

/// Lets an actor take nothing out of its mailbox for so long, to show that nobody else waits for it.
#[derive(Debug, Clone, Copy)]
pub struct Stall(pub Duration);
mail!(Stall => ());
