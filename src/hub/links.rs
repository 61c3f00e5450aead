//! What the links of a hub are told and keep to.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::HubError;
use crate::{
    actors::{
        announcer::{MOST_PEERS, living},
        connection::ConnectionConfig,
    },
    config::{HubConfig, LimitSettings},
    event::Uid,
    store::Store,
    wire::{HubAddress, Limits, LinkLimits, ParseLimits, Welcome},
};

/// The hubs that live now, this one first.
pub(super) async fn live_hubs(own: &HubAddress, store: &Store) -> Result<Arc<[HubAddress]>, HubError> {
    Ok(living(own.clone(), &store.live_hubs(MOST_PEERS).await?))
}

/// What connections keep to, and tell.
pub(super) fn connection_config(
    config: &HubConfig,
    hub: Uid,
    welcome: Welcome,
    hubs: watch::Receiver<Arc<[HubAddress]>>,
) -> ConnectionConfig {
    let limits = &config.limits;
    ConnectionConfig {
        hub,
        welcome,
        hubs,
        records: Limits { record_bytes: clamp(limits.record_bytes()), units: limits.units as usize },
        parse: ParseLimits { data_bytes: clamp(limits.data_bytes) },
        may_delete: config.spokes.may_delete,
        outbound_bytes: clamp(limits.outbound_bytes),
        ping: limits.ping,
        silence: limits.silence,
    }
}

/// What a client is told to keep to.
pub(super) fn link_limits(limits: &LimitSettings) -> LinkLimits {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    LinkLimits {
        window_requests: limits.window_requests,
        window_bytes: limits.window_bytes,
        data_bytes: limits.data_bytes,
        record_bytes: limits.record_bytes(),
        units: limits.units,
        credit: limits.credit,
        credit_bytes: limits.credit_bytes,
        subscriptions: limits.subscriptions,
        lease_ms: ms(limits.lease),
        ping_ms: ms(limits.ping),
        silence_ms: ms(limits.silence),
    }
}

/// In the address space of this machine.
pub(super) fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
