//! The one transaction of the Journal: many writes, one sync.

mod adoption;
mod associations;
mod claims;
mod collects;
mod deletions;
mod groups;
mod known;
mod order;
mod others;
mod outcomes;
mod publishes;
mod recurring;
mod redrives;
mod retries;
mod rounds;
mod schedules;
mod sweeps;
mod tails;
mod takes;
#[cfg(test)]
mod tests;

use std::{ops::Range, time::Duration};

use sea_orm::DbErr;

use self::known::Known;
use super::{
    Store, StoreError, Write, Written,
    engine::{Ask, Engine},
    sql::{Class, Script, is_unexpected, refused},
    writer::Db,
};

/// How often a batch is tried again when somebody else holds the lock.
const RETRIES: u32 = 3;
/// The longest pause before such a try.
const PAUSE_MS: u64 = 50;

type Answer = Result<Written, StoreError>;

/// Why a transaction was rolled back.
enum Failure {
    /// The database said so.
    Database(DbErr),
    /// A row wasn't as the batch supposed. Those who look first know which.
    Surprise,
}

impl From<DbErr> for Failure {
    fn from(error: DbErr) -> Self {
        if is_unexpected(&error) { Failure::Surprise } else { Failure::Database(error) }
    }
}

/// A part of the batch that gets a transaction of its own.
struct Part {
    range: Range<usize>,
    /// Whether to read what stands in the database before writing. The first try doesn't: nearly all batches
    /// are fine.
    look: bool,
}

impl Store {
    /// Writes everything in one transaction and answers each in the order of the batch. When this returns, what
    /// is answered `Ok` is committed; nothing else is.
    ///
    /// Within a batch the publishes take effect first, then outcomes, attempts and retries, then schedules, recurring ones
    /// last, then what npm spokes published, what is collected, claims, and the rest, each kind in the order of the batch;
    /// deletions come last. A publish that names
    /// what an earlier write schedules or cancels waits for that one, in a transaction of its own.
    ///
    /// - A publish of an id that is there is answered as a duplicate or a conflict; an unknown `rid`, a log that ends
    ///   otherwise than expected or a lost claim by its error; the others are committed. [`Write::Batch`] is one write: of a refused one nothing is
    ///   there, not even for a later write of the same transaction.
    /// - If the database is locked by somebody else, the batch is tried again three times. Locked for longer,
    ///   full, read-only, out of reach or damaged: all that isn't committed is refused as retryable. If it is full, outcomes
    ///   and the rest are tried once more without the publishes.
    /// - Any other error: the batch is halved until the one at fault stands alone and gets it.
    ///
    /// The future must be driven to its end: dropped, it leaves open what was committed.
    pub async fn commit(&self, batch: Vec<Write>) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::with_capacity(batch.len());
        let mut tries = 0;
        // The next part is the last one; parts are answered from the front to the back.
        let mut parts: Vec<Part> = order::parts(&batch)
            .into_iter()
            .map(|range| {
                let writes = &batch[range.clone()];
                Part { look: publishes::looks_first(writes) || retries::come_late(writes), range }
            })
            .collect();
        while let Some(Part { range, look }) = parts.pop() {
            if range.is_empty() {
                continue;
            }
            let error = match self.write(&batch[range.clone()], look).await {
                Ok(part) => {
                    answers.extend(part);
                    continue;
                }
                Err(Failure::Surprise) if !look => {
                    parts.push(Part { range, look: true });
                    continue;
                }
                Err(Failure::Surprise) => DbErr::RecordNotUpdated,
                Err(Failure::Database(error)) => error,
            };
            let Err(error) = self.writer.damage().look::<()>(Err(error)) else { continue };
            match Class::of(&error) {
                Class::Constraint if !look => parts.push(Part { range, look: true }),
                Class::Busy if tries < RETRIES => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..=PAUSE_MS))).await;
                    parts.push(Part { range, look });
                }
                Class::Full if is_mixed(&batch[range.start..]) => {
                    answers
                        .extend(self.without_publishes(&batch[range.start..], refused("write")(error)).await);
                    break;
                }
                Class::Busy | Class::Full | Class::Unavailable | Class::Corrupt => {
                    let error = refused("write")(error);
                    answers.resize(batch.len(), Err(error));
                    break;
                }
                Class::Constraint | Class::Other if range.len() == 1 => {
                    answers.push(Err(refused("write")(error)));
                }
                Class::Constraint | Class::Other => {
                    let middle = range.start + range.len() / 2;
                    parts.push(Part { range: middle..range.end, look });
                    parts.push(Part { range: range.start..middle, look });
                }
            }
        }
        answers
    }

    /// There is no room for the events: outcomes need little, and may find it.
    async fn without_publishes(&self, writes: &[Write], full: StoreError) -> Vec<Answer> {
        let others = writes.iter().filter(|write| !is_publish(write)).cloned().collect();
        // Once: what is left has no publishes.
        let mut answers = Box::pin(self.commit(others)).await.into_iter();
        let answer = |write| if is_publish(write) { None } else { answers.next() };
        writes.iter().map(answer).map(|answer| answer.unwrap_or_else(|| Err(full.clone()))).collect()
    }

    async fn write(&self, writes: &[Write], look: bool) -> Result<Vec<Answer>, Failure> {
        if !look && writes.iter().all(is_hot) {
            let (answers, script) = plan(self.writer.engine(), writes, None);
            self.writer.run(script).await?;
            return Ok(answers);
        }
        let transaction = self.writer.begin_marked().await?;
        match write_all(&transaction.db(), writes, look).await {
            Ok(answers) => {
                transaction.commit().await?;
                Ok(answers)
            }
            Err(failure) => {
                transaction.roll_back().await;
                Err(failure)
            }
        }
    }
}

