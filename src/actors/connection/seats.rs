//! Subscriptions and consumers of a v1 link: they share their numbers.

use super::{Connection, replays::Asked, session::Wish};
use crate::{
    actors::{
        deliveries::{Consume, Stop},
        registry::{Subscribe, Unsubscribe, Unwatch, Watch},
    },
    event::{Fault, Group, Pattern, code},
    wire::{ConsumeOptions, Reply, Req, Sub, SubscribeOptions},
};

impl Connection {
    pub(super) fn subscribe(
        &mut self,
        req: Req,
        sub: Sub,
        (domain, name): (Pattern, Pattern),
        options: SubscribeOptions,
    ) -> Result<(), Fault> {
        self.forget_refused();
        self.session.add(sub, Wish::Subscription)?;
        if let Some(since) = options.from {
            self.replays.begin(Asked { req, sub, domain, name, since });
            return Ok(());
        }
        let outlet = self.outlet.clone();
        let sent = self.core.registry.offer(Subscribe { outlet, req, sub, domain, name });
        self.taken(sent).inspect_err(|_| {
            // It was added a moment ago.
            let _ = self.session.remove(sub, Wish::Subscription);
        })
    }

    pub(super) fn unsubscribe(&mut self, req: Req, sub: Sub) -> Result<(), Fault> {
        self.forget_refused();
        self.session.remove(sub, Wish::Subscription)?;
        // First the task, so that it takes no seat after it was taken back.
        self.replays.forget(sub);
        self.core.registry.signal(Unsubscribe { outlet: self.outlet.clone(), req, sub });
        Ok(())
    }

    pub(super) fn consume(
        &mut self,
        req: Req,
        sub: Sub,
        group: Option<Group>,
        (domain, name): (Pattern, Pattern),
        options: ConsumeOptions,
    ) -> Result<(), Fault> {
        if group.is_none() && options.from.is_some() {
            return Err(Fault::refused(
                code::INVALID_RECORD,
                "`from` is for named groups: the default group's bindings start with what nobody wanted of the last \
                 hours, as the hub's `orphan_keep` says",
            ));
        }
        self.forget_refused();
        self.session.add(sub, Wish::Consumer)?;
        let (outlet, link, uid) = (self.outlet.clone(), self.outlet.id(), self.uid.clone());
        let watch = Watch { outlet: outlet.clone(), sub, domain: domain.clone(), name: name.clone() };
        let consume = Consume { outlet, uid, req, sub, group, domain, name, options };
        let sent = self.core.registry.offer(watch).and_then(|()| self.core.deliveries.offer(consume));
        self.taken(sent).inspect_err(|_| {
            self.core.registry.signal(Unwatch { link, sub });
            // It was added a moment ago.
            let _ = self.session.remove(sub, Wish::Consumer);
        })
    }

    pub(super) fn stop_consumer(&mut self, req: Req, sub: Sub) -> Result<(), Fault> {
        self.forget_refused();
        self.session.remove(sub, Wish::Consumer)?;
        self.core.registry.signal(Unwatch { link: self.outlet.id(), sub });
        self.core.deliveries.signal(Stop { outlet: self.outlet.clone(), req, sub });
        Ok(())
    }

    /// A consumer doesn't come to be: its number is free again. False: it has been stopped already.
    pub(super) fn forget_consumer(&mut self, sub: Sub) -> bool {
        let there = self.session.remove(sub, Wish::Consumer).is_ok();
        if there {
            self.core.registry.signal(Unwatch { link: self.outlet.id(), sub });
        }
        there
    }

    /// A consumer gets nothing more: its link is told why.
    pub(super) fn end_consumer(&mut self, sub: Sub, fault: Fault) {
        if self.forget_consumer(sub) {
            self.reply(&Reply::Ended { sub, fault });
        }
    }

    /// The numbers of subscriptions whose replay was refused are free.
    fn forget_refused(&mut self) {
        for sub in self.replays.refused() {
            // It was added when its replay began.
            let _ = self.session.remove(sub, Wish::Subscription);
        }
    }
}
