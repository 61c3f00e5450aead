//! A consumer process: it works for both groups, writes down what it does, and may be killed at any moment.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use eventflow::{
    pki::Bundle,
    spoke::{Claim, Consume, SettleError, Spoke, SpokeConfig},
};
use tokio::sync::Semaphore;

use crate::{
    DOMAIN, GROUP,
    journal::{Journal, Line, Step, now},
};

/// Handlers that run at once, for each group.
const HANDLERS: u32 = 4;
/// A claim without a word for so long is over. Consumers are stopped for longer.
pub const LEASE: Duration = Duration::from_secs(2);

struct Desk {
    journal: Journal,
    numbers: AtomicU64,
}

/// `consumer BUNDLE JOURNAL`: works until it is killed, or its parent is gone.
pub fn run(arguments: &[String]) {
    let [bundle, journal] = arguments else { panic!("consumer BUNDLE JOURNAL") };
    let mut config = SpokeConfig::from_bundle(Bundle::read(Path::new(bundle)).unwrap());
    config.backoff = (Duration::from_millis(10), Duration::from_millis(200));
    let desk = Arc::new(Desk { journal: Journal::open(Path::new(journal)), numbers: AtomicU64::new(0) });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // Killed with the hub away: it is waited for.
        let spoke = loop {
            match Spoke::connect(config.clone()).await {
                Ok(spoke) => break spoke,
                Err(error) => eprintln!("{error}"),
            }
        };
        tokio::select! {
            () = work(&spoke, None, &desk) => {}
            () = work(&spoke, Some(GROUP), &desk) => {}
            () = parent_gone() => {}
        }
    });
}

/// Standard input is a pipe that its parent holds.
async fn parent_gone() {
    let mut stdin = tokio::io::stdin();
    let _ = tokio::io::copy(&mut stdin, &mut tokio::io::sink()).await;
}

async fn work(spoke: &Spoke, group: Option<&str>, desk: &Arc<Desk>) {
    let room = Arc::new(Semaphore::new(HANDLERS as usize));
    loop {
        let consume = Consume::new(DOMAIN, "*").concurrency(HANDLERS).credit(16).lease(LEASE);
        let consume = match group {
            Some(group) => consume.group(group),
            None => consume,
        };
        // The hub may be killed while it is asked.
        let Ok(mut claims) = spoke.claims(consume).await else { continue };
        // Whatever comes is written down at once, so that the books know who was handed what, begun or not.
        while let Some(claim) = claims.next().await {
            let (group, desk, room) = (group.unwrap_or("-").to_owned(), desk.clone(), room.clone());
            let number = desk.numbers.fetch_add(1, Ordering::Relaxed);
            desk.write(Step::Handed, number, &group, &claim);
            tokio::spawn(async move {
                let permit = room.acquire_owned().await.unwrap();
                handle(claim, number, &group, &desk).await;
                drop(permit);
            });
        }
    }
}

impl Desk {
    fn write(&self, step: Step, number: u64, group: &str, claim: &Claim) {
        self.write_of(step, number, group, claim.event().id.to_string(), claim.attempt());
    }

    fn write_of(&self, step: Step, number: u64, group: &str, event: String, attempt: u32) {
        self.journal.write(&Line { at: now(), step, number, group: group.to_owned(), event, attempt });
    }
}

async fn handle(claim: Claim, number: u64, group: &str, desk: &Desk) {
    let (event, attempt) = (claim.event().id.to_string(), claim.attempt());
    desk.write(Step::Began, number, group, &claim);
    // The work: a moment, now and then a longer one.
    tokio::time::sleep(Duration::from_millis(if number.is_multiple_of(50) { 150 } else { number % 11 }))
        .await;
    // Some events fail at first.
    let fails = attempt == 1 && event.ends_with("7");
    let settled = if fails { claim.nack("not yet").await } else { claim.ack().await };
    let step = match settled {
        Ok(()) if fails => Step::Nacked,
        Ok(()) => Step::Acked,
        Err(SettleError::ClaimLost) => Step::Lost,
        Err(_) => Step::InDoubt,
    };
    desk.write_of(step, number, group, event, attempt);
}
