//! `/backlog`: how groups stand.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::{
    AdminState,
    access::Operator,
    endpoint::{answer, guarded},
    problem::Problem,
};
use crate::event::{Fault, code};

/// Knows how groups stand.
#[async_trait]
pub trait Backlogs: std::fmt::Debug + Send + Sync {
    /// All groups, or one with its bindings and consumers (empty: the default group): a list, of the form that the
    /// protocol's `backlog` answers with.
    ///
    /// # Errors
    /// There is no group of that name, or the hub can't answer now.
    async fn backlog(&self, group: Option<String>) -> Result<Value, Fault>;
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    #[serde(default)]
    group: Option<String>,
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    config.service(guarded("/backlog", "GET").route(web::get().to(backlog)));
}

async fn backlog(
    _: Operator,
    state: web::Data<AdminState>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let which = web::Query::<Which>::from_query(request.query_string()).map_err(|error| {
        let message = format!("{error}: ask by /backlog for all groups, or by /backlog?group=NAME for one");
        Problem::new(StatusCode::BAD_REQUEST, code::INVALID_RECORD, message)
    })?;
    Ok(answer(&mut HttpResponse::Ok(), &state.backlog.backlog(which.into_inner().group).await?))
}
