//! The endpoints; `admin.rs` lists them.

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{ACCEPT, ALLOW, ContentType, VARY},
    },
    web,
};
use serde::Serialize;
use serde_json::json;

use super::{
    AdminState, access::Operator, backlog, backup, certificates, events, history, log, problem::Problem,
    retention, status,
};
use crate::{event::code, metrics};

/// What is served to everybody, for those who ask for something else.
pub(super) const OPEN: &str = "GET /livez, /readyz and /metrics";

pub(super) fn all(config: &mut web::ServiceConfig) {
    config
        .service(open("/livez").route(web::get().to(livez)).route(web::head().to(livez)))
        .service(open("/readyz").route(web::get().to(readyz)).route(web::head().to(readyz)))
        .service(open("/metrics").route(web::get().to(numbers)).route(web::head().to(numbers)))
        .configure(status::endpoints)
        .configure(backlog::endpoints)
        .configure(events::endpoints)
        .configure(retention::endpoints)
        .configure(history::endpoints)
        .configure(log::endpoints)
        .configure(backup::endpoints)
        .configure(certificates::endpoints)
        .default_service(web::to(unknown));
}

/// A resource without token. A method that it doesn't have is 405, as a token wouldn't help.
fn open(path: &str) -> actix_web::Resource {
    web::resource(path).default_service(web::to(other_method))
}

/// A resource that needs the token, for another method too. `methods` are those that it has.
pub(super) fn guarded(path: &str, methods: &'static str) -> actix_web::Resource {
    let refuse = move |_: Operator, request: HttpRequest| async move { method_refused(&request, methods) };
    web::resource(path).default_service(web::to(refuse))
}

/// Answers by JSON that ends its line: it is read in terminals too.
pub(super) fn answer<T: Serialize>(response: &mut HttpResponseBuilder, value: &T) -> HttpResponse {
    match serde_json::to_string(value) {
        Ok(text) => response.content_type(ContentType::json()).body(text + "\n"),
        // Only maps whose keys are no text fail, and none of ours has such.
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}

async fn livez() -> HttpResponse {
    answer(&mut HttpResponse::Ok(), &json!({ "state": "alive" }))
}

async fn readyz(state: web::Data<AdminState>) -> HttpResponse {
    let readiness = state.ready.borrow().clone();
    let status = if readiness.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer(
        HttpResponse::build(status).insert_header(("cache-control", "no-store")),
        &json!({ "state": readiness.to_string(), "reason": readiness.reason() }),
    )
}

/// OpenMetrics for those who ask for it, as Prometheus does; the older text format for all others.
async fn numbers(state: web::Data<AdminState>, request: HttpRequest) -> HttpResponse {
    let mut accepted = request.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok());
    let mut response = HttpResponse::Ok();
    response.insert_header((VARY, "accept"));
    if accepted.any(|value| value.contains("application/openmetrics-text")) {
        response.content_type(metrics::OPENMETRICS).body(state.metrics.render())
    } else {
        response.content_type(metrics::PLAIN).body(state.metrics.render_plain())
    }
}

async fn unknown(_: Operator, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let message = format!("there is no {} here; without the token this hub serves {OPEN}", request.path());
    Err(Problem::new(StatusCode::NOT_FOUND, code::UNSUPPORTED, message))
}

async fn other_method(request: HttpRequest) -> HttpResponse {
    method_refused(&request, "GET, HEAD")
}

fn method_refused(request: &HttpRequest, methods: &'static str) -> HttpResponse {
    let words = methods.replace(", ", " or ");
    let message = format!("{} can't be asked by {}: use {words}", request.path(), request.method());
    answer(
        HttpResponse::MethodNotAllowed().insert_header((ALLOW, methods)),
        &json!({ "code": code::UNSUPPORTED, "message": message }),
    )
}
