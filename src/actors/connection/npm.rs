//! npm's dialect: its links subscribe, and say what they have put into the database.

use actix::{ActorFutureExt, AsyncContext, Context, fut::wrap_future};

use super::{Connection, session::Speaks, v1::Gathered};
use crate::{
    actors::{
        listener::Online,
        mail::MailError,
        npm::ignored,
        outlet::Frame,
        registry::{SubscribeNpm, UnsubscribeNpm},
    },
    event::Uid,
    metrics::CutReason,
    wire::{self, HubAddress, Record, Reply, npm::FromNpm},
};

/// What a publish weighs in the window besides its id, in bytes.
const PUBLISH: usize = 128;

impl Connection {
    /// Takes a record of an npm link. npm knows no answers: what can't be done is logged.
    pub(super) fn npm(&mut self, record: &Record, gathered: &mut Gathered, ctx: &mut Context<Self>) {
        match wire::npm::parse(record) {
            FromNpm::Subscribe { domain, name } => {
                let subscribe = SubscribeNpm { outlet: self.outlet.clone(), domain, name };
                self.npm_sent(self.core.registry.offer(subscribe));
            }
            FromNpm::Unsubscribe { domain, name } => {
                let unsubscribe = UnsubscribeNpm { link: self.outlet.id(), domain, name };
                self.npm_sent(self.core.registry.offer(unsubscribe));
            }
            // What the record says besides isn't looked at: the database says it too.
            FromNpm::Publish { id, .. } => {
                let permit = self.outlet.charge(PUBLISH + id.len());
                gathered.taken.push((id, permit));
            }
            FromNpm::Online { hub, ip, port } => self.online(hub, ip, port, ctx),
            FromNpm::Unknown { verb } => self.ignore(&verb),
            FromNpm::Malformed(fault) => self.ignore(&format!("a record that is none: {fault}")),
        }
    }

    fn ignore(&self, what: &str) {
        ignored(self.metrics.hub(), &self.outlet, &self.uid, what);
    }

    /// A peer hub says that it is there. Any client can say so: it must be that hub, by its certificate, and the
    /// database must know it as running.
    fn online(&mut self, hub: Uid, ip: String, port: u16, ctx: &mut Context<Self>) {
        if *hub == *self.config.welcome.hub {
            self.ignore("online: this hub's own id");
        } else if hub != self.uid {
            self.ignore(&format!("online of {hub}: this link is {}", self.uid));
        } else if std::mem::replace(&mut self.announced, true) {
            self.ignore("online: said before");
        } else {
            let store = self.store.clone();
            // npm hubs say it and close: a link with something under way waits for that before it ends.
            let permit = self.outlet.charge(0);
            let look = async move { (store.is_hub_open(&hub).await, hub) };
            ctx.spawn(wrap_future::<_, Self>(look).map(move |(open, hub), connection, _| {
                drop(permit);
                match open {
                    Ok(true) => {
                        tracing::info!(peer.id = %hub, ip, port, "another hub is there");
                        let hub = HubAddress { id: Some(hub.to_string()), host: ip, port };
                        connection.listener.signal(Online { from: connection.outlet.id(), hub });
                    }
                    Ok(false) => {
                        connection.ignore(&format!("online of {hub}: the database knows no such hub"))
                    }
                    Err(error) => connection.ignore(&format!("online of {hub}: {error}")),
                }
            }));
        }
    }

    /// Tells the other end of a peer hub. A v1 client skips what comes before its welcome.
    pub(super) fn say_online(&self, hub: &HubAddress) {
        if self.gone {
            return;
        }
        match self.session.speaks() {
            Speaks::V1 if self.session.is_welcome() => self.reply(&Reply::Online(hub.clone())),
            Speaks::V1 => {}
            Speaks::Npm | Speaks::Unknown => {
                let id = Uid::from_stored(hub.id.clone().unwrap_or_default());
                self.outlet.send(Frame::Raw(wire::npm::online(&id, &hub.host, hub.port)));
            }
        }
    }

    /// Tells a v1 client of a hub that lives. npm's spokes hear of hubs as npm has it, from those themselves.
    pub(super) fn say_lives(&self, hub: &HubAddress) {
        if !self.gone && self.session.speaks() == Speaks::V1 && self.session.is_welcome() {
            self.reply(&Reply::Online(hub.clone()));
        }
    }

    /// A wish that isn't taken can't be answered: the link is cut, and its client connects and asks again.
    fn npm_sent(&self, sent: Result<(), MailError>) {
        if let Err(fault) = self.taken(sent) {
            self.outlet.cut(CutReason::of(&fault.code), fault);
        }
    }
}
