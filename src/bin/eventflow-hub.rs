//! The broker.

fn main() {}
