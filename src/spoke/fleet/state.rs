//! The table of links, and what is registered with all of them.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::Instant;

use super::{parked::Parked, rendezvous::Hub};
use crate::{
    event::Position,
    spoke::command::{Command, ConsumeCommand, Key, Port, SubscribeCommand},
    wire::{HubAddress, Since},
};

/// Names a link for as long as its hub is known.
pub(in crate::spoke) type LinkId = u32;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) links: BTreeMap<LinkId, Link>,
    pub(super) parked: Parked,
    /// Somebody looks after the deadlines of what is parked.
    pub(super) reaping: bool,
    pub(super) subscriptions: BTreeMap<Key, SubscribeCommand>,
    pub(super) consumers: BTreeMap<Key, ConsumeCommand>,
    pub(super) stage: Stage,
    last: LinkId,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Open,
    /// Consumers stop; their handlers may still publish.
    Stopping,
    /// Each link ends by itself.
    Closing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::spoke) enum Standing {
    /// Its first dial hasn't ended.
    New,
    Down,
    Up,
    /// Its hub is stopping.
    Draining,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) address: HubAddress,
    /// It is never given up.
    pub(super) configured: bool,
    /// The hub that it led to last.
    pub(super) hub: Option<Hub>,
    pub(super) standing: Standing,
    /// Its hub refuses this spoke for good.
    pub(super) refused: bool,
    /// When the hub answered last, or another one named it.
    pub(super) heard_of: Instant,
    pub(super) port: Arc<Port>,
}

impl Link {
    pub(super) fn is_up(&self) -> bool {
        self.standing == Standing::Up
    }

    pub(super) fn is_hub(&self, id: &str) -> bool {
        self.hub.as_ref().is_some_and(|hub| &*hub.id == id)
    }

    pub(super) fn is_at(&self, hub: &HubAddress) -> bool {
        self.address.host == hub.host && self.address.port == hub.port
    }

    /// Whether its address is as good as this one.
    pub(super) fn leads_to(&self, hub: &HubAddress) -> bool {
        self.is_at(hub) && (self.address.id.is_none() || self.address.id == hub.id)
    }

    /// Whether that is the same hub, as far as is known.
    pub(super) fn is_of(&self, hub: &HubAddress) -> bool {
        let same = |id: &str| self.is_hub(id) || self.address.id.as_deref() == Some(id);
        self.is_at(hub) || hub.id.as_deref().is_some_and(same)
    }
}

/// Where a command goes.
pub(super) enum Home {
    Link(Arc<Port>),
    /// No link is up.
    Nowhere,
}

impl State {
    pub(super) fn next_id(&mut self) -> LinkId {
        self.last += 1;
        self.last
    }

    /// Whether nothing will ever be taken from here.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Closing || self.links.is_empty()
    }

    /// The only link, if there is but one.
    pub(super) fn alone(&self) -> Option<&Link> {
        match self.links.len() {
            1 => self.links.values().next(),
            _ => None,
        }
    }

    /// The links that are up, the first one first.
    pub(super) fn up(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.iter().filter(|(_, link)| link.is_up()).map(|(id, link)| (*id, link))
    }

    /// What isn't bound to a link goes here. An only link has everything, up or not.
    pub(super) fn home(&self, command: &Command) -> Home {
        let home = match (self.alone(), command) {
            (Some(only), _) => Some(only),
            (None, Command::Write(write)) => {
                let pid = write.write.pid();
                let score = |link: &Link| link.hub.as_ref().map(|hub| hub.score(pid));
                self.up().map(|(_, link)| link).max_by_key(|link| score(link))
            }
            (None, _) => self.up().map(|(_, link)| link).next(),
        };
        home.map_or(Home::Nowhere, |link| Home::Link(link.port.clone()))
    }

    /// Registers with a new link what the others have.
    pub(super) fn joins(&self, port: &Port) {
        for (key, subscribe) in &self.subscriptions {
            // Another hub has begun it: whatever its position is, it is one of these hubs'.
            let subscribe = SubscribeCommand { shared: true, ..subscribe.clone() };
            port.post(Command::Subscribe { key: *key, subscribe, answer: None });
        }
        for (key, consume) in &self.consumers {
            port.post(Command::Consume { key: *key, consume: consume.clone(), answer: None });
        }
    }

    /// Makes room in the lanes of consumers for what each hub may give.
    pub(super) fn widen(&self) {
        for consume in self.consumers.values() {
            consume.lane.widen(consume.options.credit as usize * self.links.len());
        }
    }

    /// Whether the position is one of hubs that are known.
    pub(super) fn shares(&self, since: Option<&Since>) -> bool {
        let Some(Since::Position(position)) = since else { return false };
        let known = |link: &Link| {
            let hub = link.hub.as_ref().map(|hub| &*hub.id).or(link.address.id.as_deref());
            hub.is_some_and(|hub| position.seq(hub).is_some())
        };
        self.links.len() > 1 && self.links.values().any(known)
    }

    /// Where subscriptions stand at a hub whose link is given up.
    pub(super) fn stood(&mut self, standing: &[(Key, Position)]) {
        for (key, position) in standing {
            if let Some(subscribe) = self.subscriptions.get_mut(key) {
                merge(&mut subscribe.left, position);
            }
        }
    }
}

/// The further one of each hub.
pub(super) fn merge(position: &mut Position, other: &Position) {
    for hub in other.hubs() {
        if let Some(seq) = other.seq(hub) {
            position.reach(hub, seq);
        }
    }
}
