//! Reading which processes a domain has events of, page by page.

use std::{fmt, sync::Arc};

use super::{ReadError, Spoke, fleet::Fleet, log::PAGE, query::Query, write::surprising};
use crate::{
    event::{Domain, Pid},
    wire::Answer,
};

/// Reads the processes of a domain in rising order, each once, a page at a time.
#[must_use = "processes are read by `next_page` or `collect`"]
pub struct PidReader {
    fleet: Arc<Fleet>,
    domain: String,
    page: Option<String>,
    limit: u32,
}

impl PidReader {
    /// At most so many a page, 1 to 1,000 (default); the hub's own limits hold too.
    pub fn page_size(mut self, pids: u32) -> Self {
        self.limit = pids.clamp(1, PAGE);
        self
    }

    /// The next processes. None: that was all. A page that fails can be asked for again.
    ///
    /// # Errors
    /// [`ReadError`] if the domain breaks the rules, the hub refuses or doesn't answer in time.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Pid>>, ReadError> {
        let Some(page) = self.page.clone() else { return Ok(None) };
        let domain = Domain::parse(self.domain.as_str())?;
        let query = Query::Pids { domain, page, limit: self.limit };
        match self.fleet.query(query).await?.answer {
            Answer::Pids { pids, next } => {
                self.page = Some(next).filter(|next| !next.is_empty());
                Ok((self.page.is_some() || !pids.is_empty()).then_some(pids))
            }
            other => Err(ReadError::Refused(surprising(&other))),
        }
    }

    /// The processes from here on, at most `max` of them; what is left can still be read.
    ///
    /// # Errors
    /// As [`PidReader::next_page`]; what was read before is dropped.
    pub async fn collect(&mut self, max: usize) -> Result<Vec<Pid>, ReadError> {
        let page_size = self.limit;
        let mut pids = Vec::new();
        while pids.len() < max {
            // As a log's: none is read that isn't given out.
            let missing = u32::try_from(max - pids.len()).unwrap_or(u32::MAX);
            self.limit = page_size.min(missing);
            let page = self.next_page().await;
            self.limit = page_size;
            match page? {
                Some(page) => pids.extend(page),
                None => break,
            }
        }
        Ok(pids)
    }
}

impl fmt::Debug for PidReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PidReader")
            .field("domain", &self.domain)
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}

impl Spoke {
    /// A reader of the processes that a domain has events of.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut pids = spoke.pids("orders");
    /// while let Some(page) = pids.next_page().await? {
    ///     page.iter().for_each(|pid| println!("{pid}"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn pids(&self, domain: &str) -> PidReader {
        let fleet = self.inner.fleet.clone();
        PidReader { fleet, domain: domain.to_owned(), page: Some(String::new()), limit: PAGE }
    }
}
