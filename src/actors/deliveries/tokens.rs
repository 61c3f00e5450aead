//! The numbers of claims, given by one counter for all groups.

use std::{cell::Cell, rc::Rc};

use crate::wire::Token;

/// Gives each claim of any group a number of its own. Clones count together.
#[derive(Debug, Clone)]
pub struct Tokens(Rc<Cell<Token>>);

impl Tokens {
    /// The first one is `last + 1`.
    #[must_use]
    pub fn after(last: Token) -> Self {
        Self(Rc::new(Cell::new(last)))
    }

    /// The next number.
    #[must_use]
    pub fn next(&self) -> Token {
        let next = self.0.get() + 1;
        self.0.set(next);
        next
    }
}
