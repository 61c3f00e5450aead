//! Reading certificates: names, lifetimes, and who signed whom.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::{CertificateDer, pem};
use x509_parser::{
    asn1_rs::{Oid, ToDer, oid},
    certificate::X509Certificate,
    extensions::GeneralName,
    prelude::FromDer,
    time::ASN1Time,
    x509::AlgorithmIdentifier,
};

use super::{BACKDATE, PkiError, provider, unix_seconds};

/// The attribute UID of a distinguished name (RFC 4519, 2.39).
const UID: Oid<'static> = oid!(0.9.2342.19200300.100.1.1);

/// Parses a certificate; `whose` names it in the error, as nothing else can.
pub(super) fn parse<'a>(der: &'a [u8], whose: &str) -> Result<X509Certificate<'a>, PkiError> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(PkiError::certificate(whose, "has bytes after its end: get it anew")),
        Err(error) => Err(PkiError::certificate(
            whose,
            format!("can't be parsed ({error}): get it anew from its issuer"),
        )),
    }
}

/// The UID of a certificate's subject, if there is exactly one.
pub(super) fn subject_uid(certificate: &X509Certificate<'_>) -> Option<String> {
    let mut uids = certificate.subject().iter_attributes().filter(|attribute| *attribute.attr_type() == UID);
    match (uids.next(), uids.next()) {
        (Some(uid), None) => uid.as_str().ok().map(str::to_owned),
        _ => None,
    }
}

/// The UID of a certificate's subject, or a word for a certificate without one.
pub(super) fn display_name(certificate: &X509Certificate<'_>) -> String {
    subject_uid(certificate).unwrap_or_else(|| format!("<no UID, subject {}>", certificate.subject()))
}

/// All DNS names of a certificate's SAN; none if it has no SAN or one that can't be read.
pub(super) fn dns_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    names
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        })
        .collect()
}

/// Whether the name constraints of `issuer` permit `name`. An issuer without a constraint for DNS names
/// permits nothing here: the intermediates of this system always have one.
pub(super) fn permits(issuer: &X509Certificate<'_>, name: &str) -> bool {
    let Ok(Some(constraints)) = issuer.name_constraints() else { return false };
    let permitted = constraints.value.permitted_subtrees.iter().flatten();
    permitted.into_iter().any(|subtree| match &subtree.base {
        GeneralName::DNSName(suffix) => lies_under(name, suffix.strip_prefix('.').unwrap_or(suffix)),
        _ => false,
    })
}

/// Whether `name` is some label, a dot, and `suffix`, in any case.
pub(super) fn lies_under(name: &str, suffix: &str) -> bool {
    let Some(cut) = name.len().checked_sub(suffix.len()) else { return false };
    cut > 1
        && !suffix.is_empty()
        && name.as_bytes()[cut - 1] == b'.'
        && name.as_bytes()[cut..].eq_ignore_ascii_case(suffix.as_bytes())
}

/// Whether `issuer` signed `certificate`: by name and by signature, whatever their dates.
pub(super) fn signed_by(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    if certificate.issuer().as_raw() != issuer.subject().as_raw() {
        return false;
    }
    let key = issuer.public_key();
    let (Some(key_id), Some(signature_id)) =
        (algorithm_id(&key.algorithm), algorithm_id(&certificate.signature_algorithm))
    else {
        return false;
    };
    provider()
        .signature_verification_algorithms
        .all
        .iter()
        .filter(|algorithm| {
            key_id == algorithm.public_key_alg_id().as_ref()
                && signature_id == algorithm.signature_alg_id().as_ref()
        })
        .any(|algorithm| {
            algorithm
                .verify_signature(
                    &key.subject_public_key.data,
                    certificate.tbs_certificate.as_ref(),
                    &certificate.signature_value.data,
                )
                .is_ok()
        })
}

/// Whether this side knows the way that a certificate is signed in. Of others nothing can be said.
#[cfg(feature = "hub")]
pub(super) fn knows_signature(certificate: &X509Certificate<'_>) -> bool {
    let Some(id) = algorithm_id(&certificate.signature_algorithm) else { return false };
    let known = provider().signature_verification_algorithms.all;
    known.iter().any(|algorithm| algorithm.signature_alg_id().as_ref() == id)
}

/// An algorithm identifier as the provider spells it: the content of its DER sequence.
fn algorithm_id(algorithm: &AlgorithmIdentifier<'_>) -> Option<Vec<u8>> {
    let mut id = algorithm.algorithm.to_der_vec().ok()?;
    if let Some(parameters) = &algorithm.parameters {
        id.extend(parameters.to_der_vec().ok()?);
    }
    Some(id)
}

/// Refuses a certificate that doesn't hold at `now`; `remedy` says what its holder does about it.
pub(super) fn check_dates(
    certificate: &X509Certificate<'_>,
    now: SystemTime,
    remedy: &str,
) -> Result<(), PkiError> {
    let (validity, now) = (certificate.validity(), unix_seconds(now));
    if validity.not_after.timestamp() < now {
        return Err(PkiError::Expired {
            certificate: display_name(certificate),
            ended: validity.not_after.to_string(),
            remedy: remedy.to_owned(),
        });
    }
    if validity.not_before.timestamp() > now {
        let from = validity.not_before;
        let reason = format!("holds only from {from} on: compare the clocks of both machines");
        return Err(PkiError::certificate(display_name(certificate), reason));
    }
    Ok(())
}

/// When two thirds of a certificate's life are over. Its life counts from its issue: the back-dating doesn't.
pub(super) fn two_thirds(certificate: &X509Certificate<'_>) -> SystemTime {
    let (start, end) = lifetime(certificate);
    let issued = start.saturating_add(i64::try_from(BACKDATE.as_secs()).unwrap_or(i64::MAX)).min(end);
    let since = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    UNIX_EPOCH + since(issued) + since(end - issued) * 2 / 3
}

/// When a certificate starts and when it ends to hold, in seconds since 1970 (UTC).
pub(super) fn lifetime(certificate: &X509Certificate<'_>) -> (i64, i64) {
    let validity = certificate.validity();
    (validity.not_before.timestamp(), validity.not_after.timestamp())
}

/// A time for people, UTC.
pub(super) fn display_time(seconds: u64) -> String {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| ASN1Time::from_timestamp(seconds).ok())
        .map_or_else(|| seconds.to_string(), |time| time.to_string())
}

/// When a certificate starts to hold, and what the clock says, for people.
#[cfg(feature = "hub")]
pub(super) fn display_start(start: i64, now: SystemTime) -> (String, String) {
    let display = |seconds: i64| display_time(u64::try_from(seconds).unwrap_or_default());
    (display(start), display(unix_seconds(now)))
}

/// What is wrong with a PEM text. The library's own words show bytes of it as a list of numbers.
pub(super) fn why_no_pem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section doesn't end",
        pem::Error::IllegalSectionStart { .. } => "a section begins with no proper line",
        pem::Error::Base64Decode(_) => "a section holds something else than base64",
        pem::Error::NoItemsFound => "it has no such section",
        _ => "it can't be read",
    }
}

/// The certificates of a PEM text, in order; at least one.
pub(super) fn pem_chain(pem: &str, whose: &str) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    use pem::PemObject as _;
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(|error| {
            PkiError::certificate(
                whose,
                format!("is no valid PEM ({}): get it anew from its issuer", why_no_pem(&error)),
            )
        })?;
    if chain.is_empty() {
        return Err(PkiError::certificate(whose, "is missing: no PEM section CERTIFICATE is there"));
    }
    Ok(chain)
}
