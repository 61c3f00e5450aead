//! What fits into a transaction, and who is told what of it.

use super::*;
use crate::{
    actors::outlet::Outflow,
    event::{Data, Domain, Name, Pid},
    metrics::Metrics,
};

fn job(outlet: &Outlet, req: Req) -> Job {
    let event = NewEvent {
        id: EventId::parse(format!("e{req}")).unwrap(),
        domain: Domain::parse("d").unwrap(),
        name: Name::parse("n").unwrap(),
        pid: Pid::parse("p").unwrap(),
        rid: None,
        data: Data::parse("{}").unwrap(),
    };
    let uid = Uid::parse("A.SPOKE").unwrap();
    let permit = outlet.window(1, 10, 10).unwrap();
    let reply = ReplyTo::Publisher { outlet: outlet.clone(), req, permit };
    let (write, weight) = store(Storing::Publish(event.into()), uid.clone(), uid);
    Job { write, weight, reply }
}

fn answered(out: &mut Outflow) -> Vec<(Req, bool)> {
    let Frame::Answers(answers) = out.frames.try_recv().unwrap().frame else { panic!("answers") };
    answers.iter().map(|answer| (answer.req, answer.result.is_ok())).collect()
}

#[test]
fn each_link_gets_its_answers_in_one_frame_and_only_what_is_new_is_dispatched() {
    let ((one, mut out_one), (two, mut out_two)) =
        (Outlet::new(LinkId(1), 9_999), Outlet::new(LinkId(2), 9_999));
    let mut batch = Batch::default();
    let mut sequence = Sequence::after(0);
    for job in [job(&one, 1), job(&two, 2), job(&one, 3), job(&one, 4)] {
        batch.push(job, &mut sequence, 5_000_000);
    }
    let (writes, replies) = batch.split();
    assert_eq!((writes.len(), one.is_cut()), (4, false));
    let fresh =
        |fresh, timestamp, seq| Ok(Written::Published(Published { fresh, timestamp, seq, state: None }));
    let conflict = StoreError::EventConflict { id: EventId::parse("e3").unwrap(), field: "data" };
    let results =
        vec![fresh(true, 5_000, 5_000_000), fresh(false, 9, 9), Err(conflict), fresh(true, 7, 5_000_003)];
    let told = tell(replies, results, Metrics::new().hub());
    assert_eq!(answered(&mut out_one), [(1, true), (3, false), (4, true)]);
    assert_eq!(answered(&mut out_two), [(2, true)]);
    let dispatched: Vec<_> = told.committed.iter().map(|event| (event.seq, event.event.timestamp)).collect();
    assert_eq!(dispatched, [(5_000_000, 5_000), (5_000_003, 7)], "with the time that it was stored with");
    assert!(told.recorded.is_empty());
}

#[test]
fn a_batch_is_taken_whole_and_a_deletion_is_alone() {
    let (outlet, _out) = Outlet::new(LinkId(1), 9_999);
    let uid = || Uid::parse("A.SPOKE").unwrap();
    let bounds = Bounds { writes: 4, bytes: 1_000 };
    let several = |count: u64, weight| {
        let event = |n| match job(&outlet, n).write {
            Write::Publish { event, seq, .. } => Placed::new(event, seq),
            other => panic!("{other:?}"),
        };
        let events = (0..count).map(event).collect();
        let write = Write::Batch { events, publisher: uid(), hub: uid() };
        Job { write, weight, reply: ReplyTo::Nobody }
    };
    let mut sequence = Sequence::after(0);
    let mut batch = Batch::default();
    assert!(batch.takes(&several(9, 5_000), bounds), "the first always fits");
    batch.push(several(3, 10), &mut sequence, 7_000_000);
    assert!(!batch.takes(&several(2, 10), bounds) && !batch.takes(&several(1, 1_000), bounds));
    assert!(batch.takes(&several(1, 10), bounds));
    let (writes, _) = batch.split();
    let Write::Batch { events, .. } = &writes[0] else { panic!("{writes:?}") };
    let places: Vec<_> = events.iter().map(|placed| (placed.seq, placed.event.timestamp)).collect();
    assert_eq!(places, [(7_000_000, 7_000), (7_000_001, 7_000), (7_000_002, 7_000)]);

    let delete = || {
        let what = crate::wire::Deletion::Event { id: EventId::parse("e1").unwrap() };
        let delete = crate::store::Delete { what, before: None, most: 1, by: uid(), hub: uid(), at: 0 };
        Job { write: Write::Delete(delete), weight: 1, reply: ReplyTo::Nobody }
    };
    let mut batch = Batch::default();
    batch.push(job(&outlet, 1), &mut sequence, 7_000_000);
    assert!(!batch.takes(&delete(), bounds));
    let mut batch = Batch::default();
    batch.push(delete(), &mut sequence, 7_000_000);
    assert!(!batch.takes(&job(&outlet, 2), bounds));
    let (writes, _) = batch.split();
    let Write::Delete(delete) = &writes[0] else { panic!("{writes:?}") };
    assert_eq!(delete.before, Some(7_001), "what comes later stays");
}

#[test]
fn outcomes_and_attempts_are_told_to_deliveries_written_or_not() {
    let refused = || StoreError::ClaimLost { id: EventId::parse("e1").unwrap() };
    let claim = |token| {
        let event_id = EventId::parse("e1").unwrap();
        Reply { to: ReplyTo::Claim { event_id, token, outcome: Outcome::Success }, events: Events::None }
    };
    let attempt = || Reply { to: ReplyTo::Attempt(GroupNo::DEFAULT), events: Events::None };
    let replies = vec![claim(1), attempt(), claim(2), attempt()];
    let results =
        vec![Ok(Written::Finished { letter: false }), Ok(Written::Done), Err(refused()), Err(refused())];
    let told = tell(replies, results, Metrics::new().hub());
    let settled: Vec<_> =
        told.recorded.settled.iter().map(|settled| (settled.token, settled.result.is_ok())).collect();
    assert_eq!(settled, [(1, true), (2, false)]);
    assert_eq!(told.recorded.attempts.len(), 2);
}
