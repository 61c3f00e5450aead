//! Subscriptions of one link that replay what is stored: each a task of its own beside the reads, until it is live.

mod reader;
mod since;

use std::{cell::RefCell, collections::HashMap, rc::Rc, time::Duration};

use tokio::{
    sync::Semaphore,
    task::{AbortHandle, JoinSet},
};

use crate::{
    actors::{mail::Handle, outlet::Outlet, registry::Registry},
    event::{Fault, Pattern, Uid, code},
    metrics::{CutReason, Metrics},
    store::Store,
    wire::{Req, Since, Sub},
};

/// A subscription that a link asked for, with a `from`.
#[derive(Debug)]
pub struct Asked {
    /// Its request.
    pub req: Req,
    /// Its number.
    pub sub: Sub,
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
    /// From where on.
    pub since: Since,
}

/// What a replay works with.
#[derive(Debug)]
struct Around {
    hub: Uid,
    registry: Handle<Registry>,
    store: Store,
    outlet: Outlet,
    metrics: Metrics,
    /// The replays of a link take turns, page by page: together they hold one page, and one seat.
    turns: Semaphore,
    /// Subscriptions that were refused: their numbers are free again.
    refused: RefCell<Vec<Sub>>,
}

/// The subscriptions of one link that replay. Dropped, they end.
#[derive(Debug)]
pub struct Replays {
    around: Rc<Around>,
    /// By number; those that are live meanwhile stand here until they are taken back.
    open: HashMap<Sub, AbortHandle>,
    tasks: JoinSet<()>,
}

impl Replays {
    /// None yet.
    #[must_use]
    pub fn new(hub: Uid, registry: Handle<Registry>, store: Store, outlet: Outlet, metrics: Metrics) -> Self {
        let (turns, refused) = (Semaphore::new(1), RefCell::default());
        let around = Rc::new(Around { hub, registry, store, outlet, metrics, turns, refused });
        Self { around, open: HashMap::new(), tasks: JoinSet::new() }
    }

    /// Begins one, under a number that its link doesn't use. It is answered through the link's outlet.
    pub fn begin(&mut self, asked: Asked) {
        self.reap();
        let sub = asked.sub;
        let task = self.tasks.spawn_local(reader::run(self.around.clone(), asked));
        self.open.insert(sub, task);
    }

    /// A subscription is taken back: from here on it sends nothing and takes no seat.
    pub fn forget(&mut self, sub: Sub) {
        if let Some(task) = self.open.remove(&sub) {
            task.abort();
        }
    }

    /// Those that were refused since the last look.
    pub fn refused(&mut self) -> Vec<Sub> {
        let refused = self.around.refused.take();
        for sub in &refused {
            self.open.remove(sub);
        }
        refused
    }

    /// The link is over: all of them end.
    pub fn end(&mut self) {
        self.tasks.abort_all();
    }

    /// Forgets the tasks that have ended. One that failed would leave its reader without a word: the link is cut.
    pub fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Some(error) = ended.err().filter(|error| !error.is_cancelled()) {
                tracing::error!(conn.id = %self.around.outlet.id(), %error, "a replay failed");
                let text =
                    "the replay failed by a fault of the hub's own; its log says more: subscribe again";
                self.around.outlet.cut(CutReason::Protocol, Fault::retryable(code::INTERNAL, text, AGAIN));
            }
        }
    }
}

/// How long a client waits after a replay failed.
const AGAIN: Duration = Duration::from_secs(1);
