//! The rules of one link's session, without I/O: which dialect it speaks, which numbers are in use.

use std::collections::HashMap;

use crate::{
    event::{Fault, code},
    wire::Sub,
};

/// What a number of a link stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// A subscription.
    Subscription,
    /// A consumer.
    Consumer,
}

/// What the first record of a link decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Nothing was heard yet: npm until proven otherwise.
    Unknown,
    /// npm's dialect.
    Npm,
    /// Our own.
    V1,
}

/// The state of a session.
#[derive(Debug)]
pub struct Session {
    speaks: Speaks,
    welcome: bool,
    wishes: HashMap<Sub, Wish>,
    most: usize,
}

impl Session {
    /// A fresh session with at most so many subscriptions and consumers.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { speaks: Speaks::Unknown, welcome: false, wishes: HashMap::new(), most }
    }

    /// What the link speaks.
    #[must_use]
    pub fn speaks(&self) -> Speaks {
        self.speaks
    }

    /// The first record decides.
    pub fn decide(&mut self, v1: bool) {
        if self.speaks == Speaks::Unknown {
            self.speaks = if v1 { Speaks::V1 } else { Speaks::Npm };
        }
    }

    /// A v1 client was welcomed.
    pub fn welcome(&mut self) {
        self.welcome = true;
    }

    /// Whether a v1 client was welcomed: before that it expects nothing else.
    #[must_use]
    pub fn is_welcome(&self) -> bool {
        self.welcome
    }

    /// Takes a number into use.
    ///
    /// # Errors
    /// It is in use, or there are too many.
    pub fn add(&mut self, sub: Sub, wish: Wish) -> Result<(), Fault> {
        if self.wishes.contains_key(&sub) {
            return Err(Fault::refused(
                code::SUBSCRIPTION_EXISTS,
                format!("this link has a subscription or consumer {sub} already: choose another number"),
            ));
        }
        if self.wishes.len() >= self.most {
            return Err(Fault::refused(
                code::TOO_MANY_SUBSCRIPTIONS,
                format!(
                    "this link has {} subscriptions and consumers, the most that this hub allows: use wider \
                     patterns, or another link",
                    self.most
                ),
            ));
        }
        self.wishes.insert(sub, wish);
        Ok(())
    }

    /// Gives a number back.
    ///
    /// # Errors
    /// It doesn't stand for such a wish.
    pub fn remove(&mut self, sub: Sub, wish: Wish) -> Result<(), Fault> {
        if self.wishes.get(&sub) != Some(&wish) {
            let what = match wish {
                Wish::Subscription => "subscription",
                Wish::Consumer => "consumer",
            };
            return Err(Fault::refused(
                code::UNKNOWN_SUBSCRIPTION,
                format!("this link has no {what} {sub}: use the number that it was made with"),
            ));
        }
        self.wishes.remove(&sub);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_decides_for_good() {
        let mut session = Session::new(2);
        session.decide(false);
        session.decide(true);
        assert_eq!(session.speaks(), Speaks::Npm);
    }

    #[test]
    fn numbers_are_unique_and_bounded() {
        let mut session = Session::new(2);
        session.add(1, Wish::Subscription).unwrap();
        assert_eq!(session.add(1, Wish::Consumer).unwrap_err().code, code::SUBSCRIPTION_EXISTS);
        session.add(2, Wish::Consumer).unwrap();
        assert_eq!(session.add(3, Wish::Consumer).unwrap_err().code, code::TOO_MANY_SUBSCRIPTIONS);
        assert_eq!(session.remove(2, Wish::Subscription).unwrap_err().code, code::UNKNOWN_SUBSCRIPTION);
        session.remove(2, Wish::Consumer).unwrap();
        session.add(2, Wish::Subscription).unwrap();
    }
}
