//! Promise: what the table in docs/client.md says that a spoke can do, it does: each row by the Rust client and by the
//! very command that it shows, at one hub. The test of a row has its words as its name.

mod changing;
mod grouping;
mod handling;
mod holding;
mod place;
mod publishing;
mod reading;
mod recurring;
mod scheduling;
mod table;
mod waiting;
