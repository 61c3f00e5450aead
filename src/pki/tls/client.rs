//! The side that dials a hub.

use std::{fmt, sync::Arc};

use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::{
        Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::TLS13,
};
use tracing::warn;

use super::{other_root, peer_uid, refusal, trust, unusable};
use crate::pki::{Bundle, Identity, PkiError, bundle::name_of, provider, x509};

/// What a spoke connects with, and the name to ask for.
///
/// With `expect_id` that hub and no other is accepted, and the name is its id. Without, any hub of the
/// bundle's configured name is, and the name is `any.<hub name>`.
///
/// # Errors
/// [`PkiError::Certificate`] if the bundle's parts can't be used; [`PkiError::Name`] if `expect_id` or the
/// hub's name is no DNS name.
pub fn client_config(
    bundle: &Bundle,
    expect_id: Option<&str>,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), PkiError> {
    let hub_name = expect_id.and_then(name_of).unwrap_or_else(|| bundle.hub_name());
    configure(&bundle.identity()?, &bundle.root_certificate()?, hub_name, expect_id)
}

/// What a hub that dials the peer of this id connects with, and the name to ask for: the id as it is written, since
/// old npm hubs know theirs in that case only.
///
/// # Errors
/// [`PkiError::Certificate`] if its own certificate can't be used; [`PkiError::Name`] if the peer's id is no DNS name.
#[cfg(feature = "hub")]
pub fn peer_config(
    identity: &Identity,
    root: &CertificateDer<'static>,
    peer: &str,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), PkiError> {
    configure(identity, root, name_of(peer).unwrap_or(peer), Some(peer))
}

fn configure(
    identity: &Identity,
    root: &CertificateDer<'static>,
    hub_name: &str,
    expect_id: Option<&str>,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), PkiError> {
    let asked = expect_id.map_or_else(|| format!("any.{hub_name}"), str::to_owned);
    let name = ServerName::try_from(asked.clone()).map_err(|_| PkiError::Name {
        name: asked,
        reason: "is no DNS name: correct the hub's id or name in the bundle",
    })?;
    let chain = WebPkiServerVerifier::builder_with_provider(trust(root)?, provider())
        .build()
        .map_err(|error| PkiError::certificate("the root", format!("can't be trusted ({error})")))?;
    let verifier =
        HubVerifier { chain, hub_name: hub_name.to_owned(), expect_id: expect_id.map(str::to_owned) };
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .dangerous() // rustls's word for a verifier of one's own; this one only adds to webpki's
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(identity.chain().to_vec(), identity.key().clone_key())
        .map_err(unusable)?;
    config.resumption = Resumption::disabled();
    Ok((Arc::new(config), name))
}

/// Accepts hubs: chain and dates as webpki checks them, then the rules for leaves, then the hub's name, and
/// the id if one was dialed. So a spoke's leaf is refused as a server, though the same root stands above it.
struct HubVerifier {
    chain: Arc<WebPkiServerVerifier>,
    hub_name: String,
    expect_id: Option<String>,
}

impl HubVerifier {
    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // The name that webpki is to find is the leaf's own: who may bear it is judged below.
        let presented: Vec<_> = std::iter::once(leaf).chain(intermediates).cloned().collect();
        let own_name = x509::parse(leaf, "the hub")
            .ok()
            .and_then(|certificate| x509::dns_names(&certificate).into_iter().next())
            .and_then(|name| ServerName::try_from(name).ok());
        let Some(own_name) = own_name else {
            return Err(refusal(peer_uid(&presented).err().unwrap_or_else(|| {
                PkiError::certificate("the hub", "has no DNS name in it: it must be issued by this system")
            })));
        };
        let verified =
            self.chain.verify_server_cert(leaf, intermediates, &own_name, ocsp, now).map_err(other_root)?;
        let uid = peer_uid(&presented).map_err(refusal)?;
        if !x509::lies_under(&uid, &self.hub_name) {
            let reason = format!(
                "is no hub's: it isn't under {:?}. Either something else than a hub answers at this address, \
                 or the hubs have another name: set it in the bundle (hub_name) or by EVENTFLOW_HUB_NAME",
                self.hub_name
            );
            return Err(refusal(PkiError::certificate(uid.as_str(), reason)));
        }
        match &self.expect_id {
            Some(id) if !uid.eq_ignore_ascii_case(id) => {
                let reason = format!(
                    "isn't that of {id}, which was dialed: another hub answers at this address; \
                     correct the address, or leave the id out to accept any hub"
                );
                Err(refusal(PkiError::certificate(uid.as_str(), reason)))
            }
            _ => Ok(verified),
        }
    }
}

impl ServerCertVerifier for HubVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _asked: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // The asked name may be `any.<hub name>`, which no certificate bears.
        self.verify(leaf, intermediates, ocsp, now).inspect_err(|error| {
            let hub =
                x509::parse(leaf, "the hub").map_or_else(|_| "?".into(), |leaf| x509::display_name(&leaf));
            warn!(hub.id = hub, %error, "the hub's certificate is refused");
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

impl fmt::Debug for HubVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubVerifier")
            .field("hub_name", &self.hub_name)
            .field("expect_id", &self.expect_id)
            .finish_non_exhaustive()
    }
}
