//! Reading event logs, page by page.

use std::{fmt, sync::Arc};

use super::{ReadError, Spoke, Timestamp, command::Found, fleet::Fleet, query::Query};
use crate::{
    event::{Domain, Eid, Event, InvalidText, Name, Pid},
    wire::{Answer, LogOf, LogQuery, MOST_NAMES},
};

/// Events of one page, if the caller doesn't say.
pub(super) const PAGE: u32 = 1000;

/// Reads a log in order, a page at a time: of a process, of a child process, of an entity or of a domain.
///
/// ```no_run
/// use std::time::{Duration, SystemTime};
/// use eventflow::spoke::Spoke;
///
/// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
/// let hour_ago = SystemTime::now() - Duration::from_secs(3600);
/// let mut log = spoke.log("orders", "order-1").names(["paid", "shipped"]).from(hour_ago);
/// while let Some(page) = log.next_page().await? {
///     page.iter().for_each(|event| println!("{} {}", event.timestamp, event.name));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a log is read by `next_page` or `collect`"]
pub struct LogReader {
    fleet: Arc<Fleet>,
    /// The first text that breaks a rule is told by the first page.
    query: Result<LogQuery, ReadError>,
    page: Option<String>,
    limit: u32,
}

impl LogReader {
    fn new(fleet: Arc<Fleet>, of: Result<LogOf, InvalidText>) -> Self {
        let query = of.map(LogQuery::from).map_err(ReadError::from);
        Self { fleet, query, page: Some(String::new()), limit: PAGE }
    }

    /// Only events of one of these names, at most 64.
    pub fn names<N: AsRef<str>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.with(|query| {
            for name in names {
                query.names.push(Name::parse(name.as_ref())?);
            }
            match query.names.len() {
                count if count > MOST_NAMES => Err(ReadError::Names { count }),
                _ => Ok(()),
            }
        })
    }

    /// Only events of this moment or later: a `SystemTime`, or milliseconds since 1970.
    pub fn from(self, moment: impl Into<Timestamp>) -> Self {
        self.with(|query| {
            query.from = Some(moment.into().as_millis());
            Ok(())
        })
    }

    /// Only events before this moment, itself excluded: a `SystemTime`, or milliseconds since 1970.
    pub fn to(self, moment: impl Into<Timestamp>) -> Self {
        self.with(|query| {
            query.to = Some(moment.into().as_millis());
            Ok(())
        })
    }

    /// Of an entity's log only the events of this domain. Any other log has a domain already: this one takes its
    /// place.
    pub fn domain(self, name: &str) -> Self {
        self.with(|query| {
            let wanted = Domain::parse(name)?;
            match &mut query.of {
                LogOf::Entity { domain, .. } => *domain = Some(wanted),
                LogOf::Process { domain, .. }
                | LogOf::ChildProcess { domain, .. }
                | LogOf::Domain { domain } => *domain = wanted,
            }
            Ok(())
        })
    }

    /// At most so many events a page, 1 to 1,000 (default); the hub's own limits hold too.
    pub fn page_size(mut self, events: u32) -> Self {
        self.limit = events.clamp(1, PAGE);
        self
    }

    /// The next events in the log's order. None: that was all. A page that fails can be asked for again.
    ///
    /// # Errors
    /// [`ReadError`] if a text breaks the rules, the hub refuses or doesn't answer in time.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Event>>, ReadError> {
        let Some(page) = self.page.clone() else { return Ok(None) };
        let query = Query::Log { query: self.query.clone()?, page, limit: self.limit };
        let Found { events, answer } = self.fleet.query(query).await?;
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

    fn with(mut self, change: impl FnOnce(&mut LogQuery) -> Result<(), ReadError>) -> Self {
        if let Ok(query) = &mut self.query
            && let Err(error) = change(query)
        {
            self.query = Err(error);
        }
        self
    }
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("query", &self.query)
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}

impl Spoke {
    /// A reader of the log of the process `pid` in `domain`, oldest event first.
    pub fn log(&self, domain: &str, pid: &str) -> LogReader {
        let of =
            Domain::parse(domain).and_then(|domain| Ok(LogOf::Process { domain, pid: Pid::parse(pid)? }));
        LogReader::new(self.inner.fleet.clone(), of)
    }

    /// A reader of the events that are associated with the child process `cpid` of `domain`, oldest first.
    pub fn child_log(&self, domain: &str, cpid: &str) -> LogReader {
        let of = Domain::parse(domain)
            .and_then(|domain| Ok(LogOf::ChildProcess { domain, cpid: Pid::parse(cpid)? }));
        LogReader::new(self.inner.fleet.clone(), of)
    }

    /// A reader of the events that are associated with the entity `eid`, oldest first; of all domains, unless
    /// [`LogReader::domain`] names one.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let orders = spoke.entity_log("customer-4").domain("orders").collect(100).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn entity_log(&self, eid: &str) -> LogReader {
        let of = Eid::parse(eid).map(|eid| LogOf::Entity { eid, domain: None });
        LogReader::new(self.inner.fleet.clone(), of)
    }

    /// A reader of all events of a domain, **newest first**.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let latest = spoke.domain_log("orders").collect(10).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn domain_log(&self, domain: &str) -> LogReader {
        let of = Domain::parse(domain).map(|domain| LogOf::Domain { domain });
        LogReader::new(self.inner.fleet.clone(), of)
    }
}
