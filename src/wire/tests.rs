//! What `encode` wrote, `parse` reads as the same value; no bytes make `parse` panic.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;
use crate::event::{
    Append, Data, Domain, Event, EventId, Expect, Fault, Group, Name, NewEvent, Pattern, Pid, Position,
    Retry, Uid,
};

fn records(bytes: &[u8]) -> Vec<Record> {
    let mut reader = Reader::new(Limits::default());
    let mut records = Vec::new();
    for piece in bytes.chunks(16 * 1024) {
        reader.spare().put_slice(piece);
        while let Some(record) = reader.next().unwrap() {
            records.push(record);
        }
    }
    records
}

fn record_of(text: &str) -> Record {
    records(format!("{}\u{1E}", text.replace(',', "\u{1F}")).as_bytes()).remove(0)
}

/// Texts that `T` takes: printable, no space at an end, no segment that is a wildcard.
fn text<T: std::str::FromStr + std::fmt::Debug>() -> impl Strategy<Value = T>
where
    T::Err: std::fmt::Debug,
{
    "[!-)+-=?-~]([ -)+-=?-~]{0,62}[!-)+-=?-~])?".prop_map(|text: String| text.parse().unwrap())
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just("*".to_owned()),
        Just(">".to_owned()),
        "(([a-z]{1,5}|\\*)\\.){0,4}([a-z]{1,5}|\\*|>)",
        "[!-=?-~]{1,64}",
    ]
    .prop_map(|text| Pattern::parse(text).unwrap())
}

fn data() -> impl Strategy<Value = Data> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 20, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Into::into),
            vec((any::<String>(), inner), 0..5).prop_map(|members| members.into_iter().collect()),
        ]
    })
    .prop_map(|value: serde_json::Value| Data::from_value(&value).unwrap())
}

fn new_event() -> impl Strategy<Value = NewEvent> {
    (text(), text(), text(), text(), option::of(text()), data())
        .prop_map(|(id, domain, name, pid, rid, data)| NewEvent { id, domain, name, pid, rid, data })
}

fn event() -> impl Strategy<Value = Event> {
    (new_event(), any::<i64>()).prop_map(|(event, timestamp)| {
        let NewEvent { id, domain, name, pid, rid, data } = event;
        Event { id, timestamp, domain, name, pid, rid, data }
    })
}

fn fault() -> impl Strategy<Value = Fault> {
    let retry =
        prop_oneof![Just(Retry::Never), any::<u64>().prop_map(|ms| Retry::After(Duration::from_millis(ms))),];
    ("E_[A-Z_]{1,40}", "[^\u{0}-\u{1F}]{0,200}", retry).prop_map(|(code, message, retry)| Fault {
        code,
        message,
        retry,
    })
}

fn address() -> impl Strategy<Value = HubAddress> {
    (option::of("[A-Z.-]{1,64}"), "[a-z0-9.:]{1,40}", any::<u16>()).prop_map(|(id, host, port)| HubAddress {
        id,
        host,
        port,
    })
}

