//! The side that spokes and peer hubs dial.

use std::{fmt, sync::Arc};

use rustls::{
    DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::{
        ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version::TLS13,
};
use tracing::warn;

use super::{other_root, peer_uid, refusal, trust, unusable};
use crate::{
    event::Uid,
    pki::{Authority, PkiError, check_name, provider, x509},
};

/// A further judgement of a peer whose chain and names are in order, for example whether it is revoked. It
/// runs within the handshake: it must answer from memory. The error is the reason, for the log;
/// [`PkiError::Revoked`] is told to the peer too.
pub type PeerCheck = Arc<dyn Fn(&Uid, &[CertificateDer<'_>]) -> Result<(), PkiError> + Send + Sync>;

/// What a hub listens with: TLS 1.3, peers must present a chain of the authority's root that follows the
/// rules of [`peer_uid`], and must ask for `hub_id` or `any.<hub_name>` (in any case).
///
/// # Errors
/// [`PkiError::Certificate`] if the hub's own chain or the root can't be used, [`PkiError::Name`] for a name
/// that no client could ask for.
pub fn server_config(
    authority: &Authority,
    hub_id: &str,
    hub_name: &str,
) -> Result<Arc<ServerConfig>, PkiError> {
    server_config_with(authority, hub_id, hub_name, None)
}

/// As [`server_config`], with a further check of each peer.
///
/// # Errors
/// As [`server_config`].
pub fn server_config_with(
    authority: &Authority,
    hub_id: &str,
    hub_name: &str,
    check: Option<PeerCheck>,
) -> Result<Arc<ServerConfig>, PkiError> {
    check_name(hub_name)?;
    let chain =
        WebPkiClientVerifier::builder_with_provider(trust(authority.root())?, provider()).build().map_err(
            |error| PkiError::certificate("the root", format!("can't be trusted ({error}): get it anew")),
        )?;
    let names = HubNames {
        key: authority.hub_identity().certified_key()?,
        accepted: [hub_id.to_ascii_lowercase(), format!("any.{hub_name}").to_ascii_lowercase()],
    };
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(Arc::new(PeerVerifier { chain, check }))
        .with_cert_resolver(Arc::new(names));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Answers for this hub's names only.
#[derive(Debug)]
struct HubNames {
    key: Arc<CertifiedKey>,
    accepted: [String; 2],
}

impl ResolvesServerCert for HubNames {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = hello.server_name();
        if asked.is_some_and(|name| self.accepted.iter().any(|own| own.eq_ignore_ascii_case(name))) {
            return Some(Arc::clone(&self.key));
        }
        // rustls has no way to hand a reason on from here; `explain` finds its own words for the failure.
        warn!(
            asked = asked.unwrap_or("<no name>"),
            accepted = ?self.accepted,
            code = crate::event::code::INVALID_HOSTNAME,
            "a client asked for a hub that doesn't live here"
        );
        None
    }
}

/// Accepts peers: chain and dates as webpki checks them, then the rules for leaves, then the further check.
struct PeerVerifier {
    chain: Arc<dyn ClientCertVerifier>,
    check: Option<PeerCheck>,
}

impl PeerVerifier {
    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.chain.verify_client_cert(leaf, intermediates, now).map_err(other_root)?;
        let presented: Vec<_> = std::iter::once(leaf).chain(intermediates).cloned().collect();
        let uid = peer_uid(&presented).map_err(refusal)?;
        if let Some(check) = &self.check {
            check(&uid, &presented).map_err(refusal)?;
        }
        Ok(verified)
    }
}

impl ClientCertVerifier for PeerVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.verify(leaf, intermediates, now).inspect_err(|error| {
            let peer =
                x509::parse(leaf, "the peer").map_or_else(|_| "?".into(), |leaf| x509::display_name(&leaf));
            warn!(spoke.id = peer, %error, "a peer's certificate is refused");
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

impl fmt::Debug for PeerVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerVerifier").field("check", &self.check.is_some()).finish_non_exhaustive()
    }
}
