//! What a failed handshake means, in a sentence that names the certificate, the reason and the remedy.

use std::{error::Error, io};

use rustls::{AlertDescription, CertificateError, Error as TlsError};

use crate::pki::{PkiError, x509::display_time};

/// What rustls says when the resolver knew no certificate for the name that the client asked for.
const NOTHING_RESOLVED: &str = "no server certificate chain resolved";

/// What webpki says, through rustls, of a name outside of its issuer's name constraint.
const OUTSIDE: &str = "NameConstraintViolation";

const OUTSIDE_NAMES: &str = "has a name outside of what its issuer may sign: issue the bundle anew";

/// What the bearer of a revoked certificate can do.
pub const REVOKED: &str = "no hub lets it in any more; its bearer needs a new bundle, issued on the hub's machine (`eventflow cert issue`)";

/// Explains an error of a handshake, or of the first read after it (with TLS 1.3 a client learns only there
/// that its certificate was refused). Takes the `io::Error` of a TLS stream or a `rustls::Error`.
#[must_use]
pub fn explain(error: &(dyn Error + 'static)) -> PkiError {
    if let Some(error) = tls_error(error) {
        return explain_tls(error);
    }
    let source = match error.downcast_ref::<io::Error>() {
        Some(error) => io::Error::new(error.kind(), error.to_string()),
        None => io::Error::other(error.to_string()),
    };
    PkiError::Connection { source }
}

fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a TlsError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<TlsError>() {
            return Some(found);
        }
        // The source of an `io::Error` is that of what it wraps, not what it wraps.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn explain_tls(error: &TlsError) -> PkiError {
    match error {
        TlsError::InvalidCertificate(reason) => explain_certificate(reason),
        TlsError::NoCertificatesPresented => PkiError::certificate(
            "the peer",
            "is missing: it connected without one; it must present the leaf and intermediate of its bundle",
        ),
        TlsError::AlertReceived(alert) => explain_alert(*alert, error),
        TlsError::General(text) if text == NOTHING_RESOLVED => PkiError::InvalidHostname {
            reason: "the client asked for a hub that doesn't live here (the log line before names it): \
                     it must ask for this hub's id or for any.<hub name>"
                .to_owned(),
        },
        TlsError::PeerIncompatible(_) => handshake(
            format!("the peer offers nothing that this side accepts ({error}): it must speak TLS 1.3"),
            error,
        ),
        TlsError::InvalidMessage(_) | TlsError::InappropriateMessage { .. } => {
            handshake(format!("the peer doesn't speak TLS ({error}): check address and port"), error)
        }
        _ => handshake(error.to_string(), error),
    }
}

fn explain_certificate(reason: &CertificateError) -> PkiError {
    let text = match reason {
        CertificateError::Other(other) => {
            return match other.0.downcast_ref::<PkiError>() {
                Some(PkiError::Certificate { certificate, reason }) => {
                    PkiError::certificate(certificate.clone(), reason.clone())
                }
                _ if other.to_string() == OUTSIDE => PkiError::certificate("the peer", OUTSIDE_NAMES),
                _ => PkiError::certificate("the peer", format!("is refused ({other}): issue it anew")),
            };
        }
        CertificateError::Revoked => return revoked("the peer"),
        CertificateError::UnknownIssuer => "was not issued under the root that this side trusts: \
             both must have certificates of the same hub's root; issue the bundle anew"
            .to_owned(),
        CertificateError::BadSignature => {
            "doesn't belong to the key that the peer signs with: issue the bundle anew".to_owned()
        }
        CertificateError::ExpiredContext { not_after, .. } => format!(
            "(its leaf or intermediate) expired at {}: hubs and connected spokes renew theirs by themselves; else a spoke gets a new bundle",
            display_time(not_after.as_secs())
        ),
        CertificateError::Expired => "expired: renew it".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "holds only from {} on: compare the clocks of both machines",
            display_time(not_before.as_secs())
        ),
        CertificateError::NotValidYet => "doesn't hold yet: compare the clocks of both machines".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            OUTSIDE_NAMES.to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "(its leaf or intermediate) is signed in a way that this side can't verify; it can Ed25519, Ed448, RSA, \
             and ECDSA with P-256, P-384 and P-521, each with SHA-256, SHA-384 or SHA-512: issue it anew"
                .to_owned()
        }
        other => format!("is refused ({other}): issue it anew"),
    };
    PkiError::certificate("the peer", text)
}

/// What the other side says of *our* certificate or request.
fn explain_alert(alert: AlertDescription, error: &TlsError) -> PkiError {
    let ours = |reason: &str| PkiError::certificate("this side", reason);
    match alert {
        AlertDescription::UnknownCA => ours(
            "is refused by the peer: it was not issued under the root that the peer trusts; issue the bundle anew",
        ),
        AlertDescription::CertificateExpired => ours(
            "is refused by the peer: it has expired or doesn't hold yet; renew it, and compare the clocks",
        ),
        AlertDescription::CertificateRevoked => revoked("this side"),
        AlertDescription::CertificateRequired => {
            ours("is missing: the peer demands one; present the leaf and intermediate of the bundle")
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError => {
            ours("is refused by the peer, whose log says why; issue the bundle anew")
        }
        AlertDescription::AccessDenied | AlertDescription::UnrecognisedName => PkiError::InvalidHostname {
            reason:
                "the hub that was asked for doesn't live at this address: correct the hub's id, or leave it \
                     out and give the hubs' name (hub_name in the bundle, or EVENTFLOW_HUB_NAME)"
                    .to_owned(),
        },
        AlertDescription::ProtocolVersion => {
            handshake("the peer doesn't speak TLS 1.3, which is the only version in use".to_owned(), error)
        }
        _ => handshake(format!("the peer ended it: {error}"), error),
    }
}

fn revoked(whose: &str) -> PkiError {
    PkiError::Revoked { certificate: whose.to_owned(), remedy: REVOKED.to_owned() }
}

fn handshake(reason: String, source: &TlsError) -> PkiError {
    PkiError::Handshake { reason, source: source.clone() }
}
