//! An actor-model event broker: the library behind `eventflow-hub` and `eventflow`.

#[cfg(feature = "hub")]
pub mod admin;
pub mod event;
#[cfg(feature = "hub")]
pub mod metrics;
pub mod wire;
