//! Sweeps of retention: what the rest of the core hears of them.

use tokio::sync::oneshot;

use super::batch::{Told, mismatch};
use crate::{
    actors::mail::mail,
    event::Fault,
    store::{self, StoreError, Swept, Written},
};

/// Events that are to expire or to go, if that still holds. The keeper sends one at a time.
#[derive(Debug)]
pub struct Sweep {
    /// Which, and by what.
    pub sweep: store::Sweep,
    /// Hears what was done, once it is committed.
    pub done: oneshot::Sender<Result<Swept, Fault>>,
}
mail!(Sweep => ());

/// Tells the keeper, and gathers what is gone and what has its outcome now.
pub fn swept(
    done: oneshot::Sender<Result<Swept, Fault>>,
    result: Result<Written, StoreError>,
    told: &mut Told,
) {
    let swept = match result {
        Ok(Written::Swept(swept)) => {
            told.gone.extend(swept.removed.iter().map(|(_, gone)| gone.clone()));
            told.expired.extend(swept.expired.iter().cloned());
            Ok(swept)
        }
        Ok(other) => Err(mismatch(&other)),
        Err(error) => Err(error.into()),
    };
    // A keeper that is gone looks anew: what is written is written.
    let _ = done.send(swept);
}
