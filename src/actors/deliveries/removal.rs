//! Named groups that are removed. Until the journal has committed that, it may come to nothing: consumers are held, not
//! ended, and what ends of their claims isn't written. No outcome may come to the store behind the removal, where a
//! group of that name that is made later would find it.

use std::collections::BTreeMap;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio::sync::oneshot;

use super::{
    Deliveries, TICK,
    changes::{Asked, text},
    effects::{Effects, Ended, Finish, Retry, claim_lost},
    groups::GroupNo,
};
use crate::{
    actors::{
        clock::{Now, now_millis as now},
        journal::Alter,
    },
    event::{Fault, Group as Name, code},
    store::{Write, Written},
    wire::{GroupChanged, Token},
};

/// Outcomes of a removed group that one transaction deletes.
const MOST_REMOVED: usize = 1_000;

/// What ended in a group since its removal was asked for: of each claim that its consumers held, one at most.
#[derive(Debug, Default)]
struct HeldBack {
    finishes: Vec<Finish>,
    retries: Vec<Retry>,
    ended: Vec<Ended>,
}

impl HeldBack {
    fn tokens(&self) -> impl Iterator<Item = Token> {
        let finishes = self.finishes.iter().map(|finish| finish.token);
        finishes.chain(self.retries.iter().map(|retry| retry.token))
    }
}

/// Groups whose removal isn't decided yet.
#[derive(Debug, Default)]
pub(super) struct Removals(BTreeMap<Name, HeldBack>);

impl Removals {
    /// Whether the removal of this group isn't decided yet.
    pub(super) fn contains(&self, group: Option<&Name>) -> bool {
        group.is_some_and(|name| self.0.contains_key(name))
    }

    /// Takes out what is not to be written yet.
    pub(super) fn hold_back(&mut self, effects: &mut Effects) {
        for (name, held) in &mut self.0 {
            let is_its = |group: &Option<Name>| group.as_ref() == Some(name);
            held.finishes.extend(effects.finishes.extract_if(.., |finish| is_its(&finish.group)));
            held.retries.extend(effects.retries.extract_if(.., |retry| is_its(&retry.attempt.group)));
            held.ended.extend(effects.ended.extract_if(.., |ended| is_its(&ended.attempt.group)));
        }
    }

    fn begin(&mut self, name: Name) {
        self.0.insert(name, HeldBack::default());
    }

    fn end(&mut self, name: &Name) -> HeldBack {
        self.0.remove(name).unwrap_or_default()
    }
}

impl Deliveries {
    /// Nothing is handed out in the group from here on.
    pub(super) fn remove(&mut self, no: GroupNo, name: Name, asked: Asked, ctx: &mut Context<Self>) {
        self.groups.hold(no);
        self.removals.begin(name.clone());
        self.remove_part(name, Some(no), asked, ctx);
    }

    /// Goes on with the removal of groups that a hub was killed in: the store has their outcomes yet. Until they are gone
    /// there can be no other group of that name.
    pub(super) fn clean_up(&mut self, ctx: &mut Context<Self>) {
        for name in std::mem::take(&mut self.left) {
            self.changing.insert(Some(name.clone()));
            self.clean_part(name, ctx);
        }
    }

    fn clean_part(&mut self, name: Name, ctx: &mut Context<Self>) {
        let (told, answer) = oneshot::channel();
        let hub = self.config.hub.clone();
        let (by, group) = (hub.clone(), name.to_string());
        let write = Write::RemoveGroup { group, hub, at: now(), by, most: MOST_REMOVED };
        self.journal.signal(Alter { write, done: told });
        ctx.spawn(answer.into_actor(self).map(move |answer, deliveries, ctx| match answer {
            Ok(Ok(Written::Removed { more: true })) => deliveries.clean_part(name, ctx),
            Ok(Ok(_)) => {
                tracing::info!(group = %name, "the removal of a group that was interrupted is done");
                deliveries.changing.remove(&Some(name));
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "what is left of a removed group can't be deleted; trying again");
                ctx.run_later(TICK, |deliveries, ctx| deliveries.clean_part(name, ctx));
            }
            // The journal is gone: the core restarts.
            Err(_) => {}
        }));
    }

    /// Deletes what the store has of it, part by part. The first of them decides; until then the group has its number.
    fn remove_part(&mut self, name: Name, no: Option<GroupNo>, asked: Asked, ctx: &mut Context<Self>) {
        self.changing.insert(Some(name.clone()));
        let (told, answer) = oneshot::channel();
        let (hub, at, by) = (self.config.hub.clone(), now(), asked.uid.clone());
        let write = Write::RemoveGroup { group: name.to_string(), hub, at, by, most: MOST_REMOVED };
        self.journal.signal(Alter { write, done: told });
        ctx.spawn(answer.into_actor(self).map(move |answer, deliveries, ctx| match (answer, no) {
            (Ok(Ok(written)), no) => {
                if let Some(no) = no {
                    deliveries.removed(no, &name, ctx);
                }
                if let Written::Removed { more: true } = written {
                    deliveries.remove_part(name, None, asked, ctx);
                } else {
                    deliveries.changing.remove(&Some(name));
                    asked.answer(Ok(GroupChanged { settings: None, events: 0 }));
                }
            }
            (Ok(Err(fault)), Some(no)) => {
                deliveries.kept(no, name, ctx);
                asked.answer(Err(fault));
            }
            // The rest must go before there can be another group of that name.
            (Ok(Err(error)), None) => {
                tracing::warn!(%error, "what is left of a removed group can't be deleted; trying again");
                ctx.run_later(TICK, |deliveries, ctx| deliveries.remove_part(name, None, asked, ctx));
            }
            // The journal is gone: the core restarts, and cuts the links with that reason.
            (Err(_), _) => {}
        }));
    }

    /// The store has it no more: its consumers end, and so do their claims, those that they have settled since included.
    fn removed(&mut self, no: GroupNo, name: &Name, ctx: &mut Context<Self>) {
        let held = self.removals.end(name);
        let mut effects = Effects::default();
        self.groups.take_out(no, Now::read(), &mut effects);
        for token in held.tokens() {
            if let Some((outlet, req)) = self.groups.recorded(token, false, Now::read(), &mut effects) {
                self.metrics.hub().claims_lost.inc();
                outlet.answer(req, Err(claim_lost()));
            }
        }
        let fault = Fault::refused(code::GROUP_NOT_FOUND, format!("{} was removed", text(Some(name))));
        self.end_consumers(&mut effects, &fault);
        self.apply(effects, ctx);
    }

    /// The store keeps it: all goes on, and what ended meanwhile is written.
    fn kept(&mut self, no: GroupNo, name: Name, ctx: &mut Context<Self>) {
        let HeldBack { finishes, retries, ended } = self.removals.end(&name);
        self.changing.remove(&Some(name));
        let mut effects = Effects { finishes, retries, ended, ..Effects::default() };
        self.groups.resume(no, Now::read(), &mut effects);
        self.apply(effects, ctx);
    }
}
