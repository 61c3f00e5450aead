//! Who may ask: known hosts only, and the token for what isn't open.

use std::{
    future::{Ready, ready},
    net::IpAddr,
};

use actix_web::{
    Error, FromRequest, HttpRequest, HttpResponse, ResponseError,
    body::MessageBody,
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE},
    },
    middleware::Next,
    web,
};

use super::{
    AdminState,
    endpoint::{self, OPEN},
};
use crate::event::code;

/// Which hosts a request may name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hosts {
    configured: IpAddr,
}

impl Hosts {
    pub(super) fn of(configured: IpAddr) -> Self {
        Self { configured }
    }

    /// Whether `host`, with or without a port, is this machine. A server on all addresses takes any address,
    /// since only names can be made to point here by somebody else.
    pub(super) fn allow(&self, host: &str) -> bool {
        let name = without_port(host);
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        name.parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback() || ip == self.configured || self.configured.is_unspecified())
    }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port` without port and brackets.
fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(address, _)| address);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Why a request isn't served.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    #[error(
        "this hub doesn't serve the host that the request names; ask it by 127.0.0.1, localhost or the address that \
         `admin.ip` says"
    )]
    Host,
    #[error(
        "this needs the admin token: send `Authorization: Bearer <token>` with what the file admin-token in the hub's \
         data folder holds. Open without it: {OPEN}"
    )]
    Token,
}

impl ResponseError for Denied {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Token => StatusCode::UNAUTHORIZED,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        if matches!(self, Self::Token) {
            response.insert_header((WWW_AUTHENTICATE, "Bearer"));
        }
        let code = match self {
            Self::Host => code::INVALID_HOSTNAME,
            Self::Token => code::ADMIN_TOKEN,
        };
        endpoint::answer(&mut response, &serde_json::json!({ "code": code, "message": self.to_string() }))
    }
}

/// Lets requests through that name this machine, in their one `Host` header and in their target if that
/// names a host too.
pub(super) async fn only_known_hosts(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    if names_this_machine(&request) {
        next.call(request).await.map(ServiceResponse::map_into_boxed_body)
    } else {
        Ok(request.into_response(Denied::Host.error_response()))
    }
}

fn names_this_machine(request: &ServiceRequest) -> bool {
    let Some(hosts) = request.app_data::<web::Data<Hosts>>() else { return false };
    let mut headers = request.headers().get_all(HOST);
    let (Some(header), None) = (headers.next(), headers.next()) else { return false };
    let target = request.uri().authority().is_none_or(|authority| hosts.allow(authority.as_str()));
    target && header.to_str().is_ok_and(|host| hosts.allow(host))
}

/// Proof that the request bears the token: a handler that takes one is closed to everybody else.
#[derive(Debug)]
pub(super) struct Operator;

impl FromRequest for Operator {
    type Error = Denied;
    type Future = Ready<Result<Self, Denied>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let offered = request
            .headers()
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        let state = request.app_data::<web::Data<AdminState>>();
        let known = state.zip(offered).is_some_and(|(state, offered)| state.token.is(offered));
        ready(if known { Ok(Self) } else { Err(Denied::Token) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let loopback = Hosts::of("127.0.0.1".parse().unwrap());
        for host in
            ["127.0.0.1:50080", "127.0.0.1", "localhost", "LOCALHOST:1", "[::1]:50080", "127.8.8.8", "[::1]"]
        {
            assert!(loopback.allow(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:50080",
            "10.0.0.7",
            "localhost.evil.example",
            "",
            ":50080",
            "[",
            "127.0.0.1.evil.example",
        ] {
            assert!(!loopback.allow(host), "{host}");
        }
        let configured = Hosts::of("10.0.0.7".parse().unwrap());
        assert!(configured.allow("10.0.0.7:50080"));
        assert!(!configured.allow("10.0.0.8:50080"));
        let all = Hosts::of("0.0.0.0".parse().unwrap());
        assert!(all.allow("10.0.0.8:50080"));
        assert!(!all.allow("evil.example"));
    }
}