fn request() -> impl Strategy<Value = Request> {
    let req = || 1..=u64::MAX;
    let sub = any::<u32>;
    let token = any::<u64>;
    let short = || "\\PC{0,40}|[\u{0}-\u{20}]{0,9}";
    prop_oneof![
        short().prop_map(|client| Request::Hello(Hello { client })),
        any::<u64>().prop_map(Request::Ping),
        any::<u64>().prop_map(Request::Pong),
        (req(), new_event(), expect()).prop_map(|(req, event, expect)| Request::Publish {
            req,
            event,
            expect
        }),
        (req(), sub(), pattern(), pattern(), option::of(since())).prop_map(
            |(req, sub, domain, name, from)| {
                Request::Subscribe { req, sub, domain, name, options: SubscribeOptions { from } }
            }
        ),
        (req(), sub()).prop_map(|(req, sub)| Request::Unsubscribe { req, sub }),
        (
            req(),
            sub(),
            option::of(text::<Group>()),
            pattern(),
            pattern(),
            (1..=u32::MAX, any::<u32>()),
            option::of(start_at())
        )
            .prop_map(|(req, sub, group, domain, name, (credit, concurrency), from)| {
                let lease = from.as_ref().map(|_| 1_000 + u64::from(credit) % 3_599_001);
                let options = ConsumeOptions { credit, concurrency, lease, from };
                Request::Consume { req, sub, group, domain, name, options }
            }),
        (req(), sub()).prop_map(|(req, sub)| Request::Stop { req, sub }),
        (req(), token()).prop_map(|(req, token)| Request::Ack { req, token }),
        (req(), token(), short(), (option::of(0..=LONGEST_DELAY_MS), any::<bool>())).prop_map(
            |(req, token, reason, (delay, is_final))| {
                Request::Nack { req, token, options: NackOptions { reason, delay, is_final } }
            }
        ),
        (req(), token(), option::of(LEASE_MS)).prop_map(|(req, token, lease)| {
            Request::Extend { req, token, options: ExtendOptions { lease } }
        }),
        (req(), token()).prop_map(|(req, token)| Request::Release { req, token }),
        (req(), text()).prop_map(|(req, id)| Request::Read { req, id }),
        (req(), log_query(), "[ -~]{0,80}", 1..=u32::MAX)
            .prop_map(|(req, query, page, limit)| Request::Log { req, query, page, limit }),
        (req(), text()).prop_map(|(req, id)| Request::Show { req, id }),
        (req(), "[ -~]{0,80}").prop_map(|(req, key)| Request::Renew { req, key }),
        later_request(),
        group_request(),
    ]
}

fn start_at() -> impl Strategy<Value = StartAt> {
    prop_oneof![Just(StartAt::All), any::<i64>().prop_map(StartAt::Time), text().prop_map(StartAt::Id)]
}

fn settings() -> impl Strategy<Value = GroupSettings> {
    let letter = option::of("[a-z.]{0,9}");
    (any::<(Option<u32>, Option<u64>, Option<u64>)>(), any::<(Option<bool>, Option<bool>)>(), letter)
        .prop_map(|((max_attempts, delay, max_delay), (key_order, dead_blocks), dead_letter)| GroupSettings {
            max_attempts,
            delay,
            max_delay,
            key_order,
            dead_blocks,
            dead_letter,
        })
}

/// Requests about groups.
fn group_request() -> impl Strategy<Value = Request> {
    let req = || 1..=u64::MAX;
    let group = || option::of(text::<Group>());
    let action = prop_oneof![
        settings().prop_map(GroupAction::Set),
        start_at().prop_map(GroupAction::Seek),
        Just(GroupAction::Purge {}),
        Just(GroupAction::Remove {}),
        (pattern(), pattern()).prop_map(|(domain, name)| GroupAction::Unbind { domain, name }),
    ];
    let narrow = || (option::of(pattern()), option::of(pattern()));
    prop_oneof![
        (req(), group(), action).prop_map(|(req, group, action)| Request::Group { req, group, action }),
        (req(), option::of("[a-z]{0,9}"))
            .prop_map(|(req, group)| Request::Backlog { req, query: BacklogQuery { group } }),
        (req(), group(), narrow(), "[ -~]{0,80}", 1..=u32::MAX).prop_map(
            |(req, group, (domain, name), page, limit)| {
                Request::Dead { req, query: DeadQuery { group, domain, name }, page, limit }
            }
        ),
        (req(), group(), text(), pattern(), narrow()).prop_map(|(req, group, id, all, (domain, name))| {
            let what = match (domain, name) {
                (None, None) => Redrive { group, id: Some(id), ..Redrive::default() },
                (domain @ Some(_), None) => Redrive { group, domain, ..Redrive::default() },
                (domain, _) => Redrive { group, domain, name: Some(all), ..Redrive::default() },
            };
            Request::Redrive { req, what }
        }),
    ]
}

