//! Consumers that come: they join a binding, which is made durable first if it is new.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{
    Consume, Deliveries,
    consumer::{Consumer, ConsumerKey},
    effects::Effects,
    groups::GroupNo,
};
use crate::{
    actors::{clock::now_millis as now, journal::Bind, outlet::Word},
    event::{Fault, code},
    store,
    wire::Answer,
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
        let no = GroupNo::DEFAULT;
        match self.groups.binding(no, &message.domain, &message.name) {
            Some(id) => self.join(&message, no, id, ctx),
            None if self.groups.count_bindings() >= MOST_BINDINGS => refuse(&message, too_many_bindings()),
            None => self.make_binding(message, no, ctx),
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
        );
        message.outlet.answer(message.req, Ok(Answer::Position(self.groups.default_group().head())));
        let mut effects = Effects::default();
        self.groups.join(no, key, consumer, now(), &mut effects);
        self.apply(effects, ctx);
    }

    /// Makes the binding durable; the consumer joins once it is.
    fn make_binding(&mut self, message: Consume, no: GroupNo, ctx: &mut Context<Self>) {
        let key = ConsumerKey { link: message.outlet.id(), sub: message.sub };
        self.joins += 1;
        let join = self.joins;
        self.joining.insert(key, join);
        if let Some(group) = self.groups.get_mut(no) {
            group.make_binding();
        }
        let now = now();
        // Orphans that their domain keeps still count.
        let start = self.config.policies.start(&message.domain, now);
        let (made, answer) = tokio::sync::oneshot::channel();
        self.journal.signal(Bind {
            binding: store::Binding {
                id: 0,
                group: String::new(),
                domain: message.domain.clone(),
                name: message.name.clone(),
                start_seq: start.seq,
                starts: start.domains,
                created: now,
            },
            made,
        });
        ctx.spawn(answer.into_actor(self).map(move |answer, deliveries, ctx| {
            let start = answer.as_ref().ok().and_then(|made| Some(made.as_ref().ok()?.start_seq));
            if let Some(group) = deliveries.groups.get_mut(no) {
                group.made_binding(start);
            }
            let wanted = deliveries.joining.get(&key) == Some(&join);
            if wanted {
                deliveries.joining.remove(&key);
            }
            match answer {
                Ok(Ok(binding)) => {
                    let id = deliveries.groups.bind(no, binding, 0);
                    if wanted {
                        deliveries.join(&message, no, id, ctx);
                    } else {
                        // It was stopped meanwhile, but each request has its answer.
                        let position = deliveries.groups.default_group().head();
                        message.outlet.answer(message.req, Ok(Answer::Position(position)));
                    }
                }
                Ok(Err(error)) => refuse(&message, error),
                // The journal is gone: the core restarts, and cuts the link with that reason.
                Err(_) => {}
            }
        }));
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
