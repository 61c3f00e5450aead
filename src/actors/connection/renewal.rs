//! A new leaf for the party at the other end.

use std::time::{Duration, Instant};

use super::Connection;
use crate::{
    actors::warden::Renew,
    event::{Fault, code},
    wire::{Answer, Req},
};

/// A link may renew its leaf this often: each renewal leaves a row in the database.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a renewal may take.
const DEADLINE: Duration = Duration::from_secs(10);

impl Connection {
    /// Asks the warden for a leaf on this public key; the answer goes out when it is there.
    pub(super) fn renew(&mut self, req: Req, key: String) {
        let now = Instant::now();
        let again = self.renewed.map_or(now, |last| last + PAUSE);
        if again > now {
            let text = format!("this link has just renewed its certificate: once in {PAUSE:?} is enough");
            self.outlet.answer(req, Err(Fault::retryable(code::HUB_BUSY, text, again - now)));
            return;
        }
        self.renewed = Some(now);
        let renew = Renew { uid: self.uid.clone(), shown: self.shown.clone(), key };
        let (warden, outlet) = (self.warden.clone(), self.outlet.clone());
        // Ends with its deadline; a link that is gone by then takes no answer.
        actix_rt::spawn(async move {
            let renewed = warden.ask(renew, DEADLINE).await.unwrap_or_else(|error| {
                let text = format!("the certificate can't be renewed now: {error}");
                Err(Fault::retryable(code::HUB_BUSY, text, PAUSE))
            });
            outlet.answer(req, renewed.map(|renewed| Answer::Renewed(Box::new(renewed))));
        });
    }
}
