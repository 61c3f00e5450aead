//! Who wants what, and the fan-out of committed events.

mod late;
mod message;
mod routes;
mod seats;
mod snapshot;
mod waits;

use std::time::Instant;

use actix::{Actor, ActorContext, Context, Handler};

pub use late::RingLimits;
pub use message::{
    AwaitEvent, Committed, Deleted, ForgetEvent, GoLive, Head, LinkGone, Panic, Subscribe, SubscribeNpm,
    Switch, TakeSeat, Unsubscribe, UnsubscribeNpm, Unwatch, Wanted, Wanting, Watch,
};
pub use waits::Awaited;

use self::{
    routes::{Going, Pushes, Routes},
    waits::Waits,
};
use super::{
    deliveries::{self, Deliveries, Dispatch, NpmCame, NpmLeft},
    life::{Halt, Life},
    mail::{Handle, measured},
    outlet::{EventPush, Frame, Outlet},
    snapshot::{Snapshot, Stall},
};
use crate::{
    metrics::{Meter, Metrics},
    wire::Answer,
};

/// What a [`Registry`] is told at its start.
#[derive(Debug, Clone, Copy)]
pub struct RegistryConfig {
    /// The late subscribers' ring.
    pub ring: RingLimits,
    /// Subscriptions and consumers of one link.
    pub subscriptions: usize,
}

/// - **Role**: knows what every link wants; sends each committed event to the links that want it, and to who waits for
///   it.
/// - **Owns**: the index of patterns, the late subscribers' ring, the head of the hub's sequence, the waits for events,
///   what is kept for subscriptions that replay and are about to be live. It never reads the store.
/// - **Receives**: [`Subscribe`], [`Unsubscribe`], [`SubscribeNpm`], [`UnsubscribeNpm`], [`Watch`], [`Unwatch`],
///   [`AwaitEvent`], [`ForgetEvent`], [`Head`], [`TakeSeat`], [`GoLive`], [`LinkGone`] from connections; [`Committed`] and [`Deleted`] from the journal;
///   [`Halt`], [`Panic`], [`Stall`], [`Snapshot`] and [`Wanting`] from the hub.
/// - **Sends**: frames into the links' outlets, events to the waits of links; [`Dispatch`] to deliveries, with the npm
///   links that match: whether a consumer of ours gets an event is settled before they hear of it; what was deleted,
///   [`NpmCame`] and [`NpmLeft`].
/// - **Capacity**: its mailbox is offered to by connections, which refuse the request when it is full;
///   `Committed` comes at most once per commit. A link whose outlet is full is cut.
/// - **On failure**: the core restarts as one; links are cut and subscribe again.
#[derive(Debug)]
pub struct Registry {
    meter: Meter,
    metrics: Metrics,
    routes: Routes,
    waits: Waits,
    deliveries: Handle<Deliveries>,
    _life: Life,
}

measured!(Registry: Subscribe, SubscribeNpm, UnsubscribeNpm, Unsubscribe, Watch, Unwatch, AwaitEvent, ForgetEvent, Head, TakeSeat, GoLive, LinkGone, Committed, Deleted, Halt, Panic, Snapshot, Wanting, Stall);

impl Registry {
    /// A registry after the events up to `head`.
    #[must_use]
    pub fn new(
        config: RegistryConfig,
        metrics: Metrics,
        meter: Meter,
        head: u64,
        deliveries: Handle<Deliveries>,
        life: Life,
    ) -> Self {
        Self {
            meter,
            metrics,
            routes: Routes::new(config.ring, head, config.subscriptions),
            waits: Waits::default(),
            deliveries,
            _life: life,
        }
    }

    fn push(&self, outlet: &Outlet, events: Vec<EventPush>) {
        self.metrics.hub().delivered.add(events.len() as u64);
        outlet.send(Frame::Events(events));
    }
}

impl Actor for Registry {
    type Context = Context<Self>;
}

impl Handler<Subscribe> for Registry {
    type Result = ();

    fn handle(&mut self, message: Subscribe, _: &mut Self::Context) {
        let Subscribe { outlet, req, sub, domain, name } = message;
        let late = self.routes.subscribe(&outlet, sub, domain, name, Instant::now());
        outlet.answer(req, Ok(Answer::Position(self.routes.head())));
        if !late.is_empty() {
            self.push(&outlet, late);
        }
    }
}

impl Handler<SubscribeNpm> for Registry {
    type Result = ();

