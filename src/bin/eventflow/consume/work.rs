//! The work on one event, from its command to the hub's word.

use std::{future::Future, time::Duration};

use eventflow::spoke::{Claim, Nack, SettleError};
use tokio::time::timeout;

use super::counts::Ended;
use crate::{
    exec::{self, Job, Verdict},
    failure::{self, with_code},
    output::remark,
    stop::Stop,
};

/// Runs the command, and tells the hub how it ended.
pub(super) async fn work(claim: Claim, command: &str, limit: Option<Duration>, stop: &Stop) -> Ended {
    let id = claim_id(&claim);
    let job = Job { event: claim.event(), seq: claim.seq(), attempt: claim.attempt() };
    let verdict = tokio::select! {
        verdict = within(limit, exec::run(command, job)) => Some(verdict),
        // The command is killed as its future is dropped.
        () = stop.forced() => None,
    };
    let Some(verdict) = verdict else {
        // Dropped, it would be released. The end of the link returns it, as an attempt that counts.
        std::mem::forget(claim);
        return Ended::Killed;
    };
    match verdict {
        Verdict::Done => settled(&id, claim.ack(), Ended::Done, stop).await,
        Verdict::Failed { how, said, gives_up } => {
            // All that it said has been shown: the last line says which end this is.
            let last = exec::reason(&how, said.lines().next_back().unwrap_or_default());
            let nack = Nack::new(exec::reason(&how, &said));
            failed(claim, if gives_up { nack.give_up() } else { nack }, Some(last), stop).await
        }
        Verdict::Unrunnable(sentence) => {
            // If this fails the hub offers the event again all the same.
            tokio::select! {
                _ = claim.release() => {}
                () = stop.forced() => {}
            }
            Ended::Unrunnable(sentence)
        }
    }
}

/// The end of a command, which is killed when its time is over.
async fn within(limit: Option<Duration>, running: impl Future<Output = Verdict>) -> Verdict {
    let Some(limit) = limit else { return running.await };
    timeout(limit, running).await.unwrap_or_else(|_| {
        let how = format!("it didn't end within {limit:?} and was killed");
        Verdict::Failed { how, said: String::new(), gives_up: false }
    })
}

/// The event has failed for this reason; `shown` is said of it instead, if the reason is known already.
pub(super) async fn failed(claim: Claim, nack: Nack, shown: Option<String>, stop: &Stop) -> Ended {
    let id = claim_id(&claim);
    let attempt = match claim.attempt() {
        0 | 1 => String::new(),
        attempt => format!(" in attempt {attempt}"),
    };
    remark(&format!("{id} failed{attempt}: {}", shown.unwrap_or_else(|| nack.to_string())));
    settled(&id, claim.nack(nack), Ended::Failed, stop).await
}

pub(super) fn claim_id(claim: &Claim) -> String {
    claim.event().id.to_string()
}

/// Waits for the hub's word, until the second signal.
pub(super) async fn settled(
    id: &str,
    settling: impl Future<Output = Result<(), SettleError>>,
    ended: Ended,
    stop: &Stop,
) -> Ended {
    let settled = tokio::select! {
        settled = settling => settled,
        () = stop.forced() => return Ended::Unconfirmed,
    };
    let Err(error) = settled else { return ended };
    remark(&format!("{id}: {}", with_code(&failure::sentence(&error), error.code())));
    match error {
        SettleError::ClaimLost | SettleError::EventDeleted | SettleError::LinkLost => Ended::TooLate,
        SettleError::Refused(_) => Ended::HandedBack,
        _ => Ended::Unconfirmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_ack_that_came_too_late_is_told_from_one_that_counts() {
        let stop = Stop::listen().unwrap();
        let end = |answer| settled("a", std::future::ready(answer), Ended::Done, &stop);
        assert!(matches!(end(Ok(())).await, Ended::Done));
        assert!(matches!(end(Err(SettleError::ClaimLost)).await, Ended::TooLate));
    }
}
