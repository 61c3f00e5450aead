//! What the hub is asked: reads, and small changes that may be asked for twice.

use super::{
    ChangeError, ReadError,
    command::{Command, Failure, Found, Port, Unanswered},
};
use crate::{
    event::{Domain, EventId, Fault, RecurringName, code},
    wire::{Answer, Association, Deletion, LogQuery, OutcomeOptions, Recur, RecurChange, Req, Request, Wait},
};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Query {
    Read(EventId),
    Log {
        query: LogQuery,
        page: String,
        limit: u32,
    },
    Pids {
        domain: Domain,
        page: String,
        limit: u32,
    },
    Show(EventId),
    /// A look at what is there; one that takes its time is a wait.
    Wait(Wait),
    /// How an event stands now.
    Outcome(EventId),
    Cancel(EventId),
    Recur(Box<Recur>),
    RecurChange(RecurringName, RecurChange),
    RecurRun(RecurringName, EventId),
    RecurList {
        page: String,
        limit: u32,
    },
    RecurShow {
        name: RecurringName,
        runs: u32,
    },
    Associate(EventId, Association),
    Dissociate(EventId, Association),
    Delete(Deletion),
    /// With a public key.
    Renew(String),
}

impl Query {
    pub(super) fn request(&self, req: Req) -> Request {
        match self.clone() {
            Query::Read(id) => Request::Read { req, id },
            Query::Log { query, page, limit } => Request::Log { req, query, page, limit },
            Query::Pids { domain, page, limit } => Request::Pids { req, domain, page, limit },
            Query::Show(id) => Request::Show { req, id },
            Query::Wait(wait) => Request::Wait { req, wait },
            Query::Outcome(id) => {
                Request::Outcome { req, id, options: OutcomeOptions { group: None, timeout_ms: 0 } }
            }
            Query::Cancel(id) => Request::Cancel { req, id },
            Query::Recur(recur) => Request::Recur { req, recur },
            Query::RecurChange(name, change) => Request::RecurChange { req, name, change },
            Query::RecurRun(name, id) => Request::RecurRun { req, name, id },
            Query::RecurList { page, limit } => Request::RecurList { req, page, limit },
            Query::RecurShow { name, runs } => Request::RecurShow { req, name, runs },
            Query::Associate(id, with) => Request::Associate { req, id, with },
            Query::Dissociate(id, with) => Request::Dissociate { req, id, with },
            Query::Delete(what) => Request::Delete { req, what },
            Query::Renew(key) => Request::Renew { req, key },
        }
    }

    /// Whether the hub writes for it: what it refuses for now is then asked again.
    pub(super) fn changes(&self) -> bool {
        matches!(
            self,
            Query::Cancel(_)
                | Query::Recur(_)
                | Query::RecurChange(..)
                | Query::RecurRun(..)
                | Query::Associate(..)
                | Query::Dissociate(..)
                | Query::Delete(_)
        )
    }

    /// The answer that a refusal stands for once it was asked twice: what is to be taken away is gone, most likely
    /// by the first time.
    pub(super) fn done_before(&self, fault: &Fault) -> Option<Answer> {
        match (self, fault.code.as_str()) {
            (Query::Delete(Deletion::Event { .. }), code::EVENT_NOT_FOUND) => Some(Answer::Deleted(1)),
            (Query::Cancel(_), code::SCHEDULE_NOT_FOUND)
            | (Query::RecurChange(_, RecurChange::Remove), code::RECURRING_NOT_FOUND) => Some(Answer::Done),
            _ => None,
        }
    }

    /// The event that it is about.
    fn id(&self) -> Option<String> {
        match self {
            Query::Read(id)
            | Query::Show(id)
            | Query::Outcome(id)
            | Query::Cancel(id)
            | Query::Associate(id, _)
            | Query::Dissociate(id, _)
            | Query::Delete(Deletion::Event { id }) => Some(id.to_string()),
            Query::Log { .. }
            | Query::Pids { .. }
            | Query::Recur(_)
            | Query::RecurChange(..)
            | Query::RecurRun(..)
            | Query::RecurList { .. }
            | Query::RecurShow { .. }
            | Query::Wait(_)
            | Query::Delete(_)
            | Query::Renew(_) => None,
        }
    }
}

impl Port {
    /// Asks for a read.
    pub(super) async fn query(&self, query: Query) -> Result<Found, ReadError> {
        let id = query.id();
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

    /// Asks for a change.
    pub(super) async fn change(&self, query: Query) -> Result<Answer, ChangeError> {
        let id = query.id();
        let answered = self.ask(|answer| Command::Query { query, answer }).await;
        answered.map(|found| found.answer).map_err(|unanswered| match (unanswered, id) {
            (Unanswered::TimedOut(waited), _) => ChangeError::TimedOut { waited },
            (Unanswered::Failed(Failure::Closed(fault)), _) => ChangeError::Closed(fault),
            (Unanswered::Failed(Failure::Refused(fault)), Some(id))
                if fault.code == code::EVENT_NOT_FOUND =>
            {
                ChangeError::NotFound { id }
            }
            (Unanswered::Failed(Failure::Refused(fault) | Failure::LinkLost(fault)), _) => {
                ChangeError::Refused(fault)
            }
        })
    }
}
