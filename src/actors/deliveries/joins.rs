//! Consumers that come: they join a binding, which is made durable first if it is new.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{
    Consume, Deliveries,
    changes::{being_changed, too_many_groups},
    consumer::{Consumer, ConsumerKey},
    effects::Effects,
    groups::{GroupNo, MOST_GROUPS},
    leases::granted,
    start::start_seq,
};
use crate::{
    actors::{clock::now_millis as now, journal::Bind, outlet::Word},
    event::{Fault, Group as Name, Start, code},
    store::{self, Store},
    wire::{Answer, GroupSettings},
};

/// The most bindings of all groups: each is a row for ever, and costs time with every event that it matches.
const MOST_BINDINGS: usize = 10_000;

impl Deliveries {
    /// A link wants to consume.
    pub(super) fn consume(&mut self, message: Consume, ctx: &mut Context<Self>) {
        let key = ConsumerKey { link: message.outlet.id(), sub: message.sub };
        if self.groups.has_consumer(key) || self.joining.contains_key(&key) {
            refuse(&message, still_held(message.sub));
            return;
        }
        let group = message.group.as_ref();
        let no = self.groups.find(group);
        let binding = no.and_then(|no| Some((no, self.groups.binding(no, &message.domain, &message.name)?)));
        if self.removals.contains(group) {
            refuse(&message, being_changed(group));
        } else if let Some((no, id)) = binding {
            self.join(&message, no, id, ctx);
        } else if self.changing.contains(&message.group) {
            refuse(&message, being_changed(group));
        } else if no.is_none()
            && !self.making.contains_key(&message.group)
            && self.count_groups() >= MOST_GROUPS
        {
            refuse(&message, too_many_groups());
        } else if self.groups.count_bindings() + self.making.values().sum::<usize>() >= MOST_BINDINGS {
            refuse(&message, too_many_bindings());
        } else {
            self.begin_join(message, ctx);
        }
    }

    fn join(&mut self, message: &Consume, no: GroupNo, id: i64, ctx: &mut Context<Self>) {
        let options = &message.options;
        let key = ConsumerKey { link: message.outlet.id(), sub: message.sub };
        let consumer = Consumer::new(
            message.outlet.clone(),
            message.uid.clone(),
            id,
            options.credit.min(self.config.credit) as usize,
            self.config.credit_bytes,
            options.concurrency as usize,
            granted(options.lease, u64::try_from(self.config.lease.as_millis()).unwrap_or(u64::MAX)),
        );
        message.outlet.answer(message.req, Ok(Answer::Position(self.groups.head())));
        let mut effects = Effects::default();
        let now = self.now();
        self.groups.join(no, key, consumer, now, &mut effects);
        self.apply(effects, ctx);
    }

    /// A consumer whose binding is to be made: first it is found out where that starts.
    fn begin_join(&mut self, message: Consume, ctx: &mut Context<Self>) {
        let key = ConsumerKey { link: message.outlet.id(), sub: message.sub };
        self.joins += 1;
        let join = self.joins;
        self.joining.insert(key, join);
        *self.making.entry(message.group.clone()).or_default() += 1;
        match (&message.group, message.options.from.clone()) {
            // Orphans that their domain keeps still count.
            (None, _) => {
                let start = self.config.policies.start(&message.domain, now());
                self.make_binding(message, join, start, ctx);
            }
            (Some(_), None) => {
                let start = from_seq(self.groups.head().saturating_add(1));
                self.make_binding(message, join, start, ctx);
            }
            (Some(_), Some(from)) => {
                let store = self.store.clone();
                let found = async move { start_seq(&store, from).await };
                ctx.spawn(found.into_actor(self).map(move |found, deliveries, ctx| match found {
                    Ok(seq) => deliveries.make_binding(message, join, from_seq(seq), ctx),
                    Err(fault) => {
                        deliveries.end_join(&message, join);
                        refuse(&message, fault);
                    }
                }));
            }
        }
    }

