//! An actor-model event broker: the library behind `eventflow-hub` and `eventflow`.

pub mod event;
#[cfg(feature = "hub")]
pub mod store;
pub mod wire;
