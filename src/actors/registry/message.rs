//! What the [`Registry`](super::Registry) receives.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::oneshot;

use super::waits::{Awaited, Found};
use crate::{
    actors::{
        dispatched::Dispatched,
        mail::mail,
        outlet::{LinkId, Outlet, Owed},
        waiters::WaitKey,
    },
    event::Pattern,
    store::Gone,
    wire::{Req, Sub},
};

/// A v1 link wants a copy of every matching event. Answered through its outlet.
#[derive(Debug)]
pub struct Subscribe {
    /// The link.
    pub outlet: Outlet,
    /// Its request.
    pub req: Req,
    /// The number that it chose.
    pub sub: Sub,
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
}
mail!(Subscribe => ());

/// An npm link wants a copy of every matching event. npm has no answer to it.
#[derive(Debug)]
pub struct SubscribeNpm {
    /// The link.
    pub outlet: Outlet,
    /// The domain, literally.
    pub domain: Pattern,
    /// The name, literally, or every name.
    pub name: Pattern,
}
mail!(SubscribeNpm => ());

/// An npm link takes a subscription back.
#[derive(Debug)]
pub struct UnsubscribeNpm {
    /// The link.
    pub link: LinkId,
    /// As it was subscribed.
    pub domain: Pattern,
    /// As it was subscribed.
    pub name: Pattern,
}
mail!(UnsubscribeNpm => ());

/// A v1 link takes a subscription back. Answered through its outlet.
#[derive(Debug)]
pub struct Unsubscribe {
    /// The link.
    pub outlet: Outlet,
    /// Its request.
    pub req: Req,
    /// Which subscription.
    pub sub: Sub,
}
mail!(Unsubscribe => ());

/// A link consumes such events: they don't count as unseen by any link.
#[derive(Debug)]
pub struct Watch {
    /// The link.
    pub outlet: Outlet,
    /// The consumer's number.
    pub sub: Sub,
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
}
mail!(Watch => ());

/// A link consumes no longer what it asked for by [`Watch`].
#[derive(Debug)]
pub struct Unwatch {
    /// The link.
    pub link: LinkId,
    /// The consumer's number.
    pub sub: Sub,
}
mail!(Unwatch => ());

/// A link waits for an event: the first that is dispatched from here on, once.
#[derive(Debug)]
pub struct AwaitEvent {
    /// Which wait of which link.
    pub who: WaitKey,
    /// For what.
    pub what: Awaited,
    /// Gets the event.
    pub found: Found,
    /// Hears that the registry looks out for it: what is dispatched later is told, what was dispatched before is in
    /// the store.
    pub seated: oneshot::Sender<()>,
}
mail!(AwaitEvent => ());

/// Asks for the last sequence number that was dispatched: all up to it is in the store.
#[derive(Debug)]
pub struct Head;
mail!(Head => u64);

/// A subscription that replays has come near: what is dispatched from now on is kept for it. The answer is the last
/// sequence number that was dispatched before: up to it the subscription reads the store.
#[derive(Debug)]
pub struct TakeSeat {
    /// The link.
    pub outlet: Outlet,
    /// The subscription's number.
    pub sub: Sub,
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
}
mail!(TakeSeat => u64);

/// A subscription that replays has sent all up to its seat, and what it was handed since: it wants to be live.
#[derive(Debug)]
pub struct GoLive {
    /// The link.
    pub outlet: Outlet,
    /// The subscription's number.
    pub sub: Sub,
}
mail!(GoLive => Switch);

/// What becomes of a subscription that wants to be live.
#[derive(Debug, actix::MessageResponse)]
pub enum Switch {
    /// It is: what was kept for it is on its way, and what comes follows.
    Live,
    /// The link has no room for what was kept: it is to be sent first. The seat stays.
    Kept(Vec<Arc<Dispatched>>),
    /// More came than is kept: the seat is lost, and the store is to be read up to this number.
    Behind(u64),
}

/// A wait is over, whether it was met or not.
#[derive(Debug)]
pub struct ForgetEvent {
    /// Which wait of which link.
    pub who: WaitKey,
    /// For what it was.
    pub what: Awaited,
}
mail!(ForgetEvent => ());

/// A link ended.
#[derive(Debug)]
pub struct LinkGone(pub LinkId);
mail!(LinkGone => ());

/// Asks how many subscriptions and consumers each of these links has.
#[derive(Debug)]
pub struct Wanting(pub Arc<[LinkId]>);
mail!(Wanting => Wanted);

/// The answer, by link.
#[derive(Debug, actix::MessageResponse)]
pub struct Wanted(pub HashMap<LinkId, usize>);

/// Events were committed, in sequence.
#[derive(Debug)]
pub struct Committed {
    /// Those that this hub serves.
    pub events: Vec<Arc<Dispatched>>,
    /// Those that only npm links hear of: another hub serves our own.
    pub npm: Vec<Arc<Dispatched>>,
}
mail!(Committed => ());

/// Events were deleted, all of them dispatched by an earlier [`Committed`] if at all.
#[derive(Debug)]
pub struct Deleted {
    /// The events.
    pub gone: Vec<Gone>,
    /// To be answered once nobody hands out any of them.
    pub owed: Vec<Owed>,
}
mail!(Deleted => ());

/// Ends the actor by a panic, to show that nothing is lost by one.
#[derive(Debug)]
pub struct Panic;
mail!(Panic => ());
