//! When claims end by themselves: a table of the times until which they are held, by a clock that nobody sets.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    ops::RangeInclusive,
    time::Duration,
};

use crate::wire::Token;

/// How long a claim may be held without a word of its holder, whatever it asks for.
pub const BOUNDS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3_600);

/// Claims that are held, by the ends of their leases.
#[derive(Debug, Default)]
pub struct Leases {
    by_end: BTreeSet<(u64, Token)>,
    ends: HashMap<Token, u64>,
}

impl Leases {
    /// The claim is held until `end`, whatever was said of it before.
    pub fn hold(&mut self, token: Token, end: u64) {
        if let Some(old) = self.ends.insert(token, end) {
            self.by_end.remove(&(old, token));
        }
        self.by_end.insert((end, token));
    }

    /// The claim doesn't end by its lease any more.
    pub fn let_go(&mut self, token: Token) {
        if let Some(end) = self.ends.remove(&token) {
            self.by_end.remove(&(end, token));
        }
    }

    /// Takes out a claim whose lease is over, the one first that ended first.
    pub fn over(&mut self, steady: u64) -> Option<Token> {
        let (_, token) = *self.by_end.first().filter(|(end, _)| *end <= steady)?;
        self.let_go(token);
        Some(token)
    }

    /// Until when the claim is held.
    #[must_use]
    pub fn end(&self, token: Token) -> Option<u64> {
        self.ends.get(&token).copied()
    }

    /// When the next lease ends.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.by_end.first().map(|(end, _)| *end)
    }
}

/// What is granted of a wish, in milliseconds: none is `usual`.
#[must_use]
pub fn granted(wish: Option<u64>, usual: u64) -> u64 {
    let millis = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    wish.unwrap_or(usual).clamp(millis(BOUNDS.start()), millis(BOUNDS.end()))
}