    /// Makes the binding durable; the consumer joins once it is.
    fn make_binding(&mut self, message: Consume, join: u64, start: Start, ctx: &mut Context<Self>) {
        let (made, answer) = tokio::sync::oneshot::channel();
        self.journal.signal(Bind {
            binding: store::Binding {
                id: 0,
                group: message.group.as_ref().map(ToString::to_string).unwrap_or_default(),
                domain: message.domain.clone(),
                name: message.name.clone(),
                start_seq: start.seq,
                starts: start.domains,
                created: now(),
            },
            made,
        });
        let is_new = self.groups.find(message.group.as_ref()).is_none();
        let (store, name) = (self.store.clone(), message.group.clone().filter(|_| is_new));
        let made = async move { (answer.await, made_group(&store, name.as_ref()).await) };
        ctx.spawn(made.into_actor(self).map(move |(answer, found), deliveries, ctx| {
            let wanted = deliveries.end_join(&message, join);
            match answer {
                Ok(Ok(binding)) => {
                    let (no, id) = deliveries.made_binding(message.group.clone(), found, binding);
                    if wanted {
                        deliveries.join(&message, no, id, ctx);
                    } else {
                        // It was stopped meanwhile, but each request has its answer.
                        let position = deliveries.groups.head();
                        message.outlet.answer(message.req, Ok(Answer::Position(position)));
                    }
                }
                Ok(Err(error)) => refuse(&message, error),
                // The journal is gone: the core restarts, and cuts the link with that reason.
                Err(_) => {}
            }
        }));
    }

    /// The store has the binding, and its group.
    fn made_binding(
        &mut self,
        group: Option<Name>,
        (round, settings): (u32, GroupSettings),
        binding: store::Binding,
    ) -> (GroupNo, i64) {
        let is_new = self.groups.find(group.as_ref()).is_none();
        let no = group.map_or(GroupNo::DEFAULT, |name| self.find_or_add(name, round));
        if is_new {
            let policy = self.config.policy.with(&settings);
            self.groups.set(no, settings, policy);
        }
        if let Some(group) = self.groups.get_mut(no) {
            group.made_binding(binding.start_seq);
        }
        (no, self.groups.bind(no, binding, 0))
    }

    /// A join is over, well or not. Whether the consumer is still wanted: it may have been stopped meanwhile.
    fn end_join(&mut self, message: &Consume, join: u64) -> bool {
        if let Some(making) = self.making.get_mut(&message.group) {
            *making -= 1;
            if *making == 0 {
                self.making.remove(&message.group);
            }
        }
        let key = ConsumerKey { link: message.outlet.id(), sub: message.sub };
        let wanted = self.joining.get(&key) == Some(&join);
        if wanted {
            self.joining.remove(&key);
        }
        wanted
    }
}

/// In all domains alike.
fn from_seq(seq: u64) -> Start {
    Start { seq, domains: Vec::new() }
}

/// The round and the settings of a group that is new here. One that was just made begins above those of one of its name, if
/// that was removed by halves; one that another hub has made may have settings.
pub(super) async fn made_group(store: &Store, name: Option<&Name>) -> (u32, GroupSettings) {
    let new = (1, GroupSettings::default());
    let Some(name) = name else { return new };
    match store.groups().await {
        Ok(groups) => {
            let row = groups.into_iter().find(|row| row.name == name.as_str());
            row.map_or(new, |row| (row.round, row.settings))
        }
        Err(error) => {
            tracing::warn!(%error, group = name.as_str(), "the round of a new group can't be read: it is taken for its first");
            new
        }
    }
}

/// The consumer doesn't come to be: its link forgets the number.
fn refuse(message: &Consume, fault: Fault) {
    message.outlet.tell(Word::Refused(message.sub));
    message.outlet.answer(message.req, Err(fault));
}

fn still_held(sub: u32) -> Fault {
    Fault::refused(
        code::SUBSCRIPTION_EXISTS,
        format!(
            "the consumer {sub} of this link still holds claims: settle or release them first, or choose another \
             number"
        ),
    )
}

fn too_many_bindings() -> Fault {
    Fault::refused(
        code::TOO_MANY_BINDINGS,
        format!(
            "this hub has {MOST_BINDINGS} pairs of patterns that somebody consumed by, the most that it keeps: consume \
             by one of those, or by a wider pattern"
        ),
    )
}
