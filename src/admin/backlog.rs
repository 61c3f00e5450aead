//! `/backlog`: how groups stand.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use async_trait::async_trait;

use super::{
    AdminState,
    access::Operator,
    endpoint::{answer, guarded},
    problem::Problem,
};
use crate::{
    event::{Fault, code},
    wire::{Backlog, BacklogQuery},
};

/// Knows how groups stand.
#[async_trait]
pub trait Backlogs: std::fmt::Debug + Send + Sync {
    /// All groups, or one with its bindings and consumers.
    ///
    /// # Errors
    /// There is no group of that name, or the hub can't answer now.
    async fn backlog(&self, query: BacklogQuery) -> Result<Vec<Backlog>, Fault>;
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    config.service(guarded("/backlog", "GET").route(web::get().to(backlog)));
}

async fn backlog(
    _: Operator,
    state: web::Data<AdminState>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let query = web::Query::<BacklogQuery>::from_query(request.query_string()).map_err(|error| {
        let message = format!("{error}: ask by /backlog for all groups, or by /backlog?group=NAME for one");
        Problem::new(StatusCode::BAD_REQUEST, code::INVALID_RECORD, message)
    })?;
    Ok(answer(&mut HttpResponse::Ok(), &state.backlog.backlog(query.into_inner()).await?))
}
