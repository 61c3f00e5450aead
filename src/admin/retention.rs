//! `GET /retention`: what is wanted of each domain's events, and what would expire or go now.

use std::{collections::BTreeMap, fmt};

use actix_web::{HttpResponse, web};
use async_trait::async_trait;
use serde::Serialize;

use super::{
    AdminState,
    access::Operator,
    endpoint::{answer, guarded},
    problem::Problem,
};
use crate::event::Fault;

/// What retention would do now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outlook {
    /// The policies in their order: of those whose pattern matches a domain the first holds. The last one is that of all
    /// other domains.
    pub policies: Vec<PolicyOutlook>,
    /// Events that were looked at: those old enough.
    pub looked: u64,
    /// All of them were. False: there are more than one look takes, and the counts are of what was seen.
    pub complete: bool,
}

/// What one policy says, and what it comes to now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PolicyOutlook {
    /// Which domains.
    pub pattern: String,
    /// Its settings, as they are written.
    pub settings: BTreeMap<&'static str, String>,
    /// Domains that it is for and that have events, as far as something of theirs ever goes.
    pub domains: u64,
    /// Events that would expire.
    pub expires: u64,
    /// Events that would be removed, by how they stand.
    pub goes: BTreeMap<&'static str, u64>,
    /// Events old enough for something that somebody is yet to get, to end or to publish.
    pub waits: u64,
    /// Events kept long enough that an event which stays answers.
    pub answered: u64,
}

/// Looks at what retention would do.
#[async_trait]
pub trait Retention: fmt::Debug + Send + Sync {
    /// Looks now. Nothing is changed.
    ///
    /// # Errors
    /// A fault that says why it can't be told.
    async fn outlook(&self) -> Result<Outlook, Fault>;
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    config.service(guarded("/retention", "GET").route(web::get().to(retention)));
}

async fn retention(_: Operator, state: web::Data<AdminState>) -> Result<HttpResponse, Problem> {
    let outlook = state.retention.outlook().await?;
    Ok(answer(&mut HttpResponse::Ok(), &outlook))
}
