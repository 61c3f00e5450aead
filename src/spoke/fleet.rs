//! Links to all hubs of one database that live.
//!
//! A spoke has one [`Task`](super::task::Task), with one [`Session`](super::session::Session), for each hub that it knows:
//! those of its configuration, and those that a hub names in its `welcome` or by `online`. Each dials its own hub, with
//! a back-off of its own, and holds what is bound to a link: claims, registrations, what is in flight. The fleet is what is
//! above them: a table of links under one lock, that handles and tasks look at; no task of its own stands between a handle and
//! a link, so that with one hub all is as it would be without a fleet.
//!
//! - A **publish** goes to its *home*: of the links that are up the one whose hub wins the rendezvous of its process
//!   ([`rendezvous`]). Choosing and queueing are one step under the lock, and so are marking a link as down and moving what it
//!   can't send any more: to the next homes in the old order, before anything newer is queued there. With several hubs and no
//!   link it is *parked* in the fleet, with its deadline, until one comes up. A fleet of one leaves everything with its link.
//! - **Subscriptions and consumers** are registered with each link, up or not; a hub that comes later gets them when its link
//!   is made. They fill one lane. The caller waits for the links that are up; one that is lost meanwhile joins later, a final
//!   refusal ends the registration. A claim knows the link that brought it and is settled there.
//! - A **wait** is asked on each link, a **query** on the first that is up; what a lost link leaves goes on at the next one.
//! - A link whose hub turns out to have one already is ended, its address is one more of that hub. One that isn't
//!   configured is given up when its hub hasn't answered and nobody named it for a minute.
//! - **Closing** first stops consumers everywhere, since handlers publish anywhere, and then the links.

mod asking;
mod board;
mod closing;
mod crew;
mod everywhere;
mod joining;
mod moving;
mod parked;
mod rendezvous;
mod state;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

pub(super) use self::{board::Board, crew::Crew};
use self::{
    rendezvous::Hub,
    state::{Link, LinkId, Stage, Standing, State},
};
use super::{
    SpokeConfig, Status,
    backoff::Backoff,
    command::{Command, Key, Port, Remark, closed},
    dial::{self, Connector, Dialer},
    session::Session,
    task::Task,
};
use crate::{
    event::{Fault, Position},
    wire::{HubAddress, Welcome},
};

/// Commands that wait for a link's task at most; beyond it callers wait.
const COMMANDS: usize = 1024;
/// Hubs that are linked at most.
const MOST_LINKS: usize = 16;
/// The longest that a caller waits for hubs that were never tried, once one is there.
const SETTLES: Duration = Duration::from_secs(2);
/// How long a hub that isn't configured may be away, and named by nobody, before it is given up.
const GIVEN_UP: Duration = Duration::from_secs(60);

pub(super) struct Fleet {
    me: Weak<Fleet>,
    state: Mutex<State>,
    board: Arc<Board>,
    /// One more hub is known.
    arrived: Notify,
    /// Something is parked that ends before all else that is.
    sooner: Arc<Notify>,
    ended: Arc<OnceLock<Fault>>,
    keys: AtomicU64,
    /// How long a request other than a publish waits for its answer.
    pub(super) deadline: Duration,
    config: SpokeConfig,
    connector: Arc<dyn Connector>,
}

