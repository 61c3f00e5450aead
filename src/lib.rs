//! An actor-model event broker: the library behind `eventflow-hub` and `eventflow`.

pub mod event;
#[cfg(feature = "spoke")]
pub mod pki;
#[cfg(feature = "spoke")]
pub mod spoke;
pub mod wire;
