//! The bodies of requests: small, soon here, one JSON object.

use std::time::Duration;

use actix_web::{http::StatusCode, web};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::problem::Problem;

/// A body must be here by then; tests shouldn't wait that long.
const TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 10_000 });

/// What a body is expected to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// The most bytes.
    pub(super) most: usize,
    /// The code of a body that can't be taken.
    pub(super) code: &'static str,
    /// One that can.
    pub(super) example: &'static str,
}

impl Expected {
    /// Reads the JSON object, whatever the request calls it: forms are not offered here, so that a page in a browser
    /// can't send one. No body at all is an empty object.
    pub(super) async fn read<T: DeserializeOwned>(&self, body: web::Payload) -> Result<T, Problem> {
        let bytes = match tokio::time::timeout(TIMEOUT, body.to_bytes_limited(self.most)).await {
            Ok(Ok(Ok(bytes))) => bytes,
            Ok(Ok(Err(error))) => return Err(self.bad(&error)),
            Ok(Err(_)) => {
                let text = format!("the body has more than {} bytes: send {} or so", self.most, self.example);
                return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, self.code, text));
            }
            Err(_) => {
                let text = format!("the body wasn't here within {TIMEOUT:?}: send it together with the head");
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, self.code, text));
            }
        };
        if bytes.is_empty() {
            return T::deserialize(Value::Object(Map::new())).map_err(|error| self.bad(&error));
        }
        // First the object: a list of its values would be taken for it otherwise.
        let object: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|error| self.bad(&error))?;
        T::deserialize(Value::Object(object)).map_err(|error| self.bad(&error))
    }

    fn bad(&self, error: &dyn std::fmt::Display) -> Problem {
        let text = format!("the body is not the JSON that is expected, such as {}: {error}", self.example);
        Problem::new(StatusCode::BAD_REQUEST, self.code, text)
    }
}