    fn handle(&mut self, message: SubscribeNpm, _: &mut Self::Context) {
        let SubscribeNpm { outlet, domain, name } = message;
        let late = self.routes.subscribe_npm(&outlet, domain.clone(), name.clone(), Instant::now());
        if let Some(late) = late {
            self.deliveries.signal(NpmCame { outlet, domain, name, late });
        }
    }
}

impl Handler<UnsubscribeNpm> for Registry {
    type Result = ();

    fn handle(&mut self, message: UnsubscribeNpm, _: &mut Self::Context) {
        let UnsubscribeNpm { link, domain, name } = message;
        if self.routes.unsubscribe_npm(link, &domain, &name) {
            self.deliveries.signal(NpmLeft { link, domain, name });
        }
    }
}

impl Handler<Unsubscribe> for Registry {
    type Result = ();

    fn handle(&mut self, message: Unsubscribe, _: &mut Self::Context) {
        let Unsubscribe { outlet, req, sub } = message;
        self.routes.unsubscribe(outlet.id(), sub);
        outlet.answer(req, Ok(Answer::Done));
    }
}

impl Handler<Watch> for Registry {
    type Result = ();

    fn handle(&mut self, message: Watch, _: &mut Self::Context) {
        let Watch { outlet, sub, domain, name } = message;
        self.routes.watch(&outlet, sub, domain, name);
    }
}

impl Handler<Unwatch> for Registry {
    type Result = ();

    fn handle(&mut self, message: Unwatch, _: &mut Self::Context) {
        self.routes.unwatch(message.link, message.sub);
    }
}

impl Handler<AwaitEvent> for Registry {
    type Result = ();

    fn handle(&mut self, message: AwaitEvent, _: &mut Self::Context) {
        let AwaitEvent { who, what, found, seated } = message;
        self.waits.add(who, what, found);
        // Whoever doesn't hear it is gone, and is about to say so.
        let _ = seated.send(());
    }
}

impl Handler<ForgetEvent> for Registry {
    type Result = ();

    fn handle(&mut self, message: ForgetEvent, _: &mut Self::Context) {
        self.waits.remove(message.who, message.what);
    }
}

impl Handler<Head> for Registry {
    type Result = u64;

    fn handle(&mut self, _: Head, _: &mut Self::Context) -> u64 {
        self.routes.head()
    }
}

impl Handler<TakeSeat> for Registry {
    type Result = u64;

    fn handle(&mut self, message: TakeSeat, _: &mut Self::Context) -> u64 {
        let TakeSeat { outlet, sub, domain, name } = message;
        self.routes.take_seat(&outlet, sub, domain, name);
        self.routes.head()
    }
}

impl Handler<GoLive> for Registry {
    type Result = Switch;

    fn handle(&mut self, message: GoLive, _: &mut Self::Context) -> Switch {
        let GoLive { outlet, sub } = message;
        match self.routes.go_live(&outlet, sub) {
            Going::Live(kept) => {
                if !kept.is_empty() {
                    self.push(&outlet, kept);
                }
                Switch::Live
            }
            Going::Kept(kept) => Switch::Kept(kept),
            Going::Behind => Switch::Behind(self.routes.head()),
        }
    }
}

impl Handler<LinkGone> for Registry {
    type Result = ();

    fn handle(&mut self, message: LinkGone, _: &mut Self::Context) {
        self.routes.link_gone(message.0);
    }
}

impl Handler<Committed> for Registry {
    type Result = ();

    fn handle(&mut self, message: Committed, _: &mut Self::Context) {
        let Committed { events, npm } = message;
        for (outlet, events) in self.routes.tell_npm(&npm) {
            self.metrics.hub().delivered.add(events.len() as u64);
            outlet.send(Frame::Npm(events));
        }
        if events.is_empty() {
            return;
        }
        for dispatched in &events {
            let event = &dispatched.event;
            tracing::trace!(event.id = %event.id, domain = %event.domain, seq = dispatched.seq, "committed");
        }
        let Pushes { v1, npm } = self.routes.dispatch(&events, Instant::now());
        for (outlet, events) in v1 {
            self.push(&outlet, events);
        }
        self.waits.dispatch(&events);
        self.deliveries.signal(Dispatch { events, npm });
    }
}

impl Handler<Deleted> for Registry {
    type Result = ();

    fn handle(&mut self, message: Deleted, _: &mut Self::Context) {
        let Deleted { gone, owed } = message;
        self.routes.forget(&gone);
        // On the way that their dispatch took, so that it can't overtake it.
        self.deliveries.signal(deliveries::Deleted { gone, owed });
    }
}

impl Handler<Halt> for Registry {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Panic> for Registry {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("the registry was told to panic");
    }
}
