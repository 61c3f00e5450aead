//! The pure state of the registry: who wants what, and what to send to whom.

mod state;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Instant,
};

use super::{
    late::{Ring, RingLimits},
    seats::{Kept, Seats},
};
use crate::{
    actors::{
        dispatched::Dispatched,
        outlet::{EventPush, LinkId, Outlet},
    },
    event::{Pattern, PatternIndex},
    store::Gone,
    wire::Sub,
};

/// One wish of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Route {
    link: LinkId,
    wish: Wish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wish {
    /// A v1 subscription.
    Subscription(Sub),
    /// A v1 subscription that replays: what is dispatched is kept for it.
    Seat(Sub),
    /// A v1 consumer: it gets its events elsewhere, but they don't count as unseen.
    Consumer(Sub),
    /// An npm subscription, numbered here.
    Npm(u32),
}

#[derive(Debug)]
struct Link {
    outlet: Outlet,
    wishes: HashMap<Wish, (Pattern, Pattern)>,
    npm_made: u32,
}

/// What links are to be sent.
#[derive(Debug, Default)]
pub struct Pushes {
    /// To v1 links, by link.
    pub v1: Vec<(Outlet, Vec<EventPush>)>,
    /// The npm links that are to be told, by sequence number.
    pub npm: BTreeMap<u64, Vec<Outlet>>,
}

/// What becomes of a subscription that wants to be live.
#[derive(Debug)]
pub enum Going {
    /// It is, with this to begin with.
    Live(Vec<EventPush>),
    /// Its link has no room for this yet.
    Kept(Vec<Arc<Dispatched>>),
    /// More came than is kept: it has lost its seat.
    Behind,
}

/// Who wants what.
#[derive(Debug)]
pub struct Routes {
    index: PatternIndex<Route>,
    links: HashMap<LinkId, Link>,
    ring: Ring,
    seats: Seats,
    /// The last sequence number that was dispatched.
    head: u64,
    most: usize,
}

impl Routes {
    /// Nobody wants anything yet. `most` bounds the subscriptions of one npm link; those of a v1 link its
    /// connection bounds.
    #[must_use]
    pub fn new(ring: RingLimits, head: u64, most: usize) -> Self {
        Self {
            index: PatternIndex::default(),
            links: HashMap::new(),
            ring: Ring::new(ring),
            seats: Seats::default(),
            head,
            most,
        }
    }

    /// The last sequence number that was dispatched.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// A v1 subscription of a number that its link doesn't use; returns the events that it still gets though it
    /// comes late.
    pub fn subscribe(
        &mut self,
        outlet: &Outlet,
        sub: Sub,
        domain: Pattern,
        name: Pattern,
        now: Instant,
    ) -> Vec<EventPush> {
        let late = self.ring.claim(outlet.id(), &domain, &name, now);
        self.add(outlet, Wish::Subscription(sub), domain, name);
        late.into_iter().map(|event| EventPush { subs: vec![sub], event }).collect()
    }

    /// An npm subscription. Returns the events that it still gets; none: it is repeated or one too many, and changes
    /// nothing.
    pub fn subscribe_npm(
        &mut self,
        outlet: &Outlet,
        domain: Pattern,
        name: Pattern,
        now: Instant,
    ) -> Option<Vec<Arc<Dispatched>>> {
        let link = self.links.get(&outlet.id());
        let wishes = link.map_or(0, |link| link.wishes.len());
        if wishes >= self.most || link.is_some_and(|link| link.has(&domain, &name)) {
            return None;
        }
        let late = self.ring.claim(outlet.id(), &domain, &name, now);
        let wish = Wish::Npm(link.map_or(0, |link| link.npm_made));
        self.add(outlet, wish, domain, name);
        if let Some(link) = self.links.get_mut(&outlet.id()) {
            link.npm_made += 1;
        }
        Some(late)
    }

    /// Takes an npm subscription back. False: there is no such one.
    pub fn unsubscribe_npm(&mut self, link: LinkId, domain: &Pattern, name: &Pattern) -> bool {
        let wish = self.links.get(&link).and_then(|link| {
            link.wishes.iter().find(|(_, (d, n))| d == domain && n == name).map(|(wish, _)| *wish)
        });
        wish.is_some_and(|wish| self.remove(link, wish))
    }

    /// Takes a v1 subscription back. False: there is none of this number.
    pub fn unsubscribe(&mut self, link: LinkId, sub: Sub) -> bool {
        self.leave_seat(link, sub) || self.remove(link, Wish::Subscription(sub))
    }

    /// A v1 subscription that replays has come near: what is dispatched from now on is kept for it.
    pub fn take_seat(&mut self, outlet: &Outlet, sub: Sub, domain: Pattern, name: Pattern) {
        self.add(outlet, Wish::Seat(sub), domain, name);
        self.seats.take(outlet.id(), sub);
    }

    /// It has sent all up to its seat: it is live from here on if its link has room for what was kept meanwhile.
    pub fn go_live(&mut self, outlet: &Outlet, sub: Sub) -> Going {
        let link = outlet.id();
        let has_room = self.seats.bytes(link, sub).is_some_and(|bytes| outlet.has_room(bytes));
        let kept = match self.seats.empty(link, sub) {
            Kept::Events(kept) => kept,
            Kept::TooMuch => {
                self.leave_seat(link, sub);
                return Going::Behind;
            }
        };
        if !has_room && !kept.is_empty() {
            return Going::Kept(kept);
        }
        let wish = self.links.get(&link).and_then(|link| link.wishes.get(&Wish::Seat(sub)));
        // Without a seat it is about to be taken back.
        let Some((domain, name)) = wish.cloned() else { return Going::Behind };
        self.leave_seat(link, sub);
        self.add(outlet, Wish::Subscription(sub), domain, name);
        Going::Live(kept.into_iter().map(|event| EventPush { subs: vec![sub], event }).collect())
    }

