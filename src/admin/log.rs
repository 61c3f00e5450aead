//! `GET /log` and `PUT /log`: how much the program's log tells, looked at and changed while it runs.

use actix_web::{HttpResponse, http::StatusCode, web};
use serde::Deserialize;
use serde_json::json;

use super::{
    AdminState,
    access::Operator,
    body::Expected,
    endpoint::{answer, guarded},
    problem::Problem,
};
use crate::event::code;

/// What says which filter is wanted.
const FILTER: Expected =
    Expected { most: 4 * 1024, code: code::INVALID_CONFIG, example: r#"{"level":"debug"}"# };

/// Who owns the program's log, and can change how much it tells. A hub installs no subscriber of its own, so this is
/// the host's to give: [`HubBuilder::log_control`](crate::hub::HubBuilder::log_control).
pub trait LogControl: std::fmt::Debug + Send + Sync {
    /// The filter in force.
    fn filter(&self) -> String;

    /// Puts a filter into force: a level (`error`, `warn`, `info`, `debug`, `trace`), or whatever else the host
    /// understands, such as `eventflow=debug,info`.
    ///
    /// # Errors
    /// A sentence: what is wrong with it, and what is expected. The old filter stays.
    fn set_filter(&self, filter: &str) -> Result<(), String>;
}

/// What is sent to change it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    level: String,
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    config.service(guarded("/log", "GET, PUT").route(web::get().to(shown)).route(web::put().to(change)));
}

async fn shown(_: Operator, state: web::Data<AdminState>) -> Result<HttpResponse, Problem> {
    Ok(tell(control(&state)?))
}

async fn change(
    _: Operator,
    state: web::Data<AdminState>,
    body: web::Payload,
) -> Result<HttpResponse, Problem> {
    let control = control(&state)?;
    let wanted: Wanted = FILTER.read(body).await?;
    let before = control.filter();
    control.set_filter(wanted.level.trim()).map_err(refused)?;
    tracing::info!(before, now = control.filter(), "the log level was changed");
    Ok(tell(control))
}

fn control(state: &AdminState) -> Result<&dyn LogControl, Problem> {
    state.log.as_deref().ok_or_else(|| {
        let message = "this hub lives in a program that keeps its log to itself: change the level there";
        Problem::new(StatusCode::NOT_IMPLEMENTED, code::UNSUPPORTED, message)
    })
}

fn tell(control: &dyn LogControl) -> HttpResponse {
    answer(&mut HttpResponse::Ok(), &json!({ "filter": control.filter() }))
}

fn refused(sentence: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, code::INVALID_CONFIG, sentence)
}
