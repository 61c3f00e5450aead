//! How a spoke connects and how long it tries.

use std::time::Duration;

use crate::{pki::Bundle, wire::HubAddress};

/// How a spoke connects. Made from a bundle of credentials; the rest has defaults.
///
/// ```no_run
/// use std::time::Duration;
/// use eventflow::{pki::Bundle, spoke::SpokeConfig};
///
/// # fn main() -> Result<(), eventflow::pki::PkiError> {
/// let mut config = SpokeConfig::from_bundle(Bundle::read("operator.toml")?);
/// config.connect_deadline = Duration::from_secs(5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SpokeConfig {
    /// Certificate, key and root; `Debug` masks the key.
    pub bundle: Bundle,
    /// Where hubs listen, tried in this order until the first link is there. Default: the bundle's.
    pub hubs: Vec<HubAddress>,
    /// Whether to link also to the hubs of the same database that a hub tells of. Without, a spoke has links to the hubs above
    /// alone, and sees only what those serve. Default: it does.
    pub discover: bool,
    /// Program and version, for the hub's log: at most 64 characters are kept. Default: this crate's.
    pub client: String,
    /// How long [`Spoke::connect`](super::Spoke::connect) tries before it fails. Default 15 s.
    pub connect_deadline: Duration,
    /// How long one address may take from the first packet to `welcome`. Default 10 s.
    pub handshake_deadline: Duration,
    /// How long a publish that says nothing else is tried. Default 30 s.
    pub publish_deadline: Duration,
    /// How long all other requests wait for their answer. Default 30 s.
    pub request_deadline: Duration,
    /// How long [`Spoke::close`](super::Spoke::close) waits for what is under way. Default 20 s.
    pub close_deadline: Duration,
    /// Bounds of the wait before another attempt to connect; it doubles, with full jitter.
    /// Default 100 ms to 5 s.
    pub backoff: (Duration, Duration),
    /// Events that a subscription holds for a slow reader before it lags. Default 4,096.
    pub subscription_events: usize,
    /// Bytes that a subscription holds for a slow reader before it lags; one event always fits.
    /// Default 8 MiB.
    pub subscription_bytes: usize,
    /// Bytes of publishes, each counted with 512 more, that wait or are un-acked at once; beyond it
    /// `publish` waits before it takes the event. Default 16 MiB.
    pub publish_buffer: usize,
}

impl SpokeConfig {
    /// Credentials and hubs of a bundle, the rest by default.
    #[must_use]
    pub fn from_bundle(bundle: Bundle) -> Self {
        let hubs = bundle.hubs.clone();
        Self {
            bundle,
            hubs,
            discover: true,
            client: concat!("eventflow-rust ", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_deadline: Duration::from_secs(15),
            handshake_deadline: Duration::from_secs(10),
            publish_deadline: Duration::from_secs(30),
            request_deadline: Duration::from_secs(30),
            close_deadline: Duration::from_secs(20),
            backoff: (Duration::from_millis(100), Duration::from_secs(5)),
            subscription_events: 4096,
            subscription_bytes: 8 << 20,
            publish_buffer: 16 << 20,
        }
    }

    /// Connects to this hub instead of those that the bundle lists. Without an id any hub whose certificate
    /// the bundle's root signed will do.
    #[must_use]
    pub fn hub(mut self, host: impl Into<String>, port: u16) -> Self {
        self.hubs = vec![HubAddress { id: None, host: host.into(), port }];
        self
    }
}
