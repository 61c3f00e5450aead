//! What the hub knows of one consumer: its credit, and what it holds.

use std::collections::BTreeMap;

use crate::{
    actors::outlet::{LinkId, Outlet},
    event::Uid,
    wire::{Sub, Token},
};

/// The most outcomes of one consumer that may wait to be recorded, as a multiple of its credit: enough to keep the
/// journal's batches full, few enough that a crash makes few events come twice.
const UNRECORDED: usize = 8;

/// A consumer: a link and the number that the client gave it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerKey {
    /// Its link.
    pub link: LinkId,
    /// Its number on that link.
    pub sub: Sub,
}

/// A connected consumer.
#[derive(Debug)]
pub struct Consumer {
    /// Where its events go.
    pub outlet: Outlet,
    /// Who it is, by its certificate.
    pub uid: Uid,
    /// The binding that it serves.
    pub binding: i64,
    /// Handlers that run at once at the client: so many of what it holds are attempts under way.
    pub concurrency: usize,
    /// How long each claim is held without a word, in milliseconds.
    pub lease: u64,
    /// Gets no more events.
    pub stopped: bool,
    /// It stands in its binding's turn.
    pub queued: bool,
    /// A lease of its own was over, and it hasn't said a word of any claim since: it hangs, or its machine does. Others get
    /// what it would only let lie.
    pub silent: bool,
    credit: usize,
    credit_bytes: usize,
    /// Un-acked claims in the order in which they were handed out, with their weight.
    held: BTreeMap<Token, usize>,
    held_bytes: usize,
    /// Acked or nacked, not recorded yet.
    unrecorded: usize,
}

impl Consumer {
    /// A consumer that holds nothing.
    #[must_use]
    pub fn new(
        outlet: Outlet,
        uid: Uid,
        binding: i64,
        credit: usize,
        credit_bytes: usize,
        concurrency: usize,
        lease: u64,
    ) -> Self {
        Self {
            outlet,
            uid,
            binding,
            concurrency: concurrency.max(1),
            lease,
            stopped: false,
            queued: false,
            silent: false,
            credit: credit.max(1),
            credit_bytes,
            held: BTreeMap::new(),
            held_bytes: 0,
            unrecorded: 0,
        }
    }

    /// Whether it may get another event: its events *or* its bytes, whichever is used up first; one always fits.
    #[must_use]
    pub fn has_credit(&self) -> bool {
        !self.stopped
            && !self.silent
            && self.held.len() < self.credit
            && (self.held.is_empty() || self.held_bytes < self.credit_bytes)
            && self.unrecorded < self.credit.saturating_mul(UNRECORDED)
    }

    /// It was handed an event.
    pub fn took(&mut self, token: Token, weight: usize) {
        self.held.insert(token, weight);
        self.held_bytes += weight;
    }

    /// It acked or nacked: the credit is free again, the outcome is on its way. Returns the weight of the event.
    pub fn settled(&mut self, token: Token) -> usize {
        self.unrecorded += 1;
        self.gave_back(token)
    }

    /// It handed the event back, or the outcome couldn't be recorded. Returns the weight of the event.
    pub fn gave_back(&mut self, token: Token) -> usize {
        let weight = self.held.remove(&token).unwrap_or(0);
        self.held_bytes -= weight;
        weight
    }

    /// Whether it holds no event un-acked.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    /// An outcome of its own was recorded or refused.
    pub fn recorded(&mut self) {
        self.unrecorded = self.unrecorded.saturating_sub(1);
    }

    /// Its un-acked claims, oldest first.
    pub fn held(&self) -> impl Iterator<Item = Token> + '_ {
        self.held.keys().copied()
    }

    /// What its un-acked claims count for, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Events that it may hold un-acked.
    #[must_use]
    pub fn credit(&self) -> usize {
        self.credit
    }

    /// Its outcomes that are on their way to the database.
    #[must_use]
    pub fn unrecorded(&self) -> usize {
        self.unrecorded
    }

    /// Whether it holds or awaits nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.held.is_empty() && self.unrecorded == 0
    }
}
