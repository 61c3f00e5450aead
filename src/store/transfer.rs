//! All that a database holds, on its way to another one, of whatever engine: out by pages, as lines of a file, and in by
//! transactions that know how far in the file they are.
//!
//! The file is lines of JSON, docs/databases.md tells its form: [`TransferHead`] first, then the rows of one table after the
//! other, each an array of the table's name and the values of its columns, then [`TransferEnd`].

mod cell;
mod head;
mod read;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod write;

pub use head::{TRANSFER_FORMAT, TransferEnd, TransferHead, TransferHub, TransferTable};
pub use read::{TransferPage, TransferPlace};
pub use write::{RowRefused, TransferLayout, TransferRow};
