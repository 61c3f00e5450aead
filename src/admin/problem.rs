//! The one shape of all answers that aren't what was asked for: `{"code": …, "message": …}`.

use actix_web::{HttpResponse, ResponseError, http::StatusCode};
use serde_json::json;

use super::endpoint::answer;
use crate::event::{Fault, code};

/// A request that isn't answered as asked: handlers return it as their error.
#[derive(Debug, thiserror::Error)]
#[error("{fault}")]
pub(super) struct Problem {
    status: StatusCode,
    fault: Fault,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, fault: Fault::refused(code, message) }
    }
}

/// What the hub refused.
impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let status = match fault.code.as_str() {
            _ if fault.is_retryable() => StatusCode::SERVICE_UNAVAILABLE,
            code::BACKUP => StatusCode::CONFLICT,
            code::DB_FULL => StatusCode::INSUFFICIENT_STORAGE,
            code::UNSUPPORTED => StatusCode::NOT_IMPLEMENTED,
            code::INTERNAL | code::DB_FAULT => StatusCode::INTERNAL_SERVER_ERROR,
            code::CERTIFICATE_EXISTS => StatusCode::CONFLICT,
            code::CERTIFICATE_PROTECTED => StatusCode::FORBIDDEN,
            code::AUTHORITY_GONE => StatusCode::INTERNAL_SERVER_ERROR,
            code if code.ends_with("_NOT_FOUND") => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        Self { status, fault }
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let body = json!({ "code": self.fault.code, "message": self.fault.message });
        answer(&mut HttpResponse::build(self.status), &body)
    }
}
