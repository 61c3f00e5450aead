//! An actor-model event broker: the library behind `eventflow-hub` and `eventflow`.

#[cfg(feature = "hub")]
pub mod actors;
#[cfg(feature = "hub")]
pub mod admin;
#[cfg(feature = "hub")]
pub mod config;
pub mod event;
#[cfg(feature = "hub")]
pub mod hub;
#[cfg(feature = "hub")]
pub mod metrics;
#[cfg(feature = "spoke")]
pub mod pki;
#[cfg(feature = "spoke")]
pub mod spoke;
#[cfg(feature = "hub")]
pub mod store;
pub mod wire;