fn since() -> impl Strategy<Value = Since> {
    prop_oneof![
        Just(Since::All),
        any::<i64>().prop_map(Since::Time),
        text().prop_map(Since::Id),
        vec((text::<Uid>(), any::<u64>()), 0..3).prop_map(|read| {
            let mut position = Position::default();
            read.iter().for_each(|(hub, seq)| position.reach(hub, *seq));
            Since::Position(position)
        }),
    ]
}

/// Requests by events, schedules, waits and relations.
fn later_request() -> impl Strategy<Value = Request> {
    let req = || 1..=u64::MAX;
    prop_oneof![
        (req(), vec((new_event(), expect()), 1..5)).prop_map(|(req, events)| {
            let append = |(event, expect)| Append { event, expect };
            Request::Batch { req, events: events.into_iter().map(append).collect() }
        }),
        (req(), new_event(), expect()).prop_map(|(req, event, expect)| Request::Persist {
            req,
            event,
            expect
        }),
        (req(), any::<i64>(), new_event()).prop_map(|(req, due, event)| Request::Schedule {
            req,
            due,
            event
        }),
        (req(), text()).prop_map(|(req, id)| Request::Cancel { req, id }),
        (req(), text(), "[ -~]{0,80}", 1..=u32::MAX).prop_map(|(req, domain, page, limit)| Request::Pids {
            req,
            domain,
            page,
            limit
        }),
        (req(), text(), any::<bool>(), recurring(), data()).prop_map(|(req, name, replace, what, data)| {
            Request::Recur { req, recur: Box::new(Recur { name, replace, what, data }) }
        }),
        (req(), text(), 0..3_usize).prop_map(|(req, name, at)| {
            let change = [RecurChange::Pause, RecurChange::Resume, RecurChange::Remove][at];
            Request::RecurChange { req, name, change }
        }),
        (req(), text(), text()).prop_map(|(req, name, id)| Request::RecurRun { req, name, id }),
        (req(), option::of(pattern()), option::of(any::<i64>()), "[ -~]{0,80}", 1..=u32::MAX).prop_map(
            |(req, domain, from, page, limit)| {
                let query = SchedulesQuery { name: domain.clone(), domain, from, to: from };
                Request::Schedules { req, query, page, limit }
            }
        ),
        (req(), "[ -~]{0,80}", 1..=u32::MAX).prop_map(|(req, page, limit)| Request::RecurList {
            req,
            page,
            limit
        }),
        (req(), text(), 1..=u32::MAX).prop_map(|(req, name, runs)| Request::RecurShow { req, name, runs }),
        (req(), wait()).prop_map(|(req, wait)| Request::Wait { req, wait }),
        (req(), text(), option::of(text()), 0..=86_400_000_u64).prop_map(|(req, id, group, timeout_ms)| {
            Request::Outcome { req, id, options: OutcomeOptions { group, timeout_ms } }
        }),
        (req(), text(), association()).prop_map(|(req, id, with)| Request::Associate { req, id, with }),
        (req(), text(), association()).prop_map(|(req, id, with)| Request::Dissociate { req, id, with }),
        (req(), deletion()).prop_map(|(req, what)| Request::Delete { req, what }),
        (req(), vec(text(), 0..4)).prop_map(|(req, ids)| Request::Nudge { req, ids }),
    ]
}

fn expect() -> impl Strategy<Value = Option<Expect>> {
    // An event of this id can't be expected.
    let id = text::<EventId>().prop_filter("an id", |id| &**id != "none");
    option::of(prop_oneof![Just(Expect::None), id.prop_map(Expect::After)])
}

fn published() -> impl Strategy<Value = Published> {
    let state = select(&["persisted", "scheduled", "pending", "claimed", "success", "dead", "expired"][..]);
    (any::<(bool, i64, u64)>(), option::of(state.prop_map(|word| PublishState::of(word).unwrap())))
        .prop_map(|((fresh, timestamp, seq), state)| Published { fresh, timestamp, seq, state })
}

