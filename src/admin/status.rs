//! `GET /status`: the hub on one page; `GET /actors`: what each part of it tells about itself.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::{
    About, AdminState,
    access::Operator,
    endpoint::{answer, guarded},
};

/// What hub this is, and its main numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HubStatus {
    /// Its id.
    pub hub: String,
    /// The program's version.
    pub version: &'static str,
    /// Raised at each start.
    pub epoch: u64,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
    /// Where it listens for links, `HOST:PORT`.
    pub address: String,
    /// Whether it takes work: starting, ready, degraded or draining.
    pub state: String,
    /// A sentence: why.
    pub reason: String,
    /// Links that are up, by dialect.
    pub links: BTreeMap<&'static str, i64>,
    /// Events published since it started.
    pub published: u64,
    /// Outcomes recorded since it started.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Events that no consumer wanted when they were published, since it started.
    pub orphans: u64,
    /// Scheduled events whose time is yet to come.
    pub schedules_waiting: i64,
    /// Events that wait for a consumer.
    pub pending: i64,
    /// Events that consumers hold.
    pub in_flight: i64,
    /// What database it is: `SQLite`, `PostgreSQL` or `MySQL`, as which MariaDB counts.
    pub engine: &'static str,
    /// Size of the database's files in bytes, if it has any here.
    pub database_bytes: Option<u64>,
    /// 2: an ack waits for the disk; less: a power cut may take the last moments. Read from the database at work.
    pub synchronous: i64,
}

impl HubStatus {
    fn of(state: &AdminState) -> Self {
        let About { hub, version, epoch, address, uptime, engine, database_bytes } = state.inspect.about();
        let readiness = state.ready.borrow().clone();
        let numbers = state.metrics.snapshot().hub;
        Self {
            hub,
            version,
            epoch,
            uptime_ms: u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX),
            address: address.to_string(),
            state: readiness.to_string(),
            reason: readiness.reason().to_owned(),
            links: numbers.links,
            published: numbers.published,
            outcomes: numbers.outcomes,
            orphans: numbers.orphans,
            schedules_waiting: numbers.schedules_waiting,
            pending: numbers.pending,
            in_flight: numbers.in_flight,
            engine,
            database_bytes,
            synchronous: numbers.synchronous,
        }
    }
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    config
        .service(guarded("/status", "GET").route(web::get().to(status)))
        .service(guarded("/actors", "GET").route(web::get().to(actors)));
}

async fn actors(_: Operator, state: web::Data<AdminState>) -> HttpResponse {
    answer(&mut HttpResponse::Ok(), &state.inspect.actors().await)
}

async fn status(_: Operator, state: web::Data<AdminState>) -> HttpResponse {
    answer(&mut HttpResponse::Ok(), &HubStatus::of(&state))
}
