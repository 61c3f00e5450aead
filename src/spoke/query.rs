//! What the hub is asked: reads, and small changes. All but a few may be asked for twice.

use super::{
    ChangeError, GroupError, ReadError,
    command::{Failure, Found, Unanswered},
    fleet::Fleet,
};
use crate::{
    event::{Domain, EventId, Fault, Group, RecurringName, code},
    wire::{
        Answer, Association, BacklogQuery, DeadQuery, Deletion, GroupAction, LogQuery, OutcomeOptions, Recur,
        RecurChange, Redrive, Req, Request, SchedulesQuery, Wait,
    },
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
    /// How an event stands now, in this group or the default one.
    Outcome(EventId, Option<Group>),
    /// Changes this group or the default one.
    Group(Option<Group>, GroupAction),
    Backlog(BacklogQuery),
    Dead {
        query: DeadQuery,
        page: String,
        limit: u32,
    },
    Redrive(Redrive),
    Cancel(EventId),
    Recur(Box<Recur>),
    RecurChange(RecurringName, RecurChange),
    RecurRun(RecurringName, EventId),
    Schedules {
        query: SchedulesQuery,
        page: String,
        limit: u32,
    },
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
    /// These events; none: all that the hub finds.
    Nudge(Vec<EventId>),
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
            Query::Outcome(id, group) => {
                Request::Outcome { req, id, options: OutcomeOptions { group, timeout_ms: 0 } }
            }
            Query::Group(group, action) => Request::Group { req, group, action },
            Query::Backlog(query) => Request::Backlog { req, query },
            Query::Dead { query, page, limit } => Request::Dead { req, query, page, limit },
            Query::Redrive(what) => Request::Redrive { req, what },
            Query::Cancel(id) => Request::Cancel { req, id },
            Query::Recur(recur) => Request::Recur { req, recur },
            Query::RecurChange(name, change) => Request::RecurChange { req, name, change },
            Query::RecurRun(name, id) => Request::RecurRun { req, name, id },
            Query::Schedules { query, page, limit } => Request::Schedules { req, query, page, limit },
            Query::RecurList { page, limit } => Request::RecurList { req, page, limit },
            Query::RecurShow { name, runs } => Request::RecurShow { req, name, runs },
            Query::Associate(id, with) => Request::Associate { req, id, with },
            Query::Dissociate(id, with) => Request::Dissociate { req, id, with },
            Query::Delete(what) => Request::Delete { req, what },
            Query::Nudge(ids) => Request::Nudge { req, ids },
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
                | Query::Nudge(_)
                | Query::Group(..)
                | Query::Redrive(_)
        )
    }

    /// Whether each hub has a part in it, of several.
    pub(super) fn concerns_all(&self) -> bool {
        matches!(self, Query::Group(..) | Query::Backlog(_) | Query::Redrive(Redrive { id: None, .. }))
    }

    /// Whether it may be sent again when the link is lost before its answer. What waits by then, what a log has got since,
    /// a group or a binding that somebody has made anew (consumers that come back do) isn't what was meant; and "none was
    /// there" is no true answer to whom it was done for. What has a name that only its owner gives, a recurring schedule, is
    /// removed whenever it is asked.
    pub(super) fn is_repeatable(&self) -> bool {
        !matches!(
            self,
            Query::Group(_, GroupAction::Purge {} | GroupAction::Remove {} | GroupAction::Unbind { .. })
                | Query::Delete(Deletion::Log { .. })
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
            | Query::Outcome(id, _)
            | Query::Cancel(id)
            | Query::Associate(id, _)
            | Query::Dissociate(id, _)
            | Query::Delete(Deletion::Event { id })
            | Query::Redrive(Redrive { id: Some(id), .. }) => Some(id.to_string()),
            _ => None,
        }
    }
}

impl Fleet {
    /// Asks for a read.
    pub(super) async fn query(&self, query: Query) -> Result<Found, ReadError> {
        let id = query.id();
        let answered = self.ask(query).await;
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
        let answered = self.ask(query).await;
        answered.map(|found| found.answer).map_err(|unanswered| match (unanswered, id) {
            (Unanswered::TimedOut(waited), _) => ChangeError::TimedOut { waited },
            (Unanswered::Failed(Failure::Closed(fault)), _) => ChangeError::Closed(fault),
            (Unanswered::Failed(Failure::Refused(fault)), Some(id))
                if fault.code == code::EVENT_NOT_FOUND =>
            {
                ChangeError::NotFound { id }
            }
            (Unanswered::Failed(Failure::LinkLost(fault)), _) => ChangeError::LinkLost(fault),
            (Unanswered::Failed(Failure::Refused(fault)), _) => ChangeError::Refused(fault),
        })
    }
    /// Asks about a group, or for a change of it; `group` is what it is called.
    pub(super) async fn group(&self, group: &str, query: Query) -> Result<Answer, GroupError> {
        let id = query.id();
        let answered = self.ask(query).await;
        answered.map(|found| found.answer).map_err(|unanswered| match (unanswered, id) {
            (Unanswered::TimedOut(waited), _) => GroupError::TimedOut { waited },
            (Unanswered::Failed(Failure::Closed(fault)), _) => GroupError::Closed(fault),
            (Unanswered::Failed(Failure::Refused(fault)), Some(id))
                if fault.code == code::EVENT_NOT_FOUND =>
            {
                GroupError::EventNotFound { id }
            }
            (Unanswered::Failed(Failure::Refused(fault)), _) if fault.code == code::GROUP_NOT_FOUND => {
                GroupError::NotFound { group: group.to_owned() }
            }
            (Unanswered::Failed(Failure::LinkLost(fault)), _) => GroupError::LinkLost(fault),
            (Unanswered::Failed(Failure::Refused(fault)), _) => GroupError::Refused(fault),
        })
    }
}