/// What the hot path consists of: it needs no answer of the database but that all went well.
fn is_hot(write: &Write) -> bool {
    matches!(
        write,
        Write::Publish { .. }
            | Write::Batch { .. }
            | Write::Persist(..)
            | Write::Finish { .. }
            | Write::Attempt(_)
            | Write::Retry { .. }
    )
}

/// Whether it stores events, which takes room.
fn is_publish(write: &Write) -> bool {
    write.stores().next().is_some()
}

/// Whether there are publishes and other writes.
fn is_mixed(writes: &[Write]) -> bool {
    let publishes = writes.iter().filter(|write| is_publish(write)).count();
    publishes > 0 && publishes < writes.len()
}

/// The statements of the hot writes of a batch, and the answers if they go through.
fn plan(engine: Engine, writes: &[Write], mut known: Option<&mut Known>) -> (Vec<Answer>, Script) {
    let mut answers: Vec<Answer> = vec![Ok(Written::Done); writes.len()];
    let mut script = Script::new(engine);
    publishes::plan(writes, known.as_deref_mut(), &mut answers, &mut script);
    outcomes::plan(writes, known, &mut answers, &mut script);
    (answers, script)
}

async fn write_all(db: &Db<'_>, writes: &[Write], look: bool) -> Result<Vec<Answer>, Failure> {
    let mut known = if look { Some(Known::read(db, writes).await?) } else { None };
    let (mut answers, script) = plan(db.engine(), writes, known.as_mut());
    tails::count(db, &mut answers).await?;
    script.run(db).await?;
    schedules::write(db, writes, &mut answers).await?;
    recurring::write(db, writes, &mut answers).await?;
    takes::write(db, writes, &mut answers).await?;
    collects::write(db, writes, &mut answers).await?;
    claims::write(db, writes, &mut answers).await?;
    associations::write(db, writes, &mut answers).await?;
    others::write(db, writes, &mut answers).await?;
    groups::write(db, writes, &mut answers).await?;
    redrives::write(db, writes, &mut answers).await?;
    adoption::write(db, writes, &mut answers).await?;
    deletions::write(db, writes, &mut answers).await?;
    sweeps::write(db, writes, &mut answers).await?;
    Ok(answers)
}
