//! An actor-model event broker: the library behind the programs `eventflow-hub` and `eventflow`.
//!
//! # Start here
//! - **A client** of a hub that runs elsewhere: `spoke::Spoke`, with the credentials of a `pki::Bundle`. It publishes,
//!   subscribes, consumes and reads, and comes back by itself after a lost link.
//! - **A hub inside your program**: `hub::Hub`. Its settings are the fields of `config::HubConfig`, its numbers
//!   `hub::HubHandle::metrics`.
//! - **What an event is**: [`event::Event`]. What a record on the wire is, for a client of your own: [`wire`].
//!
//! Both ends log through [`tracing`](https://docs.rs/tracing) and leave signals and the log's subscriber to the
//! program. Errors are one small enum per operation, each with a stable `code()`, the same as on the wire.
//!
//! # Features
//! | feature | brings | default |
//! |---|---|---|
//! | `spoke` | the client and its credentials: `spoke`, `pki`. Needs a tokio runtime, no database, no actors | by `hub` |
//! | `hub` | the broker: `hub`, `config`, `store`, `metrics`, `admin`, `actors`; contains `spoke` | yes |
//! | `cli` | what the two programs need besides; no module of the library | yes |
//!
//! A client alone is `default-features = false, features = ["spoke"]`.
//!
//! Beside the source stand `README.md`, `docs/semantics.md` (what is promised, and where it ends), `docs/protocol.md`
//! (the wire), `docs/client.md` (all that a spoke can do), `docs/configuration.md`, `docs/operations.md`, and `examples/`
//! with a client and a hub in a program.

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
#[cfg(feature = "hub")]
pub mod recurrence;
#[cfg(feature = "spoke")]
pub mod spoke;
#[cfg(feature = "hub")]
pub mod store;
pub mod wire;
