//! One binary for all integration tests: a module each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

mod golden_bytes;