fn log_query() -> impl Strategy<Value = LogQuery> {
    let of = prop_oneof![
        (text(), text()).prop_map(|(domain, pid)| LogOf::Process { domain, pid }),
        (text(), text()).prop_map(|(domain, cpid)| LogOf::ChildProcess { domain, cpid }),
        (text(), option::of(text())).prop_map(|(eid, domain)| LogOf::Entity { eid, domain }),
        text().prop_map(|domain| LogOf::Domain { domain }),
    ];
    (of, vec(text(), 0..4), any::<(Option<i64>, Option<i64>)>())
        .prop_map(|(of, names, (from, to))| LogQuery { of, names, from, to })
}

fn wait() -> impl Strategy<Value = Wait> {
    let after =
        prop_oneof![Just(After::Start), text().prop_map(After::Event), any::<i64>().prop_map(After::Time),];
    let wanted =
        prop_oneof![
            (text(), text(), vec(text(), 0..4), after)
                .prop_map(|(domain, pid, names, after)| WaitFor::Process { domain, pid, names, after }),
            text().prop_map(|rid| WaitFor::Answer { rid }),
        ];
    (wanted, 0..=86_400_000_u64).prop_map(|(wanted, ms)| Wait { wanted, timeout: Duration::from_millis(ms) })
}

fn association() -> impl Strategy<Value = Association> {
    prop_oneof![
        (text(), text()).prop_map(|(domain, cpid)| Association::ChildProcess { domain, cpid }),
        text().prop_map(|eid| Association::Entity { eid }),
    ]
}

fn deletion() -> impl Strategy<Value = Deletion> {
    prop_oneof![
        text().prop_map(|id| Deletion::Event { id }),
        (text(), text()).prop_map(|(domain, pid)| Deletion::Log { domain, pid }),
    ]
}

fn ended() -> impl Strategy<Value = Ended> {
    ("[a-z]{1,9}", option::of(text()), any::<i64>(), any::<String>())
        .prop_map(|(state, consumer, ended, error)| Ended { state, consumer, ended, error })
}

fn trace() -> impl Strategy<Value = Trace> {
    let attempt = (any::<(u32, i64, i64)>(), option::of(text()), text(), any::<(String, String)>()).prop_map(
        |((number, started, ended), group, consumer, (reason, error))| Attempt {
            number,
            round: number.max(1),
            group,
            consumer,
            started,
            ended,
            reason,
            error,
        },
    );
    let who = || option::of(text::<Uid>());
    (
        who(),
        who(),
        who(),
        any::<(Option<i64>, Option<u64>, Option<i64>, Option<i64>)>(),
        "[a-z]{1,9}",
        vec(attempt, 0..4),
    )
        .prop_map(|(publisher, hub, consumer, (published, seq, scheduled, ended), state, attempts)| {
            Trace {
                scheduled,
                recurring: None,
                publisher,
                published,
                hub,
                seq,
                state,
                consumer,
                ended,
                attempts,
                groups: Vec::new(),
                redriven: Vec::new(),
                associations: Vec::new(),
            }
        })
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Done),
        published().prop_map(Answer::Published),
        (any::<u64>(), vec((text(), "[a-z]{1,9}", any::<String>()), 0..4)).prop_map(|(taken, events)| {
            let nudged = |(id, state, reason)| Nudged { id, state, reason };
            Answer::Nudged { taken, events: events.into_iter().map(nudged).collect() }
        }),
        any::<u64>().prop_map(Answer::Position),
        "[ -~]{0,80}".prop_map(Answer::Page),
        trace().prop_map(|trace| Answer::Trace(Box::new(trace))),
        any::<(String, String, i64)>().prop_map(|(cert, root, not_after)| {
            Answer::Renewed(Box::new(Renewed { cert, root, not_after }))
        }),
        vec(published(), 0..4).prop_map(Answer::Batch),
        any::<(i64, bool)>().prop_map(|(due, fresh)| Answer::Scheduled { due, fresh }),
        (vec(text(), 0..4), "[ -~]{0,80}").prop_map(|(pids, next)| Answer::Pids { pids, next }),
        (vec((text(), any::<i64>(), option::of(text())), 0..3), "[ -~]{0,80}").prop_map(|(events, next)| {
            let event = |(id, due, rid)| ScheduledEvent {
                id,
                due,
                domain: Domain::from_stored("orders"),
                name: Name::from_stored("reminded"),
                pid: Pid::from_stored("order-1"),
                rid,
            };
            Answer::Schedules { events: events.into_iter().map(event).collect(), next }
        }),
        (option::of(any::<i64>()), 0..3_usize).prop_map(|(next, at)| {
            Answer::Recurring { next, made: [Made::New, Made::Duplicate, Made::Replaced][at] }
        }),
        (vec(recurring_state(), 0..3), "[ -~]{0,80}")
            .prop_map(|(states, next)| Answer::Recurrings { states, next }),
        (recurring_state(), vec((any::<i64>(), any::<(String, String)>(), text()), 0..3), data()).prop_map(
            |(state, runs, data)| {
                let run = |(due, (utc, local), id)| Run { due, utc, local, id };
                let shown = RecurringShown { state, runs: runs.into_iter().map(run).collect() };
                Answer::RecurringShown { shown: Box::new(shown), data }
            }
        ),
        option::of(ended()).prop_map(|ended| Answer::Outcome(ended.map(Box::new))),
        any::<u64>().prop_map(Answer::Deleted),
        any::<u64>().prop_map(Answer::Redriven),
        (option::of(settings()), any::<u64>())
            .prop_map(|(settings, events)| Answer::Group(Box::new(GroupChanged { settings, events }))),
    ]
}

