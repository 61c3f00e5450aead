//! Groups that links change: their settings, where they stand, what they want, and whether they are there at all. Each
//! change is committed before it is answered; of one group, one at a time.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use tokio::sync::oneshot;

use super::{
    ChangeGroup, Deliveries, Redriven,
    effects::Effects,
    groups::{GroupNo, MOST_GROUPS},
    joins::made_group,
    policy,
    start::start_seq,
};
use crate::{
    actors::{
        clock::now_millis as now,
        journal::Alter,
        outlet::{AmendPermit, Outlet, Word},
    },
    event::{Fault, Group as Name, Pattern, Uid, code},
    store::{Write, Written},
    wire::{Answer, GroupAction, GroupChanged, GroupSettings, Req, StartAt},
};

/// How long who changes a group that is being changed is told to wait.
const BUSY: Duration = Duration::from_millis(100);

/// Who asked for a change.
#[derive(Debug)]
pub(super) struct Asked {
    outlet: Outlet,
    pub(super) uid: Uid,
    req: Req,
    _permit: AmendPermit,
    pub(super) group: Option<Name>,
}

impl Asked {
    pub(super) fn answer(self, result: Result<GroupChanged, Fault>) {
        self.outlet.answer(self.req, result.map(|changed| Answer::Group(Box::new(changed))));
    }

