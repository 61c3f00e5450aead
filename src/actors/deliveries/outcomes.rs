//! Who waits for the outcome of an event, and what became of those that were deleted.

use actix::{ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use tokio::sync::oneshot;

use super::{AwaitOutcome, Deleted, Deliveries, ForgetOutcome, effects::Effects};
use crate::{
    actors::{
        outlet::Owed,
        waiters::{WaitKey, Waiters},
    },
    event::{EventId, Group},
};

/// Events that are looked at with each tick, however many wait: beyond, they have their turns.
const MOST_LOOKED: usize = 1_000;

/// Who waits for the outcome of which event.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    /// Those for the default group, whose outcomes other programs may write too.
    waiters: Waiters<EventId, oneshot::Sender<()>>,
    named: Waiters<(EventId, Group), oneshot::Sender<()>>,
    /// A look is under way.
    looking: bool,
    /// The last event that was looked at.
    last: Option<EventId>,
}

impl Outcomes {
    fn add(&mut self, who: WaitKey, event_id: EventId, group: Option<Group>, told: oneshot::Sender<()>) {
        match group {
            None => self.waiters.add(event_id, who, told),
            Some(group) => self.named.add((event_id, group), who, told),
        }
    }

    fn forget(&mut self, who: WaitKey, event_id: EventId, group: Option<Group>) {
        match group {
            None => self.waiters.remove(&event_id, who),
            Some(group) => self.named.remove(&(event_id, group), who),
        }
    }

    fn tell(&mut self, event_id: &EventId, group: Option<Group>) {
        let waiters = match group {
            None => self.waiters.take(event_id, |_| true),
            Some(_) if self.named.is_empty() => Vec::new(),
            Some(group) => self.named.take(&(event_id.clone(), group), |_| true),
        };
        // Whoever doesn't wait any more has said so, or is about to.
        waiters.into_iter().for_each(|told| _ = told.send(()));
    }

    /// In whatever group.
    fn tell_all(&mut self, event_id: &EventId) {
        self.tell(event_id, None);
        let of_it = |(id, group): &(EventId, Group)| (id == event_id).then(|| group.clone());
        let groups: Vec<_> = self.named.all().filter_map(of_it).collect();
        groups.into_iter().for_each(|group| self.tell(event_id, Some(group)));
    }

    /// Which events to look at now; none while others are looked at.
    fn look(&mut self) -> Vec<EventId> {
        if self.looking {
            return Vec::new();
        }
        let ids: Vec<_> = self.waiters.round(self.last.as_ref()).take(MOST_LOOKED).cloned().collect();
        self.looking = !ids.is_empty();
        self.last = ids.last().cloned();
        ids
    }

    /// These have their outcome, or are gone.
    fn looked(&mut self, over: &[EventId]) {
        self.looking = false;
        over.iter().for_each(|id| self.tell(id, None));
    }
}

impl Deliveries {
    /// The event has its outcome in this group, or is gone: the store says which.
    pub(super) fn tell(&mut self, event_id: &EventId, group: Option<Group>) {
        self.awaited.tell(event_id, group);
    }

    /// Looks for what nobody tells this hub: outcomes that another program writes, and events that it deletes.
    pub(super) fn look_for_outcomes(&mut self, ctx: &mut Context<Self>) {
        let ids = self.awaited.look();
        if ids.is_empty() {
            return;
        }
        let store = self.store.clone();
        let read = async move { store.over(&ids).await };
        ctx.spawn(read.into_actor(self).map(|over, deliveries, _| {
            let over = over.unwrap_or_else(|error| {
                tracing::warn!(%error, "what other programs wrote of outcomes can't be read; trying again");
                Vec::new()
            });
            deliveries.awaited.looked(&over);
        }));
    }
}

impl Handler<AwaitOutcome> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: AwaitOutcome, _: &mut Context<Self>) {
        let AwaitOutcome { who, event_id, group, told, seated } = message;
        self.awaited.add(who, event_id, group, told);
        // Whoever doesn't hear it is gone, and is about to say so.
        let _ = seated.send(());
    }
}

impl Handler<ForgetOutcome> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: ForgetOutcome, _: &mut Context<Self>) {
        self.awaited.forget(message.who, message.event_id, message.group);
    }
}

impl Handler<Deleted> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Deleted, ctx: &mut Context<Self>) {
        let mut effects = Effects::default();
        let now = self.now();
        self.groups.deleted(&message.gone, now, &mut effects);
        self.apply(effects, ctx);
        for gone in &message.gone {
            self.awaited.tell_all(&gone.id);
        }
        message.owed.into_iter().for_each(Owed::give);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::outlet::LinkId;

    fn id(number: usize) -> EventId {
        EventId::parse(format!("e{number:05}")).unwrap()
    }

    #[test]
    fn however_many_wait_one_look_at_a_time_takes_some_and_all_have_their_turns() {
        let mut outcomes = Outcomes::default();
        assert!(outcomes.look().is_empty() && !outcomes.looking, "nobody waits");
        let hears: Vec<_> = (0..2_500)
            .map(|number| {
                let (told, hears) = oneshot::channel();
                let who = WaitKey { link: LinkId(number as u64 % 7), number: number as u64 };
                outcomes.add(who, id(number), None, told);
                hears
            })
            .collect();
        let mut looked = Vec::new();
        for _ in 0..3 {
            let ids = outcomes.look();
            assert_eq!(ids.len(), MOST_LOOKED);
            assert!(outcomes.look().is_empty(), "one is under way");
            looked.extend(ids);
            outcomes.looked(&[id(700)]);
        }
        assert_eq!(looked[..3], [id(0), id(1), id(2)]);
        looked.sort_unstable();
        looked.dedup();
        assert_eq!(looked.len(), 2_500);
        let heard: Vec<_> = hears
            .into_iter()
            .enumerate()
            .filter_map(|(at, mut hears)| hears.try_recv().ok().map(|()| at))
            .collect();
        assert_eq!(heard, [700]);
    }
}
