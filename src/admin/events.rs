//! `/events/{id}`: what became of an event.

use actix_web::{HttpResponse, web};
use async_trait::async_trait;
use serde_json::value::RawValue;

use super::{
    AdminState,
    access::Operator,
    endpoint::{answer, guarded},
    problem::Problem,
};
use crate::event::Fault;

/// Knows the life of each event.
#[async_trait]
pub trait Events: std::fmt::Debug + Send + Sync {
    /// The event of this id and what became of it: `{"event": …, "trace": …}`, the trace of the form that the protocol's
    /// `show` answers with. As text, since an event's data is told as it is.
    ///
    /// # Errors
    /// There is no such event, or the hub can't answer now.
    async fn life(&self, id: &str) -> Result<Box<RawValue>, Fault>;
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    config.service(guarded("/events/{id}", "GET").route(web::get().to(life)));
}

async fn life(
    _: Operator,
    state: web::Data<AdminState>,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    Ok(answer(&mut HttpResponse::Ok(), &state.events.life(&id).await?))
}
