//! The state of a process: its log, composed.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Spoke, StateError};
use crate::event::State;

impl Spoke {
    /// The state of the process `pid` in `domain`: the data of its log, composed as [`State`] says. Always an object,
    /// empty if there is nothing to compose. The log is read page by page; what is kept is the state and one page.
    ///
    /// ```no_run
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let order = spoke.state("orders", "order-1").await?;
    /// println!("{}", order["total"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StateError`] if the log can't be read.
    pub async fn state(&self, domain: &str, pid: &str) -> Result<Value, StateError> {
        let mut state = State::default();
        let mut log = self.log(domain, pid);
        while let Some(page) = log.next_page().await? {
            for event in page {
                state.apply(&event.data).map_err(|source| StateError::Data { id: event.id, source })?;
            }
        }
        Ok(state.into_value())
    }

    /// The state of a process, read into a type.
    ///
    /// ```no_run
    /// #[derive(serde::Deserialize)]
    /// struct Order {
    ///     total: u32,
    /// }
    ///
    /// # async fn example(spoke: eventflow::spoke::Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let order: Order = spoke.state_as("orders", "order-1").await?;
    /// println!("{}", order.total);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StateError`] if the log can't be read, or its state has another shape.
    pub async fn state_as<T: DeserializeOwned>(&self, domain: &str, pid: &str) -> Result<T, StateError> {
        serde_json::from_value(self.state(domain, pid).await?).map_err(StateError::Shape)
    }
}
