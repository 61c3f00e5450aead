//! What all npm parties of a deployment are configured with.

use super::{certificates::Certificates, database::Database, vault::Vault};

/// The configured name of spokes, by default.
pub const SPOKES: &str = "EVENTFLOW-SPOKE";
/// The configured name of hubs, by default.
pub const HUBS: &str = "EVENTFLOW-HUB";

/// The database and the phrase. Cheap to clone.
#[derive(Clone)]
pub struct Deployment {
    pub database: Database,
    pub certificates: Certificates,
}

impl Deployment {
    /// `rounds` of PBKDF2 make a key of the phrase.
    pub fn new(url: &str, phrase: &str, rounds: u32) -> Self {
        let database = Database::at(url);
        let certificates = Certificates::new(&database, &Vault::new(phrase, rounds));
        Self { database, certificates }
    }
}
