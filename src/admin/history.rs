//! `POST /history`: what npm left unfinished, counted or dispatched, page by page.

use std::{collections::BTreeMap, fmt};

use actix_web::{HttpResponse, web};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AdminState,
    access::Operator,
    body::Expected,
    endpoint::{answer, guarded},
    problem::Problem,
};
use crate::event::{Fault, code};

/// What is sent.
const ASKED: Expected =
    Expected { most: 4 * 1024, code: code::INVALID_PAGE, example: r#"{"since":0,"take":false}"# };

/// What is asked of the history.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AskedHistory {
    /// What was published, or scheduled for, at this time or later, in milliseconds since 1970.
    pub since: i64,
    /// Dispatch it; else it is only counted.
    pub take: bool,
    /// Schedules too.
    pub schedules: bool,
    /// Where to go on, as the answer before says; none: at the begin.
    pub after: Option<Value>,
}

/// A page of the history.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Adopted {
    /// When a hub of ours first served the database, in milliseconds since 1970: what is older is history.
    pub first_start: i64,
    /// What the page holds, by domain and by how it was left: `published`, `claimed`, `overdue`.
    pub domains: BTreeMap<String, BTreeMap<String, u64>>,
    /// So many were dispatched.
    pub taken: u64,
    /// So many somebody else has taken meanwhile.
    pub elsewhere: u64,
    /// These break the rules for events, and stay where they are.
    pub refused: Vec<RefusedEvent>,
    /// Where to go on; none: that was all.
    pub next: Option<Value>,
}

/// An event that can't be dispatched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedEvent {
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// Looks at what npm left, and dispatches it.
#[async_trait]
pub trait Histories: fmt::Debug + Send + Sync {
    /// A page of it.
    ///
    /// # Errors
    /// A fault that says why it can't be told or dispatched.
    async fn page(&self, asked: AskedHistory) -> Result<Adopted, Fault>;
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    config.service(guarded("/history", "POST").route(web::post().to(history)));
}

async fn history(
    _: Operator,
    state: web::Data<AdminState>,
    body: web::Payload,
) -> Result<HttpResponse, Problem> {
    let asked: AskedHistory = ASKED.read(body).await?;
    let adopted = state.history.page(asked).await?;
    Ok(answer(&mut HttpResponse::Ok(), &adopted))
}