fn recurring() -> impl Strategy<Value = Recurring> {
    let bound = || option::of(any::<i64>());
    ((text(), text()), option::of(text()), any::<(String, String, u64, bool)>(), 0..3_usize, bound(), bound())
        .prop_map(|((domain, event), pid, (rule, zone, window_ms, paused), missed, start, end)| {
            let missed = [Missed::Once, Missed::All, Missed::Skip][missed];
            Recurring { domain, event, pid, rule, zone, missed, window_ms, start, end, paused }
        })
}

fn recurring_state() -> impl Strategy<Value = RecurringState> {
    let times = || any::<(Option<i64>, Option<i64>, u64, u64, i64)>();
    (text(), recurring(), times(), text()).prop_map(
        |(name, what, (next, last, ran, left_out, made), publisher)| RecurringState {
            name,
            what,
            next,
            last,
            ran,
            left_out,
            publisher,
            made,
        },
    )
}

fn welcome() -> impl Strategy<Value = Welcome> {
    ("[A-Z.-]{1,64}", any::<[u64; 6]>(), any::<[u32; 4]>(), vec(address(), 0..4), vec("[a-z]{1,9}", 0..3))
        .prop_map(|(hub, [epoch, a, b, c, d, e], [f, g, h, i], hubs, features)| Welcome {
            hub,
            epoch,
            limits: LinkLimits {
                window_requests: f,
                window_bytes: a,
                data_bytes: b,
                record_bytes: c,
                units: g,
                credit: h,
                credit_bytes: d,
                subscriptions: i,
                lease_ms: e,
                ping_ms: e,
                silence_ms: e,
            },
            hubs,
            features,
        })
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        welcome().prop_map(Reply::Welcome),
        any::<u64>().prop_map(Reply::Ping),
        any::<u64>().prop_map(Reply::Pong),
        (1..=u64::MAX, answer()).prop_map(|(req, answer)| Reply::Ok { req, answer }),
        (1..=u64::MAX, event()).prop_map(|(req, event)| Reply::Item { req, event }),
        (any::<u64>(), fault()).prop_map(|(req, fault)| Reply::Err { req, fault }),
        (vec(any::<u32>(), 1..5), any::<u64>(), event()).prop_map(|(subs, seq, event)| Reply::Event {
            subs,
            seq,
            event
        }),
        (any::<(u32, u64, u32, u64)>(), event()).prop_map(|((sub, token, attempt, seq), event)| {
            Reply::Claim { sub, token, attempt, seq, event }
        }),
        (any::<u32>(), any::<(u64, u64, u64)>()).prop_map(|(sub, (from, to, events))| Reply::Gap {
            sub,
            removed: RemovedEvents { from, to, events }
        }),
        address().prop_map(Reply::Online),
        Just(Reply::Drain),
        fault().prop_map(Reply::Bye),
    ]
}

