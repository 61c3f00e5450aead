//! Reading which events are dead in a group, page by page.

use std::{fmt, sync::Arc};

use super::{GroupError, fleet::Fleet, log::PAGE, query::Query, write::surprising};
use crate::{
    event::{Group, InvalidText, Pattern},
    wire::{Answer, Dead, DeadQuery},
};

/// Reads the dead events of a group, in the order of the events, a page at a time. Made by
/// [`ConsumerGroup::dead`](super::ConsumerGroup::dead).
#[must_use = "dead events are read by `next_page` or `collect`"]
pub struct DeadReader {
    fleet: Arc<Fleet>,
    /// What the group is called.
    called: String,
    /// The first text that breaks a rule is told by the first page.
    query: Result<DeadQuery, GroupError>,
    page: Option<String>,
    limit: u32,
}

impl DeadReader {
    pub(super) fn new(fleet: Arc<Fleet>, group: Result<Option<Group>, InvalidText>, called: String) -> Self {
        let query = group.map(|group| DeadQuery { group, ..DeadQuery::default() }).map_err(GroupError::from);
        Self { fleet, called, query, page: Some(String::new()), limit: PAGE }
    }

    /// Only events whose domain matches this pattern.
    pub fn domain(self, pattern: &str) -> Self {
        self.with(pattern, |query, pattern| query.domain = Some(pattern))
    }

    /// Only events whose name matches this pattern.
    pub fn name(self, pattern: &str) -> Self {
        self.with(pattern, |query, pattern| query.name = Some(pattern))
    }

    /// At most so many a page, 1 to 1,000 (default); the hub's own limits hold too.
    pub fn page_size(mut self, events: u32) -> Self {
        self.limit = events.clamp(1, PAGE);
        self
    }

    /// The next dead events. None: that was all. A page that fails can be asked for again.
    ///
    /// # Errors
    /// [`GroupError`] if a text breaks the rules, there is no such group, the hub refuses or doesn't answer in time.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Dead>>, GroupError> {
        let Some(page) = self.page.clone() else { return Ok(None) };
        let query = Query::Dead { query: self.query.clone()?, page, limit: self.limit };
        match self.fleet.group(&self.called, query).await? {
            Answer::Dead { dead, next } => {
                self.page = Some(next).filter(|next| !next.is_empty());
                Ok((self.page.is_some() || !dead.is_empty()).then_some(dead))
            }
            other => Err(GroupError::Refused(surprising(&other))),
        }
    }

    /// The dead events from here on, at most `max` of them; what is left can still be read.
    ///
    /// # Errors
    /// As [`DeadReader::next_page`]; what was read before is dropped.
    pub async fn collect(&mut self, max: usize) -> Result<Vec<Dead>, GroupError> {
        let page_size = self.limit;
        let mut all = Vec::new();
        while all.len() < max {
            // As a log's: none is read that isn't given out.
            let missing = u32::try_from(max - all.len()).unwrap_or(u32::MAX);
            self.limit = page_size.min(missing);
            let page = self.next_page().await;
            self.limit = page_size;
            match page? {
                Some(page) => all.extend(page),
                None => break,
            }
        }
        Ok(all)
    }

    fn with(mut self, pattern: &str, change: impl FnOnce(&mut DeadQuery, Pattern)) -> Self {
        if let Ok(query) = &mut self.query {
            match Pattern::parse(pattern) {
                Ok(pattern) => change(query, pattern),
                Err(error) => self.query = Err(error.into()),
            }
        }
        self
    }
}

impl fmt::Debug for DeadReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadReader")
            .field("query", &self.query)
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}
