//! The whole cast at one moment: numbers and states, by kind of actor.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{ActorKind, Label, Metrics, MetricsSnapshot, snapshot::ActorSnapshot};

/// What every kind of actor told about itself, for people who look into a running hub.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ActorsReport {
    /// By the kind's name.
    pub actors: BTreeMap<&'static str, ActorReport>,
}

/// One kind of actor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ActorReport {
    /// Whether it told its state.
    pub answer: Told,
    /// Its state, if it told it: a JSON object whose shape may change with each version.
    pub state: Option<Value>,
    /// Its numbers, which need no answer.
    pub numbers: ActorSnapshot,
}

/// Whether an actor told its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Told {
    /// In time.
    InTime,
    /// It didn't answer in time: it is busy, or stuck.
    Late,
    /// There is none at the moment: it failed and is being made anew, or the hub stops.
    Gone,
}

impl ActorsReport {
    /// The numbers of all kinds, with the states that were told. Who isn't among them counts as gone.
    pub(crate) fn new(metrics: &Metrics, mut states: BTreeMap<&'static str, (Told, Option<Value>)>) -> Self {
        let MetricsSnapshot { actors, .. } = metrics.snapshot();
        let report = |(kind, numbers)| {
            let (answer, state) = states.remove(kind).unwrap_or((Told::Gone, None));
            (kind, ActorReport { answer, state, numbers })
        };
        Self { actors: actors.into_iter().map(report).collect() }
    }

    /// The entry of this kind of actor.
    #[must_use]
    pub fn actor(&self, kind: ActorKind) -> Option<&ActorReport> {
        self.actors.get(kind.as_str())
    }
}