impl Fleet {
    /// A fleet whose first link is there. It ends with [`Self::close`], or by itself when every handle is gone.
    pub(super) fn start(
        config: SpokeConfig,
        connector: Arc<dyn Connector>,
        mut dialer: Dialer,
        link: dial::Link,
    ) -> Arc<Self> {
        let address = dialer.settle();
        let fleet = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            state: Mutex::default(),
            board: Arc::default(),
            arrived: Notify::new(),
            sooner: Arc::default(),
            ended: Arc::default(),
            keys: AtomicU64::new(1),
            deadline: config.request_deadline,
            config,
            connector,
        });
        let welcome = link.welcome.clone();
        let first = fleet.add(&mut fleet.state(), address, true, Some((dialer, link)));
        fleet.admit(first, &welcome);
        for hub in fleet.config.hubs.clone() {
            fleet.learn(hub, true);
        }
        fleet
    }

    /// A hub is there.
    fn learn(&self, hub: HubAddress, configured: bool) {
        let mut state = self.state();
        if state.stage != Stage::Open || !(configured || self.config.discover) {
            return;
        }
        if let Some(known) = state.links.values_mut().find(|link| link.is_of(&hub)) {
            known.heard_of = Instant::now();
            known.configured |= configured;
            if !known.leads_to(&hub) {
                // It has moved, or is there by another name too.
                known.port.post(Command::Reach(hub));
            }
        } else if state.links.len() < MOST_LINKS {
            tracing::info!(hub.id = hub.id, host = hub.host, port = hub.port, "one more hub");
            self.add(&mut state, hub, configured, None);
        } else {
            tracing::warn!(
                hub.id = hub.id,
                "a spoke links to {MOST_LINKS} hubs at most: this one is left out"
            );
        }
    }

    /// Makes a link, with all that is registered.
    fn add(
        &self,
        state: &mut State,
        address: HubAddress,
        configured: bool,
        dialed: Option<(Dialer, dial::Link)>,
    ) -> LinkId {
        let id = state.next_id();
        let ((commands, received), (posted, given)) = (mpsc::channel(COMMANDS), mpsc::unbounded_channel());
        let (remarks, heard) = mpsc::unbounded_channel();
        let (deadline, ended) = (self.deadline, self.ended.clone());
        let port = Arc::new(Port { commands, posted, remarks, deadline, ended: ended.clone() });
        let (first, last) = self.config.backoff;
        let session = Session::new(Backoff::new(first, last), Arc::downgrade(&port));
        let crew = Crew::new(id, self.me.clone(), self.board.clone());
        // The link may be there, though its task hasn't run yet.
        let hub = dialed.as_ref().map(|(_, link)| link.welcome.hub.as_str().into());
        self.board.add(id, dial::address(&address).into(), Status { hub, ..Status::default() });
        state.joins(&port);
        let link = Link {
            address: address.clone(),
            configured,
            hub: None,
            standing: Standing::New,
            refused: false,
            heard_of: Instant::now(),
            port,
        };
        state.links.insert(id, link);
        state.widen();
        let task = Task {
            session,
            commands: received,
            posted: given,
            remarks: heard,
            crew: crew.clone(),
            close_deadline: self.config.close_deadline,
            ended,
            closing: None,
            orphaned: false,
            reach: Vec::new(),
            end: None,
            reported: None,
        };
        let (dialer, link) = match dialed {
            Some((dialer, link)) => (dialer, Some(link)),
            None => {
                let connector = self.connector.clone();
                (Dialer::new(&self.config, connector, vec![address], Instant::now()), None)
            }
        };
        tokio::spawn(task.run(dialer.of(crew), link));
        self.arrived.notify_waiters();
        id
    }

    /// The link has been welcomed by this hub. False: the hub has a link already, this one is to be ended.
    fn admit(&self, id: LinkId, welcome: &Welcome) -> bool {
        let mut state = self.state();
        let other = state.links.iter().find(|(other, link)| **other != id && link.is_hub(&welcome.hub));
        if let Some((_, other)) = other {
            if let Some(link) = state.links.get(&id) {
                other.port.post(Command::Reach(link.address.clone()));
            }
            return false;
        }
        if let Some(link) = state.links.get_mut(&id) {
            link.hub = Some(Hub::new(&welcome.hub));
            link.standing = Standing::Up;
            link.refused = false;
            link.heard_of = Instant::now();
        }
        for command in state.parked.take() {
            self.route(&mut state, command);
        }
        self.told_parked(&state);
        drop(state);
        for hub in &welcome.hubs {
            if hub.id.as_deref() != Some(&welcome.hub) {
                self.learn(hub.clone(), false);
            }
        }
        true
    }

    /// Every hub refuses this spoke for good: it has ended.
    fn refused(&self, id: LinkId, fault: &Fault) -> bool {
        let mut state = self.state();
        if let Some(link) = state.links.get_mut(&id) {
            link.refused = true;
        }
        let ends = state.links.values().all(|link| link.refused);
        if ends {
            for link in state.links.values() {
                link.port.post(Command::End(fault.clone()));
            }
        }
        ends
    }

    /// Whether a link whose hub is away is given up now; else when to look again, if ever.
    fn gives_up(
        &self,
        id: LinkId,
        standing: impl FnOnce() -> Vec<(Key, Position)>,
    ) -> Result<(), Option<Instant>> {
        let now = Instant::now();
        let mut state = self.state();
        let Some(link) = state.links.get(&id) else { return Ok(()) };
        if link.configured {
            return Err(None);
        }
        let due = link.heard_of + GIVEN_UP;
        if now < due {
            return Err(Some(due));
        }
        if !state.links.values().any(Link::is_up) {
            // Nobody is there to know better.
            return Err(Some(now + GIVEN_UP));
        }
        state.stood(&standing());
        self.remove(&mut state, id);
        Ok(())
    }

    /// The link is no more.
    fn remove(&self, state: &mut State, id: LinkId) {
        state.links.remove(&id);
        if state.links.len() == 1 {
            for command in state.parked.take() {
                self.route(state, command);
            }
            self.told_parked(state);
        }
    }

    pub(super) fn remark(&self, remark: Remark) {
        let mut state = self.state();
        match &remark {
            Remark::Subscription(key) => _ = state.subscriptions.remove(key),
            Remark::Consumer(key) => _ = state.consumers.remove(key),
            Remark::Claim(_) | Remark::Drained(_) => {}
        }
        for link in state.links.values() {
            link.port.remark(remark);
        }
    }

    /// Why the spoke is closed.
    pub(super) fn closed(&self) -> Fault {
        self.ended.get().cloned().unwrap_or_else(closed)
    }

    /// A name for a new subscription or consumer.
    pub(super) fn key(&self) -> Key {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn board(&self) -> &Arc<Board> {
        &self.board
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("status", &self.board.status()).finish_non_exhaustive()
    }
}