proptest! {
    #[test]
    fn any_request_round_trips(requests in vec(request(), 1..5)) {
        let mut out = BytesMut::new();
        for request in &requests {
            request.encode(&mut out).unwrap();
        }
        let limits = ParseLimits::default();
        let found: Vec<_> =
            records(&out).iter().map(|record| Request::parse(record, &limits).unwrap()).collect();
        prop_assert_eq!(found, requests);
    }

    #[test]
    fn any_reply_round_trips(replies in vec(reply(), 1..5)) {
        let mut out = BytesMut::new();
        for reply in &replies {
            reply.encode(&mut out).unwrap();
        }
        let found: Vec<_> = records(&out).iter().map(|record| Reply::parse(record).unwrap()).collect();
        prop_assert_eq!(found, replies);
    }

    #[test]
    fn an_event_is_the_same_bytes_for_each_receiver(
        event in event(), subs in vec(any::<u32>(), 1..5), (sub, token, attempt, seq) in any::<(u32, u64, u32, u64)>()
    ) {
        let tail = event_tail(&event);
        let (mut head, mut whole) = (BytesMut::new(), BytesMut::new());
        event_head(&mut head, &subs, seq);
        claim_head(&mut head, sub, token, attempt, seq);
        Reply::Event { subs, seq, event: event.clone() }.encode(&mut whole).unwrap();
        prop_assert!(whole.ends_with(&tail));
        let length = whole.len() - tail.len();
        prop_assert_eq!(&whole[..length], &head[..length]);
        whole.clear();
        Reply::Claim { sub, token, attempt, seq, event }.encode(&mut whole).unwrap();
        prop_assert_eq!(&whole[..], [&head[length..], &tail[..]].concat());
    }

    #[test]
    fn any_text_is_read_or_refused(units in vec("\\PC{0,20}|[0-9]{1,4}|[a-z]{2,9}", 0..14)) {
        let verbs = ["hello", "publish", "consume", "log", "nack", "event", "gap", "claim", "ok", "item", "err", "online"];
        for verb in verbs {
            let text = format!("{verb},{}", units.join(","));
            let record = record_of(&text);
            let _ = (Request::parse(&record, &ParseLimits::default()), Reply::parse(&record), npm::parse(&record));
        }
    }

    #[test]
    fn what_an_event_holds_never_breaks_its_record(held in "[\u{0}-\u{40}]{0,30}", data in "[\u{0}-\u{40}]{0,30}") {
        let event = Event {
            id: EventId::from_stored("id"),
            timestamp: i64::MIN,
            domain: Domain::from_stored(held.clone()),
            name: Name::from_stored("n"),
            pid: Pid::from_stored("p"),
            rid: None,
            data: Data::from_stored(data.clone()),
        };
        let found = records(&event_tail(&event));
        prop_assert_eq!(found.len(), 1);
        let units: Vec<_> = found[0].units().collect();
        prop_assert_eq!(units.len(), 7);
        let spaced = |text: &str| text.replace(|c| c < ' ', " ");
        prop_assert_eq!(units[1], i64::MIN.to_string());
        prop_assert_eq!((units[2], units[6]), (&*spaced(&held), &*spaced(&data)));
        prop_assert_eq!(npm::publish(&event).iter().filter(|byte| **byte < 0x20).count(), 5);
    }
}

#[test]
fn free_text_of_a_fault_is_cut_and_has_no_control_characters() {
    let fault = Fault::refused("E_X", format!("a\nb\u{1E}{}", "é".repeat(8000)));
    let mut out = BytesMut::new();
    Reply::Err { req: 0, fault }.encode(&mut out).unwrap();
    let Reply::Err { req: 0, fault } = Reply::parse(&records(&out)[0]).unwrap() else { panic!("an err") };
    assert!(fault.message.starts_with("a b é") && fault.message.len() <= MAX_FREE_TEXT);
}