    fn name(&self) -> String {
        self.group.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

impl Deliveries {
    fn change(&mut self, message: ChangeGroup, ctx: &mut Context<Self>) {
        let ChangeGroup { outlet, uid, req, permit, group, action } = message;
        let asked = Asked { outlet, uid, req, _permit: permit, group };
        if self.is_changing(asked.group.as_ref()) {
            let fault = being_changed(asked.group.as_ref());
            asked.answer(Err(fault));
            return;
        }
        let no = self.groups.find(asked.group.as_ref());
        match (action, no, asked.group.clone()) {
            (GroupAction::Set(settings), no, _) => self.set(no, settings, asked, ctx),
            (_, None, group) => asked.answer(Err(not_found(group.as_ref()))),
            (GroupAction::Unbind { domain, name }, Some(no), _) => {
                self.unbind(no, (domain, name), asked, ctx)
            }
            (_, Some(_), None) => asked.answer(Err(named_only())),
            (GroupAction::Seek(start), Some(no), Some(_)) => self.seek(no, start, asked, ctx),
            (GroupAction::Purge {}, Some(no), Some(_)) => self.purge(no, asked, ctx),
            (GroupAction::Remove {}, Some(no), Some(name)) => self.remove(no, name, asked, ctx),
        }
    }

    /// Whether the group is being changed, or a binding of it is being made.
    pub(super) fn is_changing(&self, group: Option<&Name>) -> bool {
        let group = group.cloned();
        self.changing.contains(&group) || self.making.contains_key(&group)
    }

    /// How many named groups there are, those that are being made or removed included.
    pub(super) fn count_groups(&self) -> usize {
        let is_new = |name: &&Option<Name>| name.is_some() && self.groups.find(name.as_ref()).is_none();
        let making = self.making.keys().filter(is_new).count();
        self.groups.named() + making + self.changing.iter().filter(is_new).count()
    }

    /// Writes a change; then memory follows: `done` gets what the store answered, and the first round of a group that the
    /// change has made.
    fn alter(
        &mut self,
        asked: Asked,
        write: Write,
        done: impl FnOnce(&mut Self, Written, u32, &mut Context<Self>) -> Result<GroupChanged, Fault> + 'static,
        ctx: &mut Context<Self>,
    ) {
        self.changing.insert(asked.group.clone());
        let (told, answer) = oneshot::channel();
        self.journal.signal(Alter { write, done: told });
        let is_new = self.groups.find(asked.group.as_ref()).is_none();
        let (store, name) = (self.store.clone(), asked.group.clone().filter(|_| is_new));
        let altered = async move { (answer.await, made_group(&store, name.as_ref()).await) };
        ctx.spawn(altered.into_actor(self).map(|(answer, (round, _)), deliveries, ctx| {
            deliveries.changing.remove(&asked.group);
            match answer {
                Ok(Ok(written)) => {
                    let changed = done(deliveries, written, round, ctx);
                    asked.answer(changed);
                }
                Ok(Err(fault)) => asked.answer(Err(fault)),
                // The journal is gone: the core restarts, and cuts the link with that reason.
                Err(_) => {}
            }
        }));
    }

    fn set(&mut self, no: Option<GroupNo>, change: GroupSettings, asked: Asked, ctx: &mut Context<Self>) {
        let own = no.map(|no| self.groups.own(no)).unwrap_or_default();
        let own = policy::changed(&own, change);
        let mut checked = self.config.policy.check(&own, asked.group.is_some());
        if no.is_none() && self.count_groups() >= MOST_GROUPS {
            checked = Err(too_many_groups());
        }
        if let Err(fault) = checked {
            asked.answer(Err(fault));
            return;
        }
        let write = Write::SetGroup { name: asked.name(), settings: own.clone(), at: now() };
        let group = asked.group.clone();
        let done = move |deliveries: &mut Self, _, round, ctx: &mut Context<Self>| {
            let policy = deliveries.config.policy.with(&own);
            let no = match group {
                None => GroupNo::DEFAULT,
                Some(name) => deliveries.find_or_add(name, round),
            };
            let settings = Some(policy.settings());
            deliveries.groups.set(no, own, policy);
            // What a change of the order has put back is read at once.
            let mut effects = Effects::default();
            deliveries.groups.want_pages(&mut effects);
            let now = deliveries.now();
            deliveries.groups.due(now, &mut effects);
            deliveries.apply(effects, ctx);
            Ok(GroupChanged { settings, events: 0 })
        };
        self.alter(asked, write, done, ctx);
    }

    /// The group of this name, which the store has made if it wasn't there.
    pub(super) fn find_or_add(&mut self, name: Name, round: u32) -> GroupNo {
        let head = self.groups.head();
        let found = self.groups.find(Some(&name));
        found.unwrap_or_else(|| {
            let no = self.groups.add(name, round, self.config.policy.clone(), head);
            if self.holds {
                self.groups.hold(no);
            }
            no
        })
    }

    fn unbind(
        &mut self,
        no: GroupNo,
        (domain, name): (Pattern, Pattern),
        asked: Asked,
        ctx: &mut Context<Self>,
    ) {
        let Some(id) = self.groups.binding(no, &domain, &name) else {
            let fault = no_binding(&domain, &name, asked.group.as_ref());
            asked.answer(Err(fault));
            return;
        };
        let fault = unbound(&domain, &name, asked.group.as_ref());
        let done = move |deliveries: &mut Self, _, _, ctx: &mut Context<Self>| {
            let mut effects = Effects::default();
            let now = deliveries.now();
            deliveries.groups.unbind(no, id, now, &mut effects);
            deliveries.end_consumers(&mut effects, &fault);
            deliveries.apply(effects, ctx);
            deliveries.count(ctx);
            Ok(deliveries.changed(no, 0))
        };
        self.alter(asked, Write::Unbind { id }, done, ctx);
    }

    fn seek(&mut self, no: GroupNo, start: StartAt, asked: Asked, ctx: &mut Context<Self>) {
        let store = self.store.clone();
        self.changing.insert(asked.group.clone());
        let found = async move { start_seq(&store, start).await };
        ctx.spawn(found.into_actor(self).map(move |found, deliveries, ctx| {
            deliveries.changing.remove(&asked.group);
            match found {
                Ok(start_seq) => deliveries.seek_to(no, start_seq, asked, ctx),
                Err(fault) => asked.answer(Err(fault)),
            }
        }));
    }

    fn seek_to(&mut self, no: GroupNo, start_seq: u64, asked: Asked, ctx: &mut Context<Self>) {
        let (group, by) = (asked.name(), asked.uid.clone());
        let write = Write::Seek { group, start_seq, hub: self.config.hub.clone(), at: now(), by };
        let done = move |deliveries: &mut Self, written, _, ctx: &mut Context<Self>| {
            let Written::Sought { round } = written else { return Err(mismatch(&written)) };
            deliveries.go_to(no, start_seq, Some(round), ctx);
            Ok(deliveries.changed(no, 0))
        };
        self.alter(asked, write, done, ctx);
    }

    fn purge(&mut self, no: GroupNo, asked: Asked, ctx: &mut Context<Self>) {
        let start_seq = self.groups.head().saturating_add(1);
        let waits = self.groups.get(no).and_then(|group| group.pending()).unwrap_or(0);
        let (group, by) = (asked.name(), asked.uid.clone());
        let write = Write::Purge { group, start_seq, hub: self.config.hub.clone(), at: now(), by };
        let done = move |deliveries: &mut Self, written, _, ctx: &mut Context<Self>| {
            let Written::Purged { retrying } = written else { return Err(mismatch(&written)) };
            deliveries.go_to(no, start_seq, None, ctx);
            Ok(deliveries.changed(no, waits + retrying))
        };
        self.alter(asked, write, done, ctx);
    }

    fn go_to(&mut self, no: GroupNo, start_seq: u64, round: Option<u32>, ctx: &mut Context<Self>) {
        let now_in = self.groups.get(no).map_or(1, |group| group.identity().round);
        let mut effects = Effects::default();
        self.groups.go_to(no, start_seq, round.unwrap_or(now_in), &mut effects);
        self.apply(effects, ctx);
        self.count(ctx);
    }

    /// Tells the links of consumers that end.
    pub(super) fn end_consumers(&mut self, effects: &mut Effects, fault: &Fault) {
        for (outlet, sub) in effects.ended_consumers.drain(..) {
            outlet.tell(Word::Ended(sub, fault.clone()));
        }
    }

    fn changed(&self, no: GroupNo, events: u64) -> GroupChanged {
        GroupChanged { settings: self.groups.get(no).map(|group| group.policy().settings()), events }
    }
}

impl Handler<ChangeGroup> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: ChangeGroup, ctx: &mut Context<Self>) {
        self.change(message, ctx);
    }
}

