//! Several groups beside each other: whose an event, a claim and a link's bytes are.

mod adopted;
mod changing;

use std::collections::BTreeMap;

use super::*;
use crate::{
    actors::outlet::ClaimPush,
    event::{Data, Domain, Event, EventId, Name as EventName, Pid, Uid},
};

const NOW: Now = Now { wall: 1_000, steady: 1_000 };

struct World {
    groups: Groups,
    seq: u64,
}

impl World {
    /// Groups whose links hold about so many events together.
    fn new(link_events: usize) -> Self {
        let weight = event(1, "orders").weight();
        let shared = Shared {
            tokens: Tokens::after(0),
            budget: Budget::new(link_events * weight),
            windows: Windows::default(),
            letters: Letters::new(1_000),
            seed: 7,
            head: 0,
            draining: false,
        };
        Self { groups: Groups::new(shared, Policy::default(), 0), seq: 0 }
    }

    fn add(&mut self, name: &str) -> GroupNo {
        let name = Name::parse(name.to_owned()).unwrap();
        self.groups.add(name, 1, Policy::default(), 0)
    }

    fn bind(&mut self, no: GroupNo, id: i64, domain: &str) {
        let binding = store::Binding {
            id,
            group: String::new(),
            domain: Pattern::parse(domain.to_owned()).unwrap(),
            name: Pattern::any(),
            start_seq: 1,
            starts: Vec::new(),
            created: 0,
        };
        self.groups.bind(no, binding, 0);
    }

    /// A consumer that has looked into the database and found nothing.
    fn join(&mut self, no: GroupNo, binding: i64, outlet: &Outlet, sub: u32) -> Vec<ClaimPush> {
        let uid = Uid::parse("WORKER.SPOKE").unwrap();
        let consumer = Consumer::new(outlet.clone(), uid, binding, 64, usize::MAX, 1, 30_000);
        let mut effects = Effects::default();
        self.groups.join(no, ConsumerKey { link: outlet.id(), sub }, consumer, NOW, &mut effects);
        let pages = std::mem::take(&mut effects.pages);
        for (id, wanted) in pages {
            let page = Page { ticket: wanted.ticket, rows: Vec::new(), scanned: self.seq, more: false };
            self.groups.page(id, page, NOW, &mut effects);
        }
        handed(effects)
    }

    fn publish(&mut self, domain: &str) -> Vec<ClaimPush> {
        self.seq += 1;
        let mut effects = Effects::default();
        let events = [event(self.seq, domain)];
        self.groups.dispatch(&events, BTreeMap::new(), NOW, &mut effects);
        handed(effects)
    }

    fn ack(&mut self, outlet: &Outlet, token: Token) -> Effects {
        let mut effects = Effects::default();
        self.groups.settle(outlet, 1, token, Verdict::Ack, NOW, &mut effects);
        effects
    }
}

fn handed(effects: Effects) -> Vec<ClaimPush> {
    effects.claims.into_values().flat_map(|(_, claims)| claims).collect()
}

fn event(seq: u64, domain: &str) -> Arc<Dispatched> {
    let event = Event {
        id: EventId::parse(format!("e{seq:09}")).unwrap(),
        timestamp: 0,
        domain: Domain::parse(domain.to_owned()).unwrap(),
        name: EventName::parse("n").unwrap(),
        pid: Pid::parse("p").unwrap(),
        rid: None,
        data: Data::parse("{}").unwrap(),
    };
    Arc::new(Dispatched::new(event, seq))
}

fn link(number: u64) -> Outlet {
    Outlet::new(LinkId(number), usize::MAX).0
}

#[test]
fn an_event_goes_once_to_each_group_that_wants_it_and_each_claim_is_its_groups() {
    let mut world = World::new(100);
    let (one, two) = (world.add("one"), world.add("two"));
    world.bind(GroupNo::DEFAULT, 1, "*");
    world.bind(one, 2, "orders");
    world.bind(one, 3, "*");
    world.bind(two, 4, "mail");
    let outlet = link(1);
    for (no, binding) in [(GroupNo::DEFAULT, 1), (one, 2), (one, 3), (two, 4)] {
        assert!(world.join(no, binding, &outlet, binding as u32).is_empty());
    }
    let claims = world.publish("orders");
    assert_eq!(claims.len(), 2, "the default group's, and one for two bindings of a group");
    let tokens: Vec<Token> = claims.iter().map(|claim| claim.token).collect();
    assert_ne!(tokens[0], tokens[1]);
    let mut ended: Vec<_> = tokens
        .iter()
        .flat_map(|token| world.ack(&outlet, *token).finishes)
        .map(|finish| finish.group.map(|name| name.to_string()))
        .collect();
    ended.sort_unstable();
    assert_eq!(ended, [None, Some("one".to_owned())]);
    assert_eq!(world.groups.in_flight(), 2, "they are on their way to the database");
    for token in tokens {
        assert!(world.groups.recorded(token, false, NOW, &mut Effects::default()).is_some());
    }
    assert_eq!((world.groups.in_flight(), world.groups.held_by(outlet.id())), (0, 0));
}

