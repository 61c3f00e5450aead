//! An actor-model event broker: the library behind `eventflow-hub` and `eventflow`.

pub mod event;
pub mod wire;