impl Handler<Redriven> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Redriven, ctx: &mut Context<Self>) {
        let mut effects = Effects::default();
        if let Some(no) = self.groups.find(message.group.as_ref()) {
            let now = self.now();
            self.groups.look_at_retries(no, now, &mut effects);
        }
        self.apply(effects, ctx);
    }
}

pub(super) fn text(group: Option<&Name>) -> String {
    group.map_or_else(|| "the default group".to_owned(), |name| format!("the group {:?}", name.as_str()))
}

pub(super) fn being_changed(group: Option<&Name>) -> Fault {
    Fault::retryable(
        code::HUB_BUSY,
        format!("{} is being changed or removed by somebody else: try again in a moment", text(group)),
        BUSY,
    )
}

fn not_found(group: Option<&Name>) -> Fault {
    Fault::refused(
        code::GROUP_NOT_FOUND,
        format!("{} isn't there: it was never made, or it was removed", text(group)),
    )
}

fn no_binding(domain: &Pattern, name: &Pattern, group: Option<&Name>) -> Fault {
    let (domain, name) = (domain.as_str(), name.as_str());
    Fault::refused(
        code::BINDING_NOT_FOUND,
        format!(
            "{} has no binding for the domains {domain:?} and the names {name:?}: `backlog` lists those that it has",
            text(group)
        ),
    )
}

fn named_only() -> Fault {
    Fault::refused(
        code::INVALID_RECORD,
        "the default group can't be sought, purged or removed, since npm spokes share it: its settings can be set, and \
         its bindings removed",
    )
}

fn unbound(domain: &Pattern, name: &Pattern, group: Option<&Name>) -> Fault {
    let (domain, name) = (domain.as_str(), name.as_str());
    Fault::refused(
        code::BINDING_NOT_FOUND,
        format!(
            "the binding of {} for the domains {domain:?} and the names {name:?} was removed",
            text(group)
        ),
    )
}

pub(super) fn too_many_groups() -> Fault {
    Fault::refused(
        code::TOO_MANY_GROUPS,
        format!(
            "this hub has {MOST_GROUPS} named groups, the most that it keeps: remove one that nobody needs"
        ),
    )
}

fn mismatch(written: &Written) -> Fault {
    Fault::refused(
        code::INTERNAL,
        format!("the store answered {written:?}: report this fault, with the hub's log"),
    )
}