#[test]
fn the_consumers_of_a_link_share_its_bytes_whatever_their_groups() {
    let mut world = World::new(1);
    let (one, two) = (world.add("one"), world.add("two"));
    world.bind(one, 1, "orders");
    world.bind(two, 2, "mail");
    let outlet = link(1);
    world.join(one, 1, &outlet, 1);
    world.join(two, 2, &outlet, 2);
    let first = world.publish("orders").pop().unwrap();
    assert_eq!(world.publish("mail").len(), 1, "each may hold one all the same");
    assert!(world.publish("mail").is_empty() && world.publish("orders").is_empty());
    let freed = handed(world.ack(&outlet, first.token));
    assert_eq!(freed.len(), 1, "the one whose turn it is: the bytes of the other are still held");
}

#[test]
fn a_group_that_is_taken_out_leaves_nothing() {
    let mut world = World::new(100);
    let one = world.add("one");
    world.bind(one, 1, "orders");
    let outlet = link(1);
    world.join(one, 1, &outlet, 1);
    let held = world.publish("orders").pop().unwrap();
    let settling = world.publish("orders").pop().unwrap();
    assert_eq!(world.ack(&outlet, settling.token).finishes.len(), 1);

    let mut effects = Effects::default();
    world.groups.take_out(one, NOW, &mut effects);
    assert_eq!(effects.ended_consumers.len(), 1);
    assert!(world.publish("orders").is_empty());
    let late = world.ack(&outlet, held.token);
    assert!(matches!(late.answers[..], [(_, 1, false)]), "the claim is lost");
    assert!(world.groups.get(one).is_some(), "an outcome is on its way");
    assert!(world.groups.recorded(settling.token, false, NOW, &mut Effects::default()).is_some());
    world.groups.due(NOW, &mut Effects::default());
    assert!(world.groups.get(one).is_none());
    assert_eq!((world.groups.named(), world.groups.count_bindings()), (0, 0));
}

#[test]
fn a_group_that_is_held_hands_out_nothing_until_it_is_resumed() {
    let mut world = World::new(100);
    let one = world.add("one");
    world.bind(one, 1, "orders");
    let outlet = link(1);
    world.join(one, 1, &outlet, 2);
    let held = world.publish("orders").pop().unwrap();
    world.groups.hold(one);
    assert!(world.publish("orders").is_empty());
    assert_eq!(world.ack(&outlet, held.token).finishes.len(), 1);
    assert!(world.publish("orders").is_empty());
    let mut effects = Effects::default();
    world.groups.resume(one, NOW, &mut effects);
    assert_eq!(handed(effects).len(), 2);

    world.groups.hold(one);
    world.groups.drain();
    world.groups.resume(one, NOW, &mut Effects::default());
    assert!(world.publish("orders").is_empty(), "a hub that stops hands out nothing");
}

#[test]
fn a_group_that_goes_elsewhere_reads_from_there_and_a_claim_stays_its_holders() {
    let mut world = World::new(100);
    let one = world.add("one");
    world.bind(one, 1, "orders");
    let outlet = link(1);
    world.join(one, 1, &outlet, 1);
    let held = world.publish("orders").pop().unwrap();
    let mut effects = Effects::default();
    world.groups.go_to(one, 1, 2, &mut effects);
    let (id, wanted) = effects.pages.pop().unwrap();
    assert_eq!((id, wanted.after), (1, 0));
    let rows =
        vec![super::super::binding::Waiting { event: event(1, "orders"), attempts: 0, round: 2, due: None }];
    let page = Page { ticket: wanted.ticket, rows, scanned: 1, more: false };
    let mut effects = Effects::default();
    world.groups.page(1, page, NOW, &mut effects);
    assert!(effects.claims.is_empty(), "somebody has it");
    assert_eq!(world.ack(&outlet, held.token).finishes.len(), 1);
}

#[test]
fn the_numbers_of_claims_that_ended_are_swept_out() {
    let mut world = World::new(usize::MAX >> 20);
    let one = world.add("one");
    world.bind(one, 1, "orders");
    let outlet = link(1);
    world.join(one, 1, &outlet, 1);
    for _ in 0..2 * FEW_TOKENS {
        let claim = world.publish("orders").pop().unwrap();
        world.ack(&outlet, claim.token);
        world.groups.recorded(claim.token, false, NOW, &mut Effects::default());
    }
    assert_eq!(world.groups.tokens.len(), 2 * FEW_TOKENS);
    world.groups.due(NOW, &mut Effects::default());
    assert!(world.groups.tokens.is_empty());
}
