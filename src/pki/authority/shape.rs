//! The shape of certificates, field by field as npm Eventflow makes them.

use std::net::{IpAddr, Ipv4Addr};

use sha2::{Digest, Sha256};
use x509_cert::{
    Certificate, TbsCertificate,
    attr::AttributeTypeAndValue,
    builder::{Error, profile::BuilderProfile},
    der::{
        Decode, Encode, Result as DerResult,
        asn1::{Any, Ia5String, OctetString, Utf8StringRef},
        oid::AssociatedOid,
    },
    ext::{
        Extension, ToExtension,
        pkix::{
            AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, NameConstraints,
            SubjectAltName, SubjectKeyIdentifier, constraints::name::GeneralSubtree, name::GeneralName,
        },
    },
    name::{Name, RdnSequence, RelativeDistinguishedName},
    spki::{ObjectIdentifier, SubjectPublicKeyInfoRef},
};

/// The place of a certificate in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    Intermediate,
    Leaf,
}

/// The attribute UID (RFC 4519, 2.39).
const UID: ObjectIdentifier = ObjectIdentifier::new_unwrap("0.9.2342.19200300.100.1.1");
/// id-kp-serverAuth and id-kp-clientAuth (RFC 5280, 4.2.1.12).
const USES: [ObjectIdentifier; 2] =
    [ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1"), ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2")];
/// 127.0.0.1 and its mask.
const LOCALHOST: [u8; 8] = [127, 0, 0, 1, 255, 255, 255, 255];

/// What a certificate says besides its key, its dates and its number.
pub(super) struct Shape {
    role: Role,
    id: String,
    subject: Name,
    /// None for a root.
    issuer: Option<Above>,
}

/// What a certificate says of its issuer's.
struct Above {
    subject: Name,
    identifier: AuthorityKeyIdentifier,
}

impl Shape {
    /// `issuer` is the certificate above, DER; none for a root.
    pub(super) fn new(role: Role, id: &str, issuer: Option<&[u8]>) -> Result<Self, String> {
        let subject = uid(id).map_err(|error| format!("its name can't be written ({error})"))?;
        let issuer = issuer.map(Above::read).transpose()?;
        Ok(Self { role, id: id.to_owned(), subject, issuer })
    }

    /// What the SAN of a leaf says.
    fn names(&self) -> DerResult<SubjectAltName> {
        let name = Ia5String::new(&self.id.to_ascii_lowercase())?;
        Ok(SubjectAltName(vec![GeneralName::DnsName(name), IpAddr::V4(Ipv4Addr::LOCALHOST).into()]))
    }

    /// What may stand below an intermediate.
    fn constraints(&self) -> DerResult<NameConstraints> {
        let names = GeneralName::DnsName(Ia5String::new(&format!(".{}", self.id.to_ascii_lowercase()))?);
        let addresses = GeneralName::IpAddress(OctetString::new(LOCALHOST)?);
        let below = |base| GeneralSubtree { base, minimum: 0, maximum: None };
        Ok(NameConstraints {
            permitted_subtrees: Some(vec![below(names), below(addresses)]),
            excluded_subtrees: None,
        })
    }
}

impl BuilderProfile for Shape {
    fn get_issuer(&self, subject: &Name) -> Name {
        self.issuer.as_ref().map_or(subject, |above| &above.subject).clone()
    }

    fn get_subject(&self) -> Name {
        self.subject.clone()
    }

    fn build_extensions(
        &self,
        key: SubjectPublicKeyInfoRef<'_>,
        _issuer_key: SubjectPublicKeyInfoRef<'_>,
        _certificate: &TbsCertificate,
    ) -> Result<Vec<Extension>, Error> {
        // The first of RFC 7093's ways: 160 bits of SHA-256.
        let key_id = OctetString::new(&Sha256::digest(key.subject_public_key.raw_bytes())[..20])?;
        let mut made = match self.role {
            Role::Root | Role::Intermediate => {
                let below = u8::from(self.role == Role::Root);
                vec![
                    critical(&BasicConstraints { ca: true, path_len_constraint: Some(below) })?,
                    critical(&KeyUsage(KeyUsages::KeyCertSign | KeyUsages::CRLSign))?,
                ]
            }
            Role::Leaf => vec![
                plain(&BasicConstraints { ca: false, path_len_constraint: None })?,
                critical(&KeyUsage(KeyUsages::DigitalSignature | KeyUsages::KeyEncipherment))?,
                plain(&ExtendedKeyUsage(USES.to_vec()))?,
                critical(&self.names()?)?,
            ],
        };
        if self.role == Role::Intermediate {
            made.push(critical(&self.constraints()?)?);
        }
        made.push(plain(&SubjectKeyIdentifier(key_id.clone()))?);
        made.push(match &self.issuer {
            Some(above) => plain(&above.identifier)?,
            None => plain(&AuthorityKeyIdentifier { key_identifier: Some(key_id), ..Default::default() })?,
        });
        Ok(made)
    }
}

impl Above {
    /// Key id, issuer and serial number of a certificate (RFC 5280, 4.2.1.1).
    fn read(der: &[u8]) -> Result<Self, String> {
        let failed = |error| format!("the certificate of its issuer can't be read ({error})");
        let certificate = Certificate::from_der(der).map_err(failed)?;
        let certificate = certificate.tbs_certificate();
        let key_id = certificate.get_extension::<SubjectKeyIdentifier>().map_err(failed)?;
        let (_, SubjectKeyIdentifier(key_id)) =
            key_id.ok_or("its issuer's certificate has no subject key identifier: make that one anew")?;
        let identifier = AuthorityKeyIdentifier {
            key_identifier: Some(key_id),
            authority_cert_issuer: Some(vec![GeneralName::DirectoryName(certificate.issuer().clone())]),
            authority_cert_serial_number: Some(certificate.serial_number().clone()),
        };
        Ok(Self { subject: certificate.subject().clone(), identifier })
    }
}

/// A name of one attribute, the UID.
fn uid(id: &str) -> DerResult<Name> {
    let value = Any::encode_from(&Utf8StringRef::new(id)?)?;
    let uid = AttributeTypeAndValue { oid: UID, value };
    let mut names = RdnSequence::default();
    names.push(RelativeDistinguishedName::try_from(vec![uid])?);
    // The library makes a name of its encoding, and of a text that it would have to take apart.
    Name::from_der(&names.to_der()?)
}

fn critical(content: &(impl AssociatedOid + Encode)) -> DerResult<Extension> {
    (true, content).to_extension(&Name::default(), &[])
}

fn plain(content: &(impl AssociatedOid + Encode)) -> DerResult<Extension> {
    (false, content).to_extension(&Name::default(), &[])
}
