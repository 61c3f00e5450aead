//! How a v1 link begins: who is there, and what both ends keep to.

use serde::{Deserialize, Serialize};

/// The first record of a v1 client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Program and version, for the hub's log: at most 64 characters are kept.
    #[serde(default)]
    pub client: String,
}

/// The hub's answer to `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The hub's id.
    pub hub: String,
    /// Raised at each start of this hub.
    pub epoch: u64,
    /// What the client must keep to.
    pub limits: LinkLimits,
    /// All live hubs, this one included.
    pub hubs: Vec<HubAddress>,
    /// Names of optional features.
    #[serde(default)]
    pub features: Vec<String>,
}

/// What a v1 link must keep to. Sizes in bytes, times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkLimits {
    /// Publishes un-acked at once.
    pub window_requests: u32,
    /// Weight of the publishes un-acked at once; a lone one always fits.
    pub window_bytes: u64,
    /// The data of one event.
    pub data_bytes: u64,
    /// One record.
    pub record_bytes: u64,
    /// Units of one record.
    pub units: u32,
    /// The most events that a consumer may ask as credit.
    pub credit: u32,
    /// The most bytes that a consumer holds un-acked; one event always fits.
    pub credit_bytes: u64,
    /// Subscriptions and consumers of one link.
    pub subscriptions: u32,
    /// A claim without a word of its holder for so long is offered again, unless the consumer asked for another time.
    pub lease_ms: u64,
    /// Each end pings when it has sent nothing for so long.
    pub ping_ms: u64,
    /// Each end cuts the link when it has received nothing for so long.
    pub silence_ms: u64,
}

/// Where a hub listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HubAddress {
    /// The hub's id, if known: it is then demanded of its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Host name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}
