//! What all consumers of a link hold together, of whatever groups they are: each has its own credit, but a link that is
//! handed more than may wait to be sent on it would be cut, however fast it reads.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use super::consumer::Consumer;
use crate::actors::outlet::LinkId;

/// Un-acked bytes of each link, and the most that they may be. Clones count together.
#[derive(Debug, Clone)]
pub struct Budget {
    held: Rc<RefCell<HashMap<LinkId, usize>>>,
    most: usize,
}

impl Budget {
    /// Nobody holds anything; a link may hold about `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { held: Rc::default(), most }
    }

    /// Whether a consumer may get another event: within its own credit, and within the bytes of its link unless it
    /// holds nothing.
    #[must_use]
    pub fn allows(&self, consumer: &Consumer) -> bool {
        consumer.has_credit() && (consumer.holds_nothing() || !self.is_spent(consumer.outlet.id()))
    }

    /// The link was handed so many bytes.
    pub fn took(&self, link: LinkId, bytes: usize) {
        *self.held.borrow_mut().entry(link).or_default() += bytes;
    }

    /// The link holds so many bytes less. True: it had all that it may, which held its consumers back.
    pub fn freed(&self, link: LinkId, bytes: usize) -> bool {
        let held_back = self.is_spent(link);
        let mut all = self.held.borrow_mut();
        if let Some(held) = all.get_mut(&link) {
            *held = held.saturating_sub(bytes);
            if *held == 0 {
                all.remove(&link);
            }
        }
        held_back
    }

    /// The link is gone.
    pub fn forget(&self, link: LinkId) {
        self.held.borrow_mut().remove(&link);
    }

    fn is_spent(&self, link: LinkId) -> bool {
        self.held.borrow().get(&link).is_some_and(|held| *held >= self.most)
    }
}
