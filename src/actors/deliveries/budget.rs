//! What all consumers of a link hold together: each has its own credit, but a link that is handed more than may wait
//! to be sent on it would be cut, however fast it reads.

use std::collections::HashMap;

use super::consumer::Consumer;
use crate::actors::outlet::LinkId;

/// Un-acked bytes of each link, and the most that they may be.
#[derive(Debug)]
pub struct Budget {
    held: HashMap<LinkId, usize>,
    most: usize,
}

impl Budget {
    /// Nobody holds anything; a link may hold about `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { held: HashMap::new(), most }
    }

    /// Whether a consumer may get another event: within its own credit, and within the bytes of its link unless it
    /// holds nothing.
    #[must_use]
    pub fn allows(&self, consumer: &Consumer) -> bool {
        consumer.has_credit() && (consumer.holds_nothing() || !self.is_spent(consumer.outlet.id()))
    }

    /// The link was handed so many bytes.
    pub fn took(&mut self, link: LinkId, bytes: usize) {
        *self.held.entry(link).or_default() += bytes;
    }

    /// The link holds so many bytes less. True: it had all that it may, which held its consumers back.
    pub fn freed(&mut self, link: LinkId, bytes: usize) -> bool {
        let held_back = self.is_spent(link);
        if let Some(held) = self.held.get_mut(&link) {
            *held = held.saturating_sub(bytes);
            if *held == 0 {
                self.held.remove(&link);
            }
        }
        held_back
    }

    /// The link is gone.
    pub fn forget(&mut self, link: LinkId) {
        self.held.remove(&link);
    }

    fn is_spent(&self, link: LinkId) -> bool {
        self.held.get(&link).is_some_and(|held| *held >= self.most)
    }
}
