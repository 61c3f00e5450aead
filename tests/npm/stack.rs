//! The npm stack, played: spokes and hubs that do what those of npm Eventflow 4.8 do, with its statements in its order
//! and its faults. Nothing of the library under test is used here, a test sees to that: what both ends got wrong in the
//! same way would pass unseen. Certificates are made and keys opened by the `openssl` command, as there.

pub mod certificates;
pub mod channel;
pub mod database;
pub mod deployment;
pub mod hub;
pub mod id;
pub mod openssl;
pub mod schema;
pub mod spoke;
pub mod vault;
