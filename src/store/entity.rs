//! The tables as sea-orm knows them, one module each.
//!
//! The hot path speaks SQL of its own; these serve everything else.

// The derives make public items inside these private modules.
#![allow(unreachable_pub, dead_code, missing_docs)]

pub mod attempt;
pub mod binding;
pub mod binding_start;
pub mod certificate;
pub mod cursor;
pub mod event_published;
pub mod hub_epoch;
pub mod hub_seq;
