//! Tells the guardian that an actor ended, by whatever way: the value is a field of the actor and dropped with it,
//! also when a panic unwinds.

use tokio::sync::mpsc;

use super::mail::mail;
use crate::metrics::{ActorKind, Meter};

/// An actor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exited {
    /// What kind of actor.
    pub kind: ActorKind,
    /// Which start of the core it belonged to.
    pub generation: u64,
    /// A panic ended it.
    pub panicked: bool,
}

/// The life of one actor. The channel behind it is bounded by the actors: each reports once.
#[derive(Debug)]
pub struct Life {
    kind: ActorKind,
    generation: u64,
    meter: Meter,
    exits: mpsc::UnboundedSender<Exited>,
}

impl Life {
    /// A life that begins now.
    #[must_use]
    pub fn begin(
        kind: ActorKind,
        generation: u64,
        meter: Meter,
        exits: mpsc::UnboundedSender<Exited>,
    ) -> Self {
        meter.spawned();
        Self { kind, generation, meter, exits }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.meter.ended();
        let Self { kind, generation, .. } = *self;
        // Without a guardian there is nobody to tell.
        let _ = self.exits.send(Exited { kind, generation, panicked: std::thread::panicking() });
    }
}

/// Ends an actor, once what it is in the middle of is done.
#[derive(Debug)]
pub struct Halt;
mail!(Halt => ());
