//! An actor-model event broker: the library behind `eventflow-hub` and `eventflow`.

#[cfg(feature = "hub")]
pub mod config;
pub mod event;
pub mod wire;
