//! Reading what is scheduled, page by page.

use std::{fmt, sync::Arc};

use super::{ReadError, Spoke, Timestamp, fleet::Fleet, log::PAGE, query::Query, write::surprising};
use crate::{
    event::Pattern,
    wire::{Answer, ScheduledEvent, SchedulesQuery},
};

/// Reads the events that wait for their time, first those that are due first, a page at a time. Made by
/// [`Spoke::schedules`].
#[must_use = "schedules are read by `next_page` or `collect`"]
pub struct ScheduleReader {
    fleet: Arc<Fleet>,
    /// The first text that breaks a rule is told by the first page.
    query: Result<SchedulesQuery, ReadError>,
    page: Option<String>,
    limit: u32,
}

impl ScheduleReader {
    /// Only events whose domain matches this pattern.
    pub fn domain(self, pattern: &str) -> Self {
        self.with(pattern, |query, pattern| query.domain = Some(pattern))
    }

    /// Only events whose name matches this pattern.
    pub fn name(self, pattern: &str) -> Self {
        self.with(pattern, |query, pattern| query.name = Some(pattern))
    }

    /// Only what is due at this moment or later.
    pub fn from(mut self, moment: impl Into<Timestamp>) -> Self {
        if let Ok(query) = &mut self.query {
            query.from = Some(moment.into().as_millis());
        }
        self
    }

    /// Only what is due before this moment.
    pub fn to(mut self, moment: impl Into<Timestamp>) -> Self {
        if let Ok(query) = &mut self.query {
            query.to = Some(moment.into().as_millis());
        }
        self
    }

    /// At most so many a page, 1 to 1,000 (default); the hub's own limits hold too.
    pub fn page_size(mut self, events: u32) -> Self {
        self.limit = events.clamp(1, PAGE);
        self
    }

    /// The next events. None: that was all. A page that fails can be asked for again; one may be empty though others follow.
    ///
    /// # Errors
    /// [`ReadError`] if a pattern is none, the hub refuses or doesn't answer in time.
    pub async fn next_page(&mut self) -> Result<Option<Vec<ScheduledEvent>>, ReadError> {
        let Some(page) = self.page.clone() else { return Ok(None) };
        let query = Query::Schedules { query: self.query.clone()?, page, limit: self.limit };
        match self.fleet.query(query).await?.answer {
            Answer::Schedules { events, next } => {
                self.page = Some(next).filter(|next| !next.is_empty());
                Ok((self.page.is_some() || !events.is_empty()).then_some(events))
            }
            other => Err(ReadError::Refused(surprising(&other))),
        }
    }

    /// The events from here on, at most `max` of them; what is left can still be read.
    ///
    /// # Errors
    /// As [`ScheduleReader::next_page`]; what was read before is dropped.
    pub async fn collect(&mut self, max: usize) -> Result<Vec<ScheduledEvent>, ReadError> {
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

    fn with(mut self, pattern: &str, change: impl FnOnce(&mut SchedulesQuery, Pattern)) -> Self {
        if let Ok(query) = &mut self.query {
            match Pattern::parse(pattern) {
                Ok(pattern) => change(query, pattern),
                Err(error) => self.query = Err(ReadError::Refused(error.into())),
            }
        }
        self
    }
}

impl fmt::Debug for ScheduleReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleReader")
            .field("query", &self.query)
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}

impl Spoke {
    /// A reader of the events that wait for their time, first those that are due first. Recurring schedules are listed by
    /// [`Spoke::recurring_schedules`].
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// for event in spoke.schedules().domain("orders").collect(100).await? {
    ///     println!("{} {} {}", event.due, event.id, event.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedules(&self) -> ScheduleReader {
        let fleet = self.inner.fleet.clone();
        ScheduleReader { fleet, query: Ok(SchedulesQuery::default()), page: Some(String::new()), limit: PAGE }
    }
}
