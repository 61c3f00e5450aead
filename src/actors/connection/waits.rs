//! Waits of one link: each a task of its own beside the reads, all of them bounded and gone with the link.

mod event;
mod outcome;

use std::{cell::RefCell, collections::HashMap, rc::Rc, sync::Arc};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
};

use super::{Core, v1::FULL_WAIT};
use crate::{
    actors::{
        draining,
        mail::MailError,
        outlet::{Frame, Outlet},
        waiters::WaitKey,
    },
    event::{Event, EventId, Fault, code},
    metrics::Metrics,
    store::Store,
    wire::{Answer, OutcomeOptions, Req, Wait},
};

/// Waits of one link at once.
pub const MOST_WAITS: usize = 1_000;

/// What a link waits for.
#[derive(Debug)]
pub enum Awaits {
    /// An event.
    Event(Wait),
    /// The outcome of an event.
    Outcome(EventId, OutcomeOptions),
}

/// What a wait works with.
#[derive(Debug, Clone)]
struct Around {
    core: Core,
    store: Store,
    outlet: Outlet,
    /// The waits of a link look into the store one after the other: a thousand of them take one reader, not all.
    looks: Arc<Semaphore>,
}

/// The waits of one link. Dropped, they end unanswered.
#[derive(Debug)]
pub struct Waits {
    around: Rc<Around>,
    open: Open,
    tasks: JoinSet<()>,
    /// How many there were.
    made: u64,
    draining: bool,
    metrics: Metrics,
}

impl Waits {
    /// None yet.
    #[must_use]
    pub fn new(core: Core, store: Store, outlet: Outlet, metrics: Metrics) -> Self {
        let around = Rc::new(Around { core, store, outlet, looks: Arc::new(Semaphore::new(1)) });
        Self { around, open: Open::default(), tasks: JoinSet::new(), made: 0, draining: false, metrics }
    }

    /// Begins a wait; it is answered through the link's outlet.
    ///
    /// # Errors
    /// There are too many, or the hub is stopping.
    pub fn begin(&mut self, req: Req, awaits: Awaits) -> Result<(), Fault> {
        self.reap();
        if self.draining {
            return Err(draining());
        }
        if self.open.len() >= MOST_WAITS {
            return Err(too_many());
        }
        self.made += 1;
        let who = WaitKey { link: self.around.outlet.id(), number: self.made };
        let place = self.open.take(who.number, req, self.metrics.clone());
        let around = self.around.clone();
        self.tasks.spawn_local(async move {
            let answer = around.answer(who, awaits).await;
            around.outlet.room().await;
            if place.give_up() {
                around.send(req, answer);
            }
        });
        Ok(())
    }

    /// The hub is stopping: all of them end with that answer.
    pub fn drain(&mut self) {
        self.draining = true;
        for req in self.open.clear() {
            self.around.outlet.answer(req, Err(draining()));
        }
        self.end();
    }

    /// The link is over: all of them end unanswered.
    pub fn end(&mut self) {
        self.tasks.abort_all();
    }

    /// Forgets those that have ended.
    pub fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Some(error) = ended.err().filter(|error| !error.is_cancelled()) {
                tracing::error!(conn.id = %self.around.outlet.id(), %error, "a wait failed");
            }
        }
    }
}

/// What was waited for.
enum Met {
    Event(Box<Event>),
    Outcome(Answer),
}

impl Around {
    async fn answer(&self, who: WaitKey, awaits: Awaits) -> Result<Met, Fault> {
        match awaits {
            Awaits::Event(wait) => event::wait(self, who, wait).await.map(Box::new).map(Met::Event),
            Awaits::Outcome(id, options) => outcome::wait(self, who, id, options).await.map(Met::Outcome),
        }
    }

    /// One after the other with the other waits of the link.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.looks.acquire().await.ok()
    }

    fn send(&self, req: Req, answer: Result<Met, Fault>) {
        let answer = answer.map(|met| match met {
            Met::Event(event) => {
                self.outlet.send(Frame::Item(req, event));
                Answer::Done
            }
            Met::Outcome(answer) => answer,
        });
        self.outlet.answer(req, answer);
    }
}

/// The open waits of a link: who still has its place here is still to be answered. Shared between the connection and
/// its tasks, which run on one thread.
#[derive(Debug, Clone, Default)]
struct Open(Rc<RefCell<HashMap<u64, Req>>>);

impl Open {
    fn len(&self) -> usize {
        self.0.borrow().len()
    }

    fn take(&self, number: u64, req: Req, metrics: Metrics) -> Place {
        self.0.borrow_mut().insert(number, req);
        metrics.hub().waits.inc();
        Place { open: self.clone(), number, metrics }
    }

    fn clear(&self) -> Vec<Req> {
        self.0.borrow_mut().drain().map(|(_, req)| req).collect()
    }
}

/// A place among the open waits, given up at the latest when it is dropped.
struct Place {
    open: Open,
    number: u64,
    metrics: Metrics,
}

impl Place {
    /// False: it was taken away, and the wait is answered already.
    fn give_up(&self) -> bool {
        self.open.0.borrow_mut().remove(&self.number).is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.give_up();
        self.metrics.hub().waits.dec();
    }
}

fn too_many() -> Fault {
    Fault::refused(
        code::TOO_MANY_WAITS,
        format!(
            "this link waits for {MOST_WAITS} events and outcomes, the most that this hub allows: wait for fewer at \
             once, or on another link"
        ),
    )
}

/// The core doesn't take a wait.
fn not_seated(error: MailError) -> Fault {
    match error {
        MailError::Gone => super::restart(),
        _ => Fault::retryable(
            code::HUB_BUSY,
            "the hub has more work waiting than it allows: wait again in a moment",
            FULL_WAIT,
        ),
    }
}
