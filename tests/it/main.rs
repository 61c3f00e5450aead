//! What no unit test can see: whole parts together, and the shape of the repository itself. One binary, a module
//! per promise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

mod a_claim_ends_with_its_link;
mod acked_is_committed;
mod core_restart;
mod drain;
mod drain_hands_back;
mod golden_bytes;
mod layering;
mod one_outcome;
mod package;
mod programs;
mod support;
