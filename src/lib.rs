//! An actor-model event broker: the library behind `eventflow-hub` and `eventflow`.

#[cfg(feature = "hub")]
pub mod config;
pub mod event;
#[cfg(feature = "spoke")]
pub mod pki;
#[cfg(feature = "spoke")]
pub mod spoke;
pub mod wire;