#[test]
fn replies_that_are_none_are_faults() {
    let cases = [
        ("", "E_EVENTFLOW_INVALID_RECORD"),
        ("dance,1", "E_EVENTFLOW_UNKNOWN_VERB"),
        ("publish,1", "E_EVENTFLOW_UNKNOWN_VERB"),
        ("welcome,2,{}", "E_EVENTFLOW_UNKNOWN_VERSION"),
        ("welcome,1,{}", "E_EVENTFLOW_INVALID_RECORD"),
        ("ok,0", "E_EVENTFLOW_INVALID_RECORD"),
        ("ok,1,committed,x,1", "E_EVENTFLOW_INVALID_RECORD"),
        ("ok,1,committed,1", "E_EVENTFLOW_INVALID_RECORD"),
        ("ok,1,later", "E_EVENTFLOW_INVALID_RECORD"),
        ("err,1,E_X,text", "E_EVENTFLOW_INVALID_RECORD"),
        ("err,1,E_X,text,soon", "E_EVENTFLOW_INVALID_RECORD"),
        ("event,1;2,1,i,0,d,n,p,,1", "E_EVENTFLOW_INVALID_RECORD"),
        ("event,,1,i,0,d,n,p,,1", "E_EVENTFLOW_INVALID_RECORD"),
        ("event,1,1,i,-0,d,n,p,,1", "E_EVENTFLOW_INVALID_RECORD"),
        ("event,1,1,i,0,d,n,p,1", "E_EVENTFLOW_INVALID_RECORD"),
        ("claim,1,1,1,1,i,0,d,n,p,,1,x", "E_EVENTFLOW_INVALID_RECORD"),
        ("online,h,127.0.0.1,65536", "E_EVENTFLOW_INVALID_RECORD"),
        ("bye,E_X,a\u{7}b,", "E_EVENTFLOW_CONTROL_CHARACTER"),
    ];
    for (text, expected) in cases {
        assert_eq!(Reply::parse(&record_of(text)).unwrap_err().code(), expected, "{text:?}");
    }
}

#[test]
fn the_first_record_decides_the_dialect() {
    for (text, expected) in [
        ("hello,1,{}", true),
        ("hello", true),
        ("hello2,1", false),
        ("subscribe,hello,*", false),
        ("", false),
    ] {
        assert_eq!(is_hello(&record_of(text)), expected, "{text}");
    }
}

#[test]
fn npm_records_are_read_as_npm_means_them() {
    use npm::FromNpm;
    let exact = |text: &str| Pattern::exact(text.to_owned());
    let parse = |text: &str| npm::parse(&record_of(text));
    assert_eq!(
        parse("subscribe,*,*"),
        FromNpm::Subscribe { domain: exact("*"), name: Pattern::any() },
        "a lone `*` is a wildcard as name only"
    );
    assert_eq!(
        parse("unsubscribe,a.*,b.>"),
        FromNpm::Unsubscribe { domain: exact("a.*"), name: exact("b.>") }
    );
    assert!(matches!(parse("publish,d,i,n,"), FromNpm::Publish { pid, .. } if pid.as_str().is_empty()));
    assert!(matches!(parse("online,H,127.0.0.1,50001"), FromNpm::Online { port: 50001, .. }));
    assert_eq!(parse("dance,1"), FromNpm::Unknown { verb: "dance".to_owned() });
    let long = format!("subscribe,{},*", "x".repeat(65));
    for text in [
        "",
        "subscribe",
        "subscribe,a",
        "subscribe,,b",
        "publish,d,i,n",
        "online,H,1,x",
        "subscribe,a,\n",
        &long,
    ] {
        assert!(matches!(parse(text), FromNpm::Malformed(_)), "{text:?}");
    }
}
