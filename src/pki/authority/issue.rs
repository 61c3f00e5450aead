//! The shape of certificates, field by field as npm Eventflow makes them. Keys that are made here: Ed25519.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CidrSubnet, CustomExtension, DistinguishedName, DnType,
    DnValue, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, PublicKeyData, SerialNumber, SubjectPublicKeyInfo,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use x509_parser::{certificate::X509Certificate, extensions::ParsedExtension, time::ASN1Time};

use super::der;
use crate::pki::{PkiError, key::new_key, random, x509};

const UID: [u64; 7] = [0, 9, 2342, 19_200_300, 100, 1, 1];
const SUBJECT_KEY_IDENTIFIER: [u64; 4] = [2, 5, 29, 14];
const SUBJECT_ALT_NAME: [u64; 4] = [2, 5, 29, 17];
const BASIC_CONSTRAINTS: [u64; 4] = [2, 5, 29, 19];
const AUTHORITY_KEY_IDENTIFIER: [u64; 4] = [2, 5, 29, 35];

/// The place of a certificate in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    Intermediate,
    Leaf,
}

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
    (not_before, not_after): (i64, i64),
) -> Result<Pair, PkiError> {
    let pair = KeyPair::try_from(&key).map_err(|error| failed(id, error))?;
    let cert = match issuer {
        None => {
            let params = params(role, id, &pair, (not_before, not_after)).map_err(|why| failed(id, why))?;
            Certificate::into(params.self_signed(&pair).map_err(|error| failed(id, error))?)
        }
        Some(issuer) => sign(role, id, &pair, issuer, (not_before, not_after))?,
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
    let key = SubjectPublicKeyInfo::from_der(key).map_err(|error| PkiError::PublicKey(error.to_string()))?;
    sign(Role::Leaf, id, &key, issuer, span)
}

fn sign(
    role: Role,
    id: &str,
    key: &impl PublicKeyData,
    issuer: &Pair,
    span: (i64, i64),
) -> Result<CertificateDer<'static>, PkiError> {
    let mut params = params(role, id, key, span).map_err(|why| failed(id, why))?;
    let signer = KeyPair::try_from(&issuer.key).map_err(|error| {
        let why = format!(
            "the key of its issuer is of a kind that can't sign here ({error}); \
             Ed25519, ECDSA P-256 and P-384 and RSA can"
        );
        failed(id, why)
    })?;
    let parsed = x509::parse(&issuer.cert, "the issuer")?;
    params.use_authority_key_identifier_extension = false;
    params.custom_extensions.push(authority_key_identifier(&parsed).map_err(|why| failed(id, why))?);
    let signed = Issuer::from_ca_cert_der(&issuer.cert, &signer)
        .and_then(|issuer| params.signed_by(key, &issuer))
        .map_err(|error| failed(id, error))?;
    Ok(Certificate::into(signed))
}

fn failed(id: &str, reason: impl ToString) -> PkiError {
    PkiError::Issue { certificate: id.to_owned(), reason: reason.to_string() }
}

fn params(
    role: Role,
    id: &str,
    key: &impl PublicKeyData,
    (not_before, not_after): (i64, i64),
) -> Result<CertificateParams, String> {
    let time = |seconds| match ASN1Time::from_timestamp(seconds) {
        Ok(time) => Ok(time.to_datetime()),
        Err(error) => Err(format!("its lifetime is no date ({error}): configure a shorter one")),
    };
    let name = id.to_ascii_lowercase();
    let mut params = CertificateParams::default();
    params.not_before = time(not_before)?;
    params.not_after = time(not_after)?;
    params.serial_number = Some(serial()?);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CustomDnType(UID.to_vec()), DnValue::Utf8String(id.to_owned()));
    match role {
        Role::Root | Role::Intermediate => {
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            let below = if role == Role::Root { 1 } else { 0 };
            params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
            params.use_authority_key_identifier_extension = true;
        }
        Role::Leaf => {
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
            params.extended_key_usages =
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            // rcgen has neither a critical SAN nor CA:FALSE that isn't critical.
            let mut names = CustomExtension::from_oid_content(
                &SUBJECT_ALT_NAME,
                der::sequence(&[
                    &der::tlv(der::context(2), name.as_bytes()),
                    &der::tlv(der::context(7), &Ipv4Addr::LOCALHOST.octets()),
                ]),
            );
            names.set_criticality(true);
            params.custom_extensions = vec![
                names,
                CustomExtension::from_oid_content(&BASIC_CONSTRAINTS, der::sequence(&[])),
                CustomExtension::from_oid_content(
                    &SUBJECT_KEY_IDENTIFIER,
                    der::tlv(der::OCTET_STRING, &params.key_identifier(key)),
                ),
            ];
        }
    }
    if role == Role::Intermediate {
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![
                GeneralSubtree::DnsName(format!(".{name}")),
                GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(IpAddr::V4(Ipv4Addr::LOCALHOST), 32)),
            ],
            excluded_subtrees: Vec::new(),
        });
    }
    Ok(params)
}

/// 20 random bytes, positive as an integer.
fn serial() -> Result<SerialNumber, String> {
    let mut serial = random::<20>().map_err(|error| error.to_string())?;
    serial[0] = serial[0] & 0x7F | 0x40;
    Ok(SerialNumber::from_slice(&serial))
}

/// Key id, issuer and serial of the issuer's certificate (RFC 5280, 4.2.1.1); rcgen writes the key id only.
fn authority_key_identifier(issuer: &X509Certificate<'_>) -> Result<CustomExtension, String> {
    let key_id = issuer.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
        _ => None,
    });
    let key_id =
        key_id.ok_or("its issuer's certificate has no subject key identifier: make that one anew")?;
    let name = der::tlv(der::constructed(4), issuer.issuer().as_raw());
    let content = der::sequence(&[
        &der::tlv(der::context(0), key_id),
        &der::tlv(der::constructed(1), &name),
        &der::tlv(der::context(2), issuer.raw_serial()),
    ]);
    Ok(CustomExtension::from_oid_content(&AUTHORITY_KEY_IDENTIFIER, content))
}
