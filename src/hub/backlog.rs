//! What the admin HTTP learns of groups.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    actors::{backlog, connection::Core},
    admin::Backlogs,
    event::{Fault, Uid, code},
    store::Store,
    wire::BacklogQuery,
};

/// Answers for a hub that is up.
#[derive(Debug)]
pub struct BacklogDesk {
    /// The core, while there is one.
    pub core: watch::Receiver<Option<Core>>,
    /// For what the database counts.
    pub store: Store,
    /// This hub.
    pub hub: Uid,
}

#[async_trait]
impl Backlogs for BacklogDesk {
    async fn backlog(&self, group: Option<String>) -> Result<Value, Fault> {
        let core = self.core.borrow().clone();
        let Some(core) = core else {
            let why = "the hub's core is restarting: ask again in a moment";
            return Err(Fault::retryable(code::HUB_RESTART, why, Duration::from_secs(1)));
        };
        let groups = backlog::look(&self.store, &core.deliveries, &self.hub, BacklogQuery { group }).await?;
        serde_json::to_value(groups)
            .map_err(|error| Fault::refused(code::INTERNAL, format!("the groups can't be told: {error}")))
    }
}