    fn leave_seat(&mut self, link: LinkId, sub: Sub) -> bool {
        self.seats.leave(link, sub);
        self.remove(link, Wish::Seat(sub))
    }

    /// A v1 consumer, for whom events don't count as unseen.
    pub fn watch(&mut self, outlet: &Outlet, sub: Sub, domain: Pattern, name: Pattern) {
        self.add(outlet, Wish::Consumer(sub), domain, name);
    }

    /// The consumer is gone.
    pub fn unwatch(&mut self, link: LinkId, sub: Sub) {
        self.remove(link, Wish::Consumer(sub));
    }

    /// The link is gone with all that it wanted.
    pub fn link_gone(&mut self, link: LinkId) {
        let Some(gone) = self.links.remove(&link) else { return };
        for (wish, (domain, name)) in gone.wishes {
            if let Wish::Seat(sub) = wish {
                self.seats.leave(link, sub);
            }
            self.index.remove(&domain, &name, &Route { link, wish });
        }
    }

    /// Events were committed, in sequence: what each link is to be sent, each event once per link, for all
    /// subscriptions that match in the order of their numbers. npm links aren't told what another hub tells them.
    pub fn dispatch(&mut self, events: &[Arc<Dispatched>], now: Instant) -> Pushes {
        let mut pushes: BTreeMap<LinkId, Vec<EventPush>> = BTreeMap::new();
        let mut npm = BTreeMap::new();
        let mut seats = Vec::new();
        for event in events {
            self.head = self.head.max(event.seq);
            let (mut unseen, mut by_npm) = (true, false);
            self.index.matching(&event.event.domain, &event.event.name, |route| {
                unseen = false;
                match route.wish {
                    Wish::Subscription(sub) => {
                        let list = pushes.entry(route.link).or_default();
                        match list.last_mut().filter(|last| last.event.seq == event.seq) {
                            Some(last) => {
                                let at = last.subs.partition_point(|other| *other < sub);
                                last.subs.insert(at, sub);
                            }
                            None => list.push(EventPush { subs: vec![sub], event: event.clone() }),
                        }
                    }
                    Wish::Seat(sub) => seats.push((route.link, sub)),
                    Wish::Npm(_) => by_npm = true,
                    Wish::Consumer(_) => {}
                }
            });
            for (link, sub) in seats.drain(..) {
                self.seats.keep(link, sub, event);
            }
            if by_npm && !event.shared {
                npm.insert(event.seq, self.npm_links(event));
            }
            if unseen {
                self.ring.keep(event.clone(), now);
            }
        }
        let links = &self.links;
        let to_links = pushes.into_iter();
        let v1 = to_links.filter_map(|(link, push)| Some((links.get(&link)?.outlet.clone(), push))).collect();
        Pushes { v1, npm }
    }

    /// Events that only npm links are to be told of, by link.
    pub fn tell_npm(&self, events: &[Arc<Dispatched>]) -> Vec<(Outlet, Vec<Arc<Dispatched>>)> {
        let mut told: BTreeMap<LinkId, (Outlet, Vec<Arc<Dispatched>>)> = BTreeMap::new();
        for event in events {
            for outlet in self.npm_links(event) {
                told.entry(outlet.id()).or_insert_with(|| (outlet, Vec::new())).1.push(event.clone());
            }
        }
        told.into_values().collect()
    }

    /// The npm links that want an event, each once.
    fn npm_links(&self, event: &Dispatched) -> Vec<Outlet> {
        let mut links = BTreeSet::new();
        self.index.matching(&event.event.domain, &event.event.name, |route| {
            if matches!(route.wish, Wish::Npm(_)) {
                links.insert(route.link);
            }
        });
        links.iter().filter_map(|link| Some(self.links.get(link)?.outlet.clone())).collect()
    }

    /// Events were deleted: no late subscriber gets them, and none that replays.
    pub fn forget(&mut self, gone: &[Gone]) {
        let seqs = gone.iter().filter_map(|gone| gone.seq).collect();
        self.ring.forget(&seqs);
        self.seats.forget(&seqs);
    }

    fn add(&mut self, outlet: &Outlet, wish: Wish, domain: Pattern, name: Pattern) {
        self.index.insert(&domain, &name, Route { link: outlet.id(), wish });
        self.links
            .entry(outlet.id())
            .or_insert_with(|| Link { outlet: outlet.clone(), wishes: HashMap::new(), npm_made: 0 })
            .wishes
            .insert(wish, (domain, name));
    }

    fn remove(&mut self, link: LinkId, wish: Wish) -> bool {
        let removed = self.links.get_mut(&link).and_then(|link| link.wishes.remove(&wish));
        let Some((domain, name)) = removed else { return false };
        self.index.remove(&domain, &name, &Route { link, wish });
        if self.links.get(&link).is_some_and(|link| link.wishes.is_empty()) {
            self.links.remove(&link);
        }
        true
    }
}

impl Link {
    fn has(&self, domain: &Pattern, name: &Pattern) -> bool {
        self.wishes.values().any(|(d, n)| d == domain && n == name)
    }
}
