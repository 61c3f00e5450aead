//! The endpoints; `admin.rs` lists them.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{ACCEPT, VARY},
    },
    web,
};
use serde_json::json;

use super::{AdminState, access::Operator};
use crate::metrics;

pub(super) fn all(config: &mut web::ServiceConfig) {
    config
        .service(open("/livez").route(web::get().to(livez)).route(web::head().to(livez)))
        .service(open("/readyz").route(web::get().to(readyz)).route(web::head().to(readyz)))
        .service(open("/metrics").route(web::get().to(numbers)).route(web::head().to(numbers)))
        .default_service(web::to(unknown));
}

/// A resource without token. A method that it doesn't have is 405, as a token wouldn't help.
fn open(path: &str) -> actix_web::Resource {
    web::resource(path)
}

async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "state": "alive" }))
}

async fn readyz(state: web::Data<AdminState>) -> HttpResponse {
    let readiness = state.ready.borrow().clone();
    let status = if readiness.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    HttpResponse::build(status)
        .insert_header(("cache-control", "no-store"))
        .json(json!({ "state": readiness.to_string(), "reason": readiness.reason() }))
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

async fn unknown(_: Operator, request: HttpRequest) -> HttpResponse {
    let message =
        format!("there is no {} here; this hub serves /livez, /readyz and /metrics", request.path());
    HttpResponse::NotFound().json(json!({ "message": message }))
}
