//! One binary for all integration tests: a module each. They see whole parts together, and the shape of the
//! repository itself.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

mod layering;
mod package;
