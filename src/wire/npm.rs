//! The npm dialect.
