//! Reading the event log of one process, page by page.

use std::{fmt, sync::Arc};

use super::{
    ReadError,
    command::{Command, Failure, Found, Port, Query, Unanswered},
};
use crate::{
    event::{Domain, Event, Pid, code},
    wire::{Answer, LogOf},
};

/// Events of one page, if the caller doesn't say.
const PAGE: u32 = 1000;

/// Reads the log of one process in order, a page at a time.
pub struct LogReader {
    port: Arc<Port>,
    domain: String,
    pid: String,
    page: Option<String>,
    limit: u32,
}

impl LogReader {
    pub(super) fn new(port: Arc<Port>, domain: &str, pid: &str) -> Self {
        Self { port, domain: domain.to_owned(), pid: pid.to_owned(), page: Some(String::new()), limit: PAGE }
    }

    /// At most so many events a page, 1 to 1,000 (default); the hub's own limits hold too.
    #[must_use]
    pub fn page_size(mut self, events: u32) -> Self {
        self.limit = events.clamp(1, PAGE);
        self
    }

    /// The next events, oldest first. None: that was all. A page that fails can be asked for again.
    ///
    /// # Errors
    /// [`ReadError`] if the domain or pid breaks the rules, the hub refuses or doesn't answer in time.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Event>>, ReadError> {
        let Some(page) = self.page.clone() else { return Ok(None) };
        let query = Query::Log {
            query: LogOf::Process {
                domain: Domain::parse(self.domain.as_str())?,
                pid: Pid::parse(self.pid.as_str())?,
            }
            .into(),
            page,
            limit: self.limit,
        };
        let Found { events, answer } = self.port.query(query).await?;
        self.page = match answer {
            Answer::Page(next) if !next.is_empty() => Some(next),
            _ => None,
        };
        Ok((self.page.is_some() || !events.is_empty()).then_some(events))
    }

    /// The events from here on, at most `max` of them; what is left can still be read.
    ///
    /// # Errors
    /// As [`LogReader::next_page`]; what was read before is dropped.
    pub async fn collect(&mut self, max: usize) -> Result<Vec<Event>, ReadError> {
        let page_size = self.limit;
        let mut events = Vec::new();
        while events.len() < max {
            // The last page is cut to what is missing, so that none is read that isn't given out.
            let missing = u32::try_from(max - events.len()).unwrap_or(u32::MAX);
            self.limit = page_size.min(missing);
            let page = self.next_page().await;
            self.limit = page_size;
            match page? {
                Some(page) => events.extend(page),
                None => break,
            }
        }
        Ok(events)
    }
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("domain", &self.domain)
            .field("pid", &self.pid)
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}

impl Port {
    pub(super) async fn query(&self, query: Query) -> Result<Found, ReadError> {
        let id = match &query {
            Query::Read(id) | Query::Show(id) => Some(id.to_string()),
            Query::Log { .. } => None,
        };
        let answered = self.ask(|answer| Command::Query { query, answer }).await;
        answered.map_err(|unanswered| match (unanswered, id) {
            (Unanswered::TimedOut(waited), _) => ReadError::TimedOut { waited },
            (Unanswered::Failed(Failure::Closed(fault)), _) => ReadError::Closed(fault),
            (Unanswered::Failed(Failure::Refused(fault)), Some(id))
                if fault.code == code::EVENT_NOT_FOUND =>
            {
                ReadError::NotFound { id }
            }
            (Unanswered::Failed(Failure::Refused(fault) | Failure::LinkLost(fault)), _) => {
                ReadError::Refused(fault)
            }
        })
    }
}
