//! `/certificates`: what an operator issues, lists and revokes.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header::ACCEPT},
    web,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    AdminState,
    access::Operator,
    body::Expected,
    endpoint::{answer, guarded},
    problem::Problem,
};
use crate::event::{Fault, code};

/// What says which certificate is wanted.
const WISH: Expected =
    Expected { most: 16 * 1024, code: code::INVALID_CERTIFICATE, example: r#"{"name":"…"}"# };
/// What says whose are revoked.
const WHOSE: Expected = Expected { example: r#"{"id":"…"}"#, ..WISH };
/// Rows of a page, if the request doesn't say less.
const PAGE: u32 = 1_000;

/// Issues, lists and revokes certificates.
#[async_trait]
pub trait Certificates: std::fmt::Debug + Send + Sync {
    /// Issues a leaf for a spoke, with a key that is kept nowhere else.
    ///
    /// # Errors
    /// The reason, with its code: a name or id that can't be, one that stands already, an authority that is gone.
    async fn issue(&self, wish: IssueCertificate) -> Result<IssuedBundle, Fault>;

    /// A page of all certificates, by id and version; `page` is empty at first.
    ///
    /// # Errors
    /// If the page token is none, or the database can't be read.
    async fn list(&self, page: &str, limit: u32) -> Result<CertificatePage, Fault>;

    /// Revokes all that an id has and that holds, and cuts its links.
    ///
    /// # Errors
    /// The reason, with its code: there is no such certificate, or it can't be revoked this way.
    async fn revoke(&self, id: &str) -> Result<RevokedCertificates, Fault>;
}

/// Which leaf to issue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssueCertificate {
    /// The configured name of the spokes that it is for; by default the hub's own.
    #[serde(default)]
    pub name: Option<String>,
    /// The whole id; by default a new one under the name.
    #[serde(default)]
    pub id: Option<String>,
    /// How long it is to hold, such as `90d` or `12h`; by default as the hub is configured.
    #[serde(default)]
    pub lifetime: Option<String>,
    /// The same in days.
    #[serde(default)]
    pub days: Option<u32>,
}

/// A bundle that was issued.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct IssuedBundle {
    /// The id in it.
    pub id: String,
    /// When its leaf ends to hold, in milliseconds since 1970.
    pub not_after: i64,
    /// The file's text, TOML: leaf and intermediate, key, root, hubs.
    pub bundle: String,
}

impl std::fmt::Debug for IssuedBundle {
    /// Without the bundle, which holds a private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedBundle").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A page of certificates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CertificatePage {
    /// By id, the one in use before its predecessors.
    pub certificates: Vec<Certificate>,
    /// What to ask the next page by; none: that was the last one.
    pub next: Option<String>,
}

/// A certificate as the database keeps it. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// Whose it is.
    pub id: String,
    /// 0 is the one in use; a predecessor's number says the order in which they were replaced.
    pub version: u32,
    /// `root`, `intermediate` or `leaf`; `unreadable` if the row holds none.
    pub kind: &'static str,
    /// `current`, `replaced`, `expired` or `revoked`.
    pub state: &'static str,
    /// Whether its private key is kept in the database; that of an issued bundle isn't.
    pub key_kept: bool,
    /// From when on it holds.
    pub not_before: Option<i64>,
    /// Until when it holds.
    pub not_after: i64,
    /// When it was revoked.
    pub revoked: Option<i64>,
}

/// What was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RevokedCertificates {
    /// Whose.
    pub id: String,
    /// The versions that held until then.
    pub versions: Vec<u32>,
    /// The links of this hub that were cut; other hubs cut theirs within seconds.
    pub links_cut: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Revoke {
    id: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    page: String,
    limit: Option<u32>,
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    let certificates =
        guarded("/certificates", "GET, POST").route(web::get().to(list)).route(web::post().to(issue));
    config
        .service(certificates)
        .service(guarded("/certificates/revoke", "POST").route(web::post().to(revoke)));
}

/// The bundle as TOML; for who accepts JSON, JSON that holds it.
async fn issue(
    _: Operator,
    state: web::Data<AdminState>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, Problem> {
    let issued = state.certificates.issue(WISH.read(body).await?).await?;
    let accepted = request.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok());
    let mut response = HttpResponse::Created();
    response.insert_header(("cache-control", "no-store")).insert_header(("vary", "accept"));
    if accepted.into_iter().any(|value| value.contains("application/json")) {
        return Ok(answer(&mut response, &issued));
    }
    Ok(response.content_type("application/toml").body(issued.bundle))
}

async fn list(
    _: Operator,
    state: web::Data<AdminState>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let List { page, limit } = web::Query::<List>::from_query(request.query_string())
        .map_err(|error| bad(format!("the query can't be read: {error}")))?
        .into_inner();
    let limit = match limit.unwrap_or(PAGE) {
        0 => return Err(bad(format!("`limit` is 0: ask for 1 to {PAGE} rows of a page"))),
        limit => limit.min(PAGE),
    };
    Ok(answer(&mut HttpResponse::Ok(), &state.certificates.list(&page, limit).await?))
}

async fn revoke(
    _: Operator,
    state: web::Data<AdminState>,
    body: web::Payload,
) -> Result<HttpResponse, Problem> {
    let Revoke { id } = WHOSE.read(body).await?;
    Ok(answer(&mut HttpResponse::Ok(), &state.certificates.revoke(&id).await?))
}

fn bad(text: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, code::INVALID_CERTIFICATE, text)
}
