//! What the admin HTTP learns of events.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

use crate::{
    actors::{connection::Core, trace},
    admin::Events,
    event::{Event, EventId, Fault, code},
    store::Store,
    wire::Trace,
};

/// Answers for a hub that is up.
#[derive(Debug)]
pub struct EventDesk {
    /// The core, while there is one.
    pub core: watch::Receiver<Option<Core>>,
    /// For what the database knows.
    pub store: Store,
}

/// As the command line prints it.
#[derive(Serialize)]
struct Life {
    event: Event,
    trace: Trace,
}

#[async_trait]
impl Events for EventDesk {
    async fn life(&self, id: &str) -> Result<Box<RawValue>, Fault> {
        let id = EventId::parse(id.to_owned())?;
        let core = self.core.borrow().clone();
        let Some(core) = core else {
            let why = "the hub's core is restarting: ask again in a moment";
            return Err(Fault::retryable(code::HUB_RESTART, why, Duration::from_secs(1)));
        };
        let (event, trace) = trace::look(&self.store, &core.deliveries, &id).await?;
        to_raw_value(&Life { event, trace })
            .map_err(|error| Fault::refused(code::INTERNAL, format!("the event can't be told: {error}")))
    }
}
