//! What no unit test can see: whole parts together, and the shape of the repository itself.

mod layering;
mod package;
