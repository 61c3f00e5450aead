//! Makes certificates. Keys that are made here are Ed25519; what signs them may be of any kind that is served.

use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use x509_cert::{
    builder::{Builder, CertificateBuilder},
    der::{Decode, Encode, asn1::GeneralizedTime},
    serial_number::SerialNumber,
    spki::SubjectPublicKeyInfoOwned,
    time::{Time, Validity},
};

pub(super) use super::shape::Role;
use super::{
    shape::Shape,
    sign::{IssuerKey, Signature},
};
use crate::pki::{PkiError, key::new_key, random};

/// A certificate and its private key.
pub(super) struct Pair {
    pub(super) cert: CertificateDer<'static>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Clone for Pair {
    fn clone(&self) -> Self {
        Self { cert: self.cert.clone(), key: self.key.clone_key() }
    }
}

/// Makes a key and its certificate. `issuer` is none for a root. Times are seconds since 1970 (UTC).
pub(super) fn issue(role: Role, id: &str, issuer: Option<&Pair>, span: (i64, i64)) -> Result<Pair, PkiError> {
    certify(role, id, new_key()?, issuer, span)
}

/// The same for a key that is there already.
pub(super) fn certify(
    role: Role,
    id: &str,
    key: PrivateKeyDer<'static>,
    issuer: Option<&Pair>,
    span: (i64, i64),
) -> Result<Pair, PkiError> {
    let own = IssuerKey::load(&key).map_err(|why| failed(id, format!("its key can't be used ({why})")))?;
    let public = SubjectPublicKeyInfoOwned::from_der(own.public()).map_err(|error| failed(id, error))?;
    let cert = match issuer {
        None => build(Shape::new(role, id, None), id, public, &own, span)?,
        Some(issuer) => sign(role, id, public, issuer, span)?,
    };
    Ok(Pair { cert, key })
}

/// A leaf for a public key whose private one somebody else has.
pub(super) fn certify_public(
    id: &str,
    key: &SubjectPublicKeyInfoDer<'_>,
    issuer: &Pair,
    span: (i64, i64),
) -> Result<CertificateDer<'static>, PkiError> {
    let key =
        SubjectPublicKeyInfoOwned::from_der(key).map_err(|error| PkiError::PublicKey(error.to_string()))?;
    sign(Role::Leaf, id, key, issuer, span)
}

fn sign(
    role: Role,
    id: &str,
    key: SubjectPublicKeyInfoOwned,
    issuer: &Pair,
    span: (i64, i64),
) -> Result<CertificateDer<'static>, PkiError> {
    let signer = IssuerKey::load(&issuer.key).map_err(|why| {
        let why = format!(
            "the key of its issuer is of a kind that can't sign here ({why}); \
             Ed25519, Ed448, ECDSA P-256, P-384 and P-521, and RSA of 2048 to 4096 bits can"
        );
        failed(id, why)
    })?;
    build(Shape::new(role, id, Some(&issuer.cert)), id, key, &signer, span)
}

fn build(
    shape: Result<Shape, String>,
    id: &str,
    key: SubjectPublicKeyInfoOwned,
    signer: &IssuerKey,
    (not_before, not_after): (i64, i64),
) -> Result<CertificateDer<'static>, PkiError> {
    let shape = shape.map_err(|why| failed(id, why))?;
    let span = Validity::new(time(id, not_before)?, time(id, not_after)?);
    let certificate = CertificateBuilder::new(shape, serial(id)?, span, key)
        .and_then(|builder| builder.build::<_, Signature>(signer))
        .map_err(|error| failed(id, error))?;
    Ok(certificate.to_der().map_err(|error| failed(id, error))?.into())
}

fn time(id: &str, seconds: i64) -> Result<Time, PkiError> {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    GeneralizedTime::from_unix_duration(since)
        .map(Time::from)
        .map_err(|error| failed(id, format!("its lifetime is no date ({error}): configure a shorter one")))
}

/// 20 random bytes, positive as an integer.
fn serial(id: &str) -> Result<SerialNumber, PkiError> {
    let mut serial = random::<20>()?;
    serial[0] = serial[0] & 0x7F | 0x40;
    SerialNumber::new(&serial).map_err(|error| failed(id, error))
}

fn failed(id: &str, reason: impl ToString) -> PkiError {
    PkiError::Issue { certificate: id.to_owned(), reason: reason.to_string() }
}
