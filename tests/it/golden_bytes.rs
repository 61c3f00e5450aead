//! The bytes of each verb, in both dialects and directions. They also stand in docs/protocol.md, so the page
//! and the program can't drift apart. `␟` is 0x1F, `␞` is 0x1E.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use eventflow::{
    event::{
        Append, Data, Domain, Eid, Event, EventId, Expect, Fault, Group, LogConflict, NewEvent, Pattern, Pid,
        Position, Uid, code,
    },
    wire::{
        After, Answer, Association, Attempt, Backlog, BacklogQuery, BindingInfo, ConsumeOptions,
        ConsumerInfo, Dead, DeadQuery, Deletion, Ended, ExtendOptions, GroupAction, GroupChanged,
        GroupSettings, GroupTrace, Hello, HubAddress, Limits, LinkLimits, LogOf, LogQuery, Made, Missed,
        NackOptions, Nudged, OutcomeOptions, ParseLimits, PublishState, Published, READY, Reader, Record,
        Recur, RecurChange, Recurring, RecurringShown, RecurringState, Redrive, RemovedEvents, Renewed,
        Reply, Request, RoundTrace, Run, ScheduledEvent, SchedulesQuery, Since, StartAt, SubscribeOptions,
        Trace, Wait, WaitFor, Welcome,
        npm::{self, FromNpm},
    },
};

const PROTOCOL: &str = include_str!("../../docs/protocol.md");

fn wire(golden: &str) -> Vec<u8> {
    golden.replace('␟', "\u{1F}").replace('␞', "\u{1E}").into_bytes()
}

fn record(golden: &str) -> Record {
    let mut reader = Reader::new(Limits::default());
    reader.spare().put_slice(&wire(golden));
    let record = reader.next().unwrap().unwrap();
    assert_eq!(reader.next(), Ok(None), "{golden} is one record");
    record
}

#[track_caller]
fn documented(golden: &str) {
    assert!(PROTOCOL.contains(golden), "docs/protocol.md lacks {golden}");
}

#[track_caller]
fn request(golden: &str, request: &Request) {
    let mut out = BytesMut::new();
    request.encode(&mut out).unwrap();
    assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&wire(golden)));
    assert_eq!(&Request::parse(&record(golden), &ParseLimits::default()).unwrap(), request);
    documented(golden);
}

#[track_caller]
fn reply(golden: &str, reply: &Reply) {
    let mut out = BytesMut::new();
    reply.encode(&mut out).unwrap();
    assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&wire(golden)));
    assert_eq!(&Reply::parse(&record(golden)).unwrap(), reply);
    documented(golden);
}

fn new_event() -> NewEvent {
    NewEvent {
        id: EventId::parse("01K0EXAMPLE").unwrap(),
        domain: Domain::parse("orders").unwrap(),
        name: "created".parse().unwrap(),
        pid: Pid::parse("order-1").unwrap(),
        rid: None,
        data: Data::parse(r#"{"total":12}"#).unwrap(),
    }
}

fn event() -> Event {
    let NewEvent { id, domain, name, pid, data, .. } = new_event();
    let rid = Some(EventId::parse("01K0BEFORE").unwrap());
    Event { id, timestamp: 1_750_000_000_000, domain, name, pid, rid, data }
}

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text.to_owned()).unwrap()
}

fn uid(text: &str) -> Uid {
    Uid::parse(text.to_owned()).unwrap()
}

fn subscribe(from: Option<Since>) -> Request {
    let options = SubscribeOptions { from };
    Request::Subscribe { req: 3, sub: 1, domain: pattern("orders"), name: pattern("*"), options }
}

#[test]
fn the_ready_byte() {
    assert_eq!(READY, 0x02);
    documented("`0x02`");
}

#[test]
fn every_error_code_is_documented() {
    let source = include_str!("../../src/event/fault.rs");
    let codes: Vec<_> = source.split('"').filter(|text| text.starts_with("E_EVENTFLOW_")).collect();
    assert!(codes.len() > 40);
    for code in codes {
        documented(&format!("`{code}`"));
    }
}

#[test]
fn requests() {
    request(
        r#"hello␟1␟{"client":"my-worker 1.0"}␞"#,
        &Request::Hello(Hello { client: "my-worker 1.0".into() }),
    );
    request("ping␟5␞", &Request::Ping(5));
    request("pong␟9␞", &Request::Pong(9));
    request(
        r#"publish␟1␟01K0EXAMPLE␟orders␟created␟order-1␟␟{"total":12}␞"#,
        &Request::Publish { req: 1, event: new_event(), expect: None },
    );
    request(
        r#"publish␟2␟01K0EXAMPLE␟orders␟created␟order-1␟01K0BEFORE␟{"total":12}␞"#,
        &Request::Publish { req: 2, event: NewEvent { rid: event().rid, ..new_event() }, expect: None },
    );
    let expecting = |expect| Request::Publish { req: 26, event: new_event(), expect: Some(expect) };
    request(
        r#"publish␟26␟01K0EXAMPLE␟orders␟created␟order-1␟␟{"total":12}␟{"expect":"none"}␞"#,
        &expecting(Expect::None),
    );
    request(
        r#"publish␟26␟01K0EXAMPLE␟orders␟created␟order-1␟␟{"total":12}␟{"expect":"01K0BEFORE"}␞"#,
        &expecting(Expect::After(EventId::parse("01K0BEFORE").unwrap())),
    );
    request("subscribe␟3␟1␟orders␟*␞", &subscribe(None));
    request(r#"subscribe␟3␟1␟orders␟*␟{"from":"all"}␞"#, &subscribe(Some(Since::All)));
    request(
        r#"subscribe␟3␟1␟orders␟*␟{"from":{"time":1750000000000}}␞"#,
        &subscribe(Some(Since::Time(1_750_000_000_000))),
    );
    request(
        r#"subscribe␟3␟1␟orders␟*␟{"from":{"id":"01K0EXAMPLE"}}␞"#,
        &subscribe(Some(Since::Id(new_event().id))),
    );
    let position = Position::of(uid("VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB"), 1_750_000_000_000_123);
    request(
        r#"subscribe␟3␟1␟orders␟*␟{"from":{"position":"pos-2556495649442d56415249415645582d4d5832574b54374c2e4556454e54464c4f572d4855420006379da05b607b9084f0ec"}}␞"#,
        &subscribe(Some(Since::Position(position))),
    );
    request("unsubscribe␟4␟1␞", &Request::Unsubscribe { req: 4, sub: 1 });
    request(
        r#"consume␟5␟2␟␟orders␟created␟{"credit":64,"concurrency":4}␞"#,
        &Request::Consume {
            req: 5,
            sub: 2,
            group: None,
            domain: pattern("orders"),
            name: pattern("created"),
            options: ConsumeOptions::new(64, 4),
        },
    );
    request(
        r#"consume␟5␟2␟billing␟orders␟created␟{"credit":64,"concurrency":4,"lease":60000,"from":"all"}␞"#,
        &Request::Consume {
            req: 5,
            sub: 2,
            group: Some(group()),
            domain: pattern("orders"),
            name: pattern("created"),
            options: ConsumeOptions {
                lease: Some(60_000),
                from: Some(StartAt::All),
                ..ConsumeOptions::new(64, 4)
            },
        },
    );
    request("stop␟6␟2␞", &Request::Stop { req: 6, sub: 2 });
    request("ack␟7␟81␞", &Request::Ack { req: 7, token: 81 });
    request(
        r#"nack␟8␟82␟{"reason":"no such customer"}␞"#,
        &Request::Nack {
            req: 8,
            token: 82,
            options: NackOptions { reason: "no such customer".into(), ..NackOptions::default() },
        },
    );
    request(
        r#"nack␟8␟82␟{"reason":"no such customer","delay":5000}␞"#,
        &Request::Nack {
            req: 8,
            token: 82,
            options: NackOptions { reason: "no such customer".into(), delay: Some(5_000), is_final: false },
        },
    );
    request(
        r#"nack␟8␟82␟{"reason":"no such customer","final":true}␞"#,
        &Request::Nack {
            req: 8,
            token: 82,
            options: NackOptions { reason: "no such customer".into(), delay: None, is_final: true },
        },
    );
    request(
        r#"extend␟26␟81␟{"lease":60000}␞"#,
        &Request::Extend { req: 26, token: 81, options: ExtendOptions { lease: Some(60_000) } },
    );
    request("extend␟26␟81␟{}␞", &Request::Extend { req: 26, token: 81, options: ExtendOptions::default() });
    request("release␟9␟83␞", &Request::Release { req: 9, token: 83 });
    request("read␟10␟01K0EXAMPLE␞", &Request::Read { req: 10, id: new_event().id });
    let log = |page: &str| Request::Log {
        req: 11,
        query: LogOf::Process { domain: new_event().domain, pid: new_event().pid }.into(),
        page: page.to_owned(),
        limit: 100,
    };
    request(r#"log␟11␟{"domain":"orders","pid":"order-1"}␟␟100␞"#, &log(""));
    request(r#"log␟11␟{"domain":"orders","pid":"order-1"}␟p1x␟100␞"#, &log("p1x"));
    let key = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=";
    request(
        "renew␟25␟MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=␞",
        &Request::Renew { req: 25, key: key.into() },
    );
    request("show␟12␟01K0EXAMPLE␞", &Request::Show { req: 12, id: new_event().id });
}

#[test]
fn requests_by_schedule_wait_and_relation() {
    let NewEvent { id, domain, name, pid, .. } = new_event();
    let cancelled =
        NewEvent { id: EventId::parse("01K0OTHER").unwrap(), name: "paid".parse().unwrap(), ..event_twin() };
    request(
        r#"batch␟13␟[{"id":"01K0EXAMPLE","domain":"orders","name":"created","pid":"order-1","data":{"total":12}},{"id":"01K0OTHER","domain":"orders","name":"paid","pid":"order-1","rid":"01K0EXAMPLE","data":{"total":12}}]␞"#,
        &Request::Batch { req: 13, events: vec![new_event().into(), cancelled.into()] },
    );
    let expecting = Append { event: new_event(), expect: Some(Expect::None) };
    request(
        r#"batch␟27␟[{"id":"01K0EXAMPLE","domain":"orders","name":"created","pid":"order-1","data":{"total":12},"expect":"none"}]␞"#,
        &Request::Batch { req: 27, events: vec![expecting] },
    );
    request("nudge␟28␞", &Request::Nudge { req: 28, ids: vec![] });
    request(
        r#"nudge␟29␟["01K0EXAMPLE","01K0OTHER"]␞"#,
        &Request::Nudge { req: 29, ids: vec![id.clone(), EventId::parse("01K0OTHER").unwrap()] },
    );
    request(
        r#"persist␟14␟01K0EXAMPLE␟orders␟created␟order-1␟␟{"total":12}␞"#,
        &Request::Persist { req: 14, event: new_event(), expect: None },
    );
    request(
        r#"schedule␟15␟1750000060000␟01K0EXAMPLE␟orders␟created␟order-1␟␟{"total":12}␞"#,
        &Request::Schedule { req: 15, due: 1_750_000_060_000, event: new_event(), replaces: None },
    );
    request(
        r#"schedule␟15␟1750000120000␟01K0EXAMPLE␟orders␟created␟order-1␟␟{"total":12}␟{"replaces":"01K0EXAMPLE"}␞"#,
        &Request::Schedule {
            req: 15,
            due: 1_750_000_120_000,
            event: new_event(),
            replaces: Some(id.clone()),
        },
    );
    request("cancel␟16␟01K0EXAMPLE␞", &Request::Cancel { req: 16, id: id.clone() });
    let log = |golden: &str, query: LogQuery| {
        request(golden, &Request::Log { req: 17, query, page: String::new(), limit: 100 });
    };
    log(
        r#"log␟17␟{"domain":"orders","pid":"order-1","names":["created","paid"],"from":1750000000000,"to":1750000060000}␟␟100␞"#,
        LogQuery {
            of: LogOf::Process { domain: domain.clone(), pid: pid.clone() },
            names: vec![name.clone(), "paid".parse().unwrap()],
            from: Some(1_750_000_000_000),
            to: Some(1_750_000_060_000),
        },
    );
    let cpid: Pid = "parcel-7".parse().unwrap();
    let eid: Eid = "customer-4".parse().unwrap();
    log(
        r#"log␟17␟{"domain":"orders","cpid":"parcel-7"}␟␟100␞"#,
        LogOf::ChildProcess { domain: domain.clone(), cpid: cpid.clone() }.into(),
    );
    log(r#"log␟17␟{"eid":"customer-4"}␟␟100␞"#, LogOf::Entity { eid: eid.clone(), domain: None }.into());
    log(
        r#"log␟17␟{"domain":"orders","eid":"customer-4"}␟␟100␞"#,
        LogOf::Entity { eid: eid.clone(), domain: Some(domain.clone()) }.into(),
    );
    log(r#"log␟17␟{"domain":"orders"}␟␟100␞"#, LogOf::Domain { domain: domain.clone() }.into());
    request(
        "pids␟18␟orders␟␟100␞",
        &Request::Pids { req: 18, domain: domain.clone(), page: String::new(), limit: 100 },
    );
    let wait = |golden: &str, wanted: WaitFor| {
        request(golden, &Request::Wait { req: 19, wait: Wait { wanted, timeout: Duration::from_secs(10) } });
    };
    wait(
        r#"wait␟19␟{"domain":"orders","pid":"order-1","names":["paid"],"after_id":"01K0EXAMPLE","timeout_ms":10000}␞"#,
        WaitFor::Process {
            domain: domain.clone(),
            pid: pid.clone(),
            names: vec!["paid".parse().unwrap()],
            after: After::Event(id.clone()),
        },
    );
    wait(r#"wait␟19␟{"rid":"01K0EXAMPLE","timeout_ms":10000}␞"#, WaitFor::Answer { rid: id.clone() });
    request(
        r#"outcome␟20␟01K0EXAMPLE␟{"timeout_ms":10000}␞"#,
        &Request::Outcome {
            req: 20,
            id: id.clone(),
            options: OutcomeOptions { group: None, timeout_ms: 10_000 },
        },
    );
    let child = Association::ChildProcess { domain: "parcels".parse().unwrap(), cpid };
    request(
        r#"associate␟21␟01K0EXAMPLE␟{"domain":"parcels","cpid":"parcel-7"}␞"#,
        &Request::Associate { req: 21, id: id.clone(), with: child },
    );
    request(
        r#"dissociate␟22␟01K0EXAMPLE␟{"eid":"customer-4"}␞"#,
        &Request::Dissociate { req: 22, id: id.clone(), with: Association::Entity { eid } },
    );
    request(r#"delete␟23␟{"id":"01K0EXAMPLE"}␞"#, &Request::Delete { req: 23, what: Deletion::Event { id } });
    request(
        r#"delete␟23␟{"domain":"orders","pid":"order-1"}␞"#,
        &Request::Delete { req: 23, what: Deletion::Log { domain, pid } },
    );
}

fn group() -> Group {
    Group::parse("billing").unwrap()
}

#[test]
fn requests_about_groups() {
    let about = |golden: &str, action: GroupAction| {
        request(golden, &Request::Group { req: 27, group: Some(group()), action });
    };
    about(
        r#"group␟27␟billing␟{"set":{"max_attempts":8,"delay":1000,"max_delay":60000,"key_order":true,"dead_blocks":false,"dead_letter":"failures"}}␞"#,
        GroupAction::Set(settings()),
    );
    about(r#"group␟27␟billing␟{"seek":"all"}␞"#, GroupAction::Seek(StartAt::All));
    about(
        r#"group␟27␟billing␟{"seek":{"time":1750000000000}}␞"#,
        GroupAction::Seek(StartAt::Time(1_750_000_000_000)),
    );
    about(
        r#"group␟27␟billing␟{"seek":{"id":"01K0EXAMPLE"}}␞"#,
        GroupAction::Seek(StartAt::Id(new_event().id)),
    );
    about(r#"group␟27␟billing␟{"purge":{}}␞"#, GroupAction::Purge {});
    about(r#"group␟27␟billing␟{"remove":{}}␞"#, GroupAction::Remove {});
    about(
        r#"group␟27␟billing␟{"unbind":{"domain":"orders","name":"created"}}␞"#,
        GroupAction::Unbind { domain: pattern("orders"), name: pattern("created") },
    );
    request("backlog␟28␟{}␞", &Request::Backlog { req: 28, query: BacklogQuery::default() });
    request(
        r#"backlog␟28␟{"group":"billing"}␞"#,
        &Request::Backlog { req: 28, query: BacklogQuery { group: Some("billing".into()) } },
    );
    request(
        r#"dead␟29␟{"group":"billing","domain":"orders"}␟␟100␞"#,
        &Request::Dead {
            req: 29,
            query: DeadQuery { group: Some(group()), domain: Some(pattern("orders")), name: None },
            page: String::new(),
            limit: 100,
        },
    );
    request(
        r#"redrive␟30␟{"group":"billing","id":"01K0EXAMPLE"}␞"#,
        &Request::Redrive {
            req: 30,
            what: Redrive { group: Some(group()), id: Some(new_event().id), ..Redrive::default() },
        },
    );
    request(
        r#"redrive␟30␟{"domain":"orders"}␞"#,
        &Request::Redrive {
            req: 30,
            what: Redrive { domain: Some(pattern("orders")), ..Redrive::default() },
        },
    );
}

fn settings() -> GroupSettings {
    GroupSettings {
        max_attempts: Some(8),
        delay: Some(1_000),
        max_delay: Some(60_000),
        key_order: Some(true),
        dead_blocks: Some(false),
        dead_letter: Some("failures".into()),
    }
}

#[test]
fn replies_about_groups() {
    let ok = |req, answer| Reply::Ok { req, answer };
    reply(
        r#"ok␟27␟group␟{"settings":{"max_attempts":8,"delay":1000,"max_delay":60000,"key_order":true,"dead_blocks":false,"dead_letter":"failures"},"events":0}␞"#,
        &ok(27, Answer::Group(Box::new(GroupChanged { settings: Some(settings()), events: 0 }))),
    );
    reply(
        r#"ok␟27␟group␟{"events":12}␞"#,
        &ok(27, Answer::Group(Box::new(GroupChanged { settings: None, events: 12 }))),
    );
    let consumer = uid("WORK-1.EVENTFLOW-SPOKE");
    reply(
        r#"ok␟28␟backlog␟[{"group":"billing","settings":{"max_attempts":8,"delay":1000,"max_delay":60000,"key_order":true,"dead_blocks":false,"dead_letter":"failures"},"pending":12,"in_flight":2,"retrying":1,"dead":3,"oldest":1750000000000,"consumers":1,"bindings":[{"domain":"orders","name":"created","created":1750000000000,"consumers":1}],"connected":[{"uid":"WORK-1.EVENTFLOW-SPOKE","domain":"orders","name":"created","credit":64,"holds":2}]}]␞"#,
        &ok(
            28,
            Answer::Backlog(vec![Backlog {
                group: Some(group()),
                settings: settings(),
                pending: Some(12),
                in_flight: 2,
                retrying: 1,
                dead: 3,
                oldest: Some(1_750_000_000_000),
                consumers: 1,
                bindings: vec![BindingInfo {
                    domain: pattern("orders"),
                    name: pattern("created"),
                    created: 1_750_000_000_000,
                    consumers: 1,
                }],
                connected: vec![ConsumerInfo {
                    uid: consumer.clone(),
                    domain: pattern("orders"),
                    name: pattern("created"),
                    credit: 64,
                    holds: 2,
                }],
            }]),
        ),
    );
    reply(
        r#"ok␟29␟dead␟[{"id":"01K0EXAMPLE","domain":"orders","name":"created","pid":"order-1","ended":1750000000900,"consumer":"WORK-1.EVENTFLOW-SPOKE","round":1,"attempts":5,"reason":"nack","error":"no such customer"}]␟␞"#,
        &ok(
            29,
            Answer::Dead {
                dead: vec![Dead {
                    id: new_event().id,
                    domain: new_event().domain,
                    name: new_event().name,
                    pid: new_event().pid,
                    ended: 1_750_000_000_900,
                    consumer: Some(consumer),
                    round: 1,
                    attempts: 5,
                    reason: "nack".into(),
                    error: "no such customer".into(),
                }],
                next: String::new(),
            },
        ),
    );
    reply("ok␟30␟redriven␟3␞", &ok(30, Answer::Redriven(3)));
}

/// What answers [`new_event`], with the same content else.
fn event_twin() -> NewEvent {
    NewEvent { rid: Some(new_event().id), ..new_event() }
}

fn recurring() -> Recurring {
    let NewEvent { domain, pid, .. } = new_event();
    Recurring {
        pid: Some(pid),
        zone: "Europe/Berlin".into(),
        missed: Missed::All,
        window_ms: 3_600_000,
        start: Some(1_750_000_000_000),
        end: Some(1_790_000_000_000),
        paused: true,
        ..Recurring::new(domain, "reminded".parse().unwrap(), "30 2 * * MON-FRI".into())
    }
}

fn recurring_state() -> RecurringState {
    let NewEvent { domain, .. } = new_event();
    RecurringState {
        name: "reminders".parse().unwrap(),
        what: Recurring::new(domain, "reminded".parse().unwrap(), "@daily".into()),
        next: Some(1_750_032_000_000),
        last: Some(1_749_945_600_000),
        ran: 12,
        left_out: 1,
        publisher: uid("OPERATOR.EVENTFLOW-SPOKE"),
        made: 1_748_000_000_000,
    }
}

#[test]
fn what_is_scheduled() {
    let query = SchedulesQuery {
        domain: Some(pattern("orders")),
        from: Some(1_750_000_000_000),
        ..SchedulesQuery::default()
    };
    request(
        r#"schedules␟17␟{"domain":"orders","from":1750000000000}␟␟100␞"#,
        &Request::Schedules { req: 17, query, page: String::new(), limit: 100 },
    );
    let NewEvent { id, domain, name, pid, .. } = new_event();
    let event = ScheduledEvent { id, due: 1_750_000_060_000, domain, name, pid, rid: None };
    reply(
        r#"ok␟17␟schedules␟[{"id":"01K0EXAMPLE","due":1750000060000,"domain":"orders","name":"created","pid":"order-1"}]␟␞"#,
        &Reply::Ok { req: 17, answer: Answer::Schedules { events: vec![event], next: String::new() } },
    );
}

#[test]
fn recurring_schedules() {
    let name = || "reminders".parse().unwrap();
    let recur = |replace, what| Request::Recur {
        req: 30,
        recur: Box::new(Recur { name: name(), replace, what, data: new_event().data }),
    };
    request(
        r#"recur␟30␟reminders␟create␟{"domain":"orders","event":"reminded","rule":"@daily","zone":"UTC","missed":"once","window_ms":86400000}␟{"total":12}␞"#,
        &recur(false, recurring_state().what),
    );
    request(
        r#"recur␟30␟reminders␟replace␟{"domain":"orders","event":"reminded","pid":"order-1","rule":"30 2 * * MON-FRI","zone":"Europe/Berlin","missed":"all","window_ms":3600000,"start":1750000000000,"end":1790000000000,"paused":true}␟{"total":12}␞"#,
        &recur(true, recurring()),
    );
    let change = |change| Request::RecurChange { req: 31, name: name(), change };
    request("recur-pause␟31␟reminders␞", &change(RecurChange::Pause));
    request("recur-resume␟31␟reminders␞", &change(RecurChange::Resume));
    request("recur-remove␟31␟reminders␞", &change(RecurChange::Remove));
    request(
        "recur-run␟32␟reminders␟01K0EXAMPLE␞",
        &Request::RecurRun { req: 32, name: name(), id: new_event().id },
    );
    request("recur-list␟33␟␟100␞", &Request::RecurList { req: 33, page: String::new(), limit: 100 });
    request("recur-show␟34␟reminders␟5␞", &Request::RecurShow { req: 34, name: name(), runs: 5 });

    let ok = |req, answer| Reply::Ok { req, answer };
    for (golden, next, made) in [
        ("ok␟30␟recurring␟1750032000000␟new␞", Some(1_750_032_000_000), Made::New),
        ("ok␟30␟recurring␟1750032000000␟duplicate␞", Some(1_750_032_000_000), Made::Duplicate),
        ("ok␟30␟recurring␟␟replaced␞", None, Made::Replaced),
    ] {
        reply(golden, &ok(30, Answer::Recurring { next, made }));
    }
    reply(
        r#"ok␟33␟recurrings␟[{"name":"reminders","domain":"orders","event":"reminded","rule":"@daily","zone":"UTC","missed":"once","window_ms":86400000,"next":1750032000000,"last":1749945600000,"ran":12,"left_out":1,"publisher":"OPERATOR.EVENTFLOW-SPOKE","made":1748000000000}]␟␞"#,
        &ok(33, Answer::Recurrings { states: vec![recurring_state()], next: String::new() }),
    );
    let run = Run {
        due: 1_750_032_000_000,
        utc: "2025-06-16T00:00:00+00:00".into(),
        local: "2025-06-16T00:00:00+00:00".into(),
        id: EventId::parse("re-00000000000000000000000000000000").unwrap(),
    };
    reply(
        r#"ok␟34␟recurrence␟{"name":"reminders","domain":"orders","event":"reminded","rule":"@daily","zone":"UTC","missed":"once","window_ms":86400000,"next":1750032000000,"last":1749945600000,"ran":12,"left_out":1,"publisher":"OPERATOR.EVENTFLOW-SPOKE","made":1748000000000,"runs":[{"due":1750032000000,"utc":"2025-06-16T00:00:00+00:00","local":"2025-06-16T00:00:00+00:00","id":"re-00000000000000000000000000000000"}]}␟{"total":12}␞"#,
        &ok(
            34,
            Answer::RecurringShown {
                shown: Box::new(RecurringShown { state: recurring_state(), runs: vec![run] }),
                data: new_event().data,
            },
        ),
    );
}

#[test]
fn replies() {
    reply(
        r#"welcome␟1␟{"hub":"VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB","epoch":3,"limits":{"window_requests":256,"window_bytes":4194304,"data_bytes":1048576,"record_bytes":1114112,"units":64,"credit":64,"credit_bytes":4194304,"subscriptions":1000,"lease_ms":30000,"ping_ms":30000,"silence_ms":60000},"hubs":[{"id":"VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB","host":"127.0.0.1","port":50001}],"features":[]}␞"#,
        &Reply::Welcome(Welcome {
            hub: "VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB".into(),
            epoch: 3,
            limits: LinkLimits {
                window_requests: 256,
                window_bytes: 4_194_304,
                data_bytes: 1_048_576,
                record_bytes: 1_114_112,
                units: 64,
                credit: 64,
                credit_bytes: 4_194_304,
                subscriptions: 1000,
                lease_ms: 30_000,
                ping_ms: 30_000,
                silence_ms: 60_000,
            },
            hubs: vec![address()],
            features: vec![],
        }),
    );
    reply("ping␟9␞", &Reply::Ping(9));
    let removed = RemovedEvents { from: 1_740_000_000_000_001, to: 1_740_000_000_009_000, events: 512 };
    reply(
        r#"gap␟1␟{"from":1740000000000001,"to":1740000000009000,"events":512}␞"#,
        &Reply::Gap { sub: 1, removed },
    );
    reply("pong␟5␞", &Reply::Pong(5));
    let ok = |req, answer| Reply::Ok { req, answer };
    let fresh = Published::fresh(1_750_000_000_000, 1_750_000_000_000_123);
    let published = |is_fresh| match is_fresh {
        true => fresh,
        false => Published { fresh: false, state: Some(PublishState::Pending), ..fresh },
    };
    reply("ok␟1␟committed␟1750000000000␟1750000000000123␞", &ok(1, Answer::Published(published(true))));
    reply(
        "ok␟1␟duplicate␟1750000000000␟1750000000000123␟pending␞",
        &ok(1, Answer::Published(published(false))),
    );
    reply("ok␟3␟position␟1750000000000120␞", &ok(3, Answer::Position(1_750_000_000_000_120)));
    reply("ok␟4␞", &ok(4, Answer::Done));
    reply("ok␟11␟page␟p1x␞", &ok(11, Answer::Page("p1x".into())));
    reply("ok␟11␟page␟␞", &ok(11, Answer::Page(String::new())));
    reply(
        r#"ok␟12␟trace␟{"publisher":"SHOP-1.EVENTFLOW-SPOKE","published":1750000000000,"hub":"VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB","seq":1750000000000123,"state":"dead","consumer":"WORK-1.EVENTFLOW-SPOKE","ended":1750000000900,"attempts":[{"number":1,"consumer":"WORK-1.EVENTFLOW-SPOKE","started":1750000000100,"ended":1750000000900,"reason":"nack","error":"no such customer"}],"groups":[{"state":"dead","round":1,"attempts":1,"consumer":"WORK-1.EVENTFLOW-SPOKE","ended":1750000000900},{"group":"billing","state":"retrying","round":2,"attempts":2,"due":1750000009000}],"redriven":[{"group":"billing","round":1,"state":"dead","consumer":"WORK-1.EVENTFLOW-SPOKE","ended":1750000000500}],"associations":[{"eid":"customer-3"}]}␞"#,
        &ok(12, Answer::Trace(Box::new(trace()))),
    );
    reply(
        r#"ok␟25␟renewed␟{"cert":"-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n","root":"-----BEGIN CERTIFICATE-----\nMIIC…\n-----END CERTIFICATE-----\n","not_after":1757776000000}␞"#,
        &ok(25, Answer::Renewed(Box::new(renewed()))),
    );
    reply(
        r#"ok␟13␟batch␟[{"fresh":true,"timestamp":1750000000000,"seq":1750000000000123},{"fresh":false,"timestamp":1750000000000,"seq":1750000000000123,"state":"pending"}]␞"#,
        &ok(13, Answer::Batch(vec![published(true), published(false)])),
    );
    let scheduled = |fresh| Answer::Scheduled { due: 1_750_000_060_000, fresh };
    reply("ok␟15␟scheduled␟1750000060000␟new␞", &ok(15, scheduled(true)));
    reply("ok␟15␟scheduled␟1750000060000␟duplicate␞", &ok(15, scheduled(false)));
    reply(
        r#"ok␟18␟pids␟["order-1","order-2"]␟p1x␞"#,
        &ok(
            18,
            Answer::Pids {
                pids: vec!["order-1".parse().unwrap(), "order-2".parse().unwrap()],
                next: "p1x".into(),
            },
        ),
    );
    reply(
        r#"ok␟20␟outcome␟{"state":"dead","consumer":"WORK-1.EVENTFLOW-SPOKE","ended":1750000000900,"error":"no such customer"}␞"#,
        &ok(
            20,
            Answer::Outcome(Some(Box::new(Ended {
                state: "dead".into(),
                consumer: Some(uid("WORK-1.EVENTFLOW-SPOKE")),
                ended: 1_750_000_000_900,
                error: "no such customer".into(),
            }))),
        ),
    );
    reply("ok␟20␟outcome␟pending␞", &ok(20, Answer::Outcome(None)));
    reply("ok␟23␟deleted␟2␞", &ok(23, Answer::Deleted(2)));
    reply("ok␟28␟nudged␟3␟[]␞", &ok(28, Answer::Nudged { taken: 3, events: vec![] }));
    let nudged = |id: &str, state: &str| Nudged {
        id: EventId::parse(id.to_owned()).unwrap(),
        state: state.to_owned(),
        reason: String::new(),
    };
    reply(
        r#"ok␟29␟nudged␟1␟[{"id":"01K0EXAMPLE","state":"taken"},{"id":"01K0OTHER","state":"unknown"}]␞"#,
        &ok(
            29,
            Answer::Nudged {
                taken: 1,
                events: vec![nudged("01K0EXAMPLE", "taken"), nudged("01K0OTHER", "unknown")],
            },
        ),
    );
    let conflict = LogConflict {
        domain: "orders".parse().unwrap(),
        pid: "order-1".parse().unwrap(),
        expected: Expect::None,
        last: Some(EventId::parse("01K0BEFORE").unwrap()),
        count: 3,
    };
    reply(
        r#"err␟26␟E_EVENTFLOW_LOG_CONFLICT␟the log of "orders" "order-1" has 3 events, the last is "01K0BEFORE", while none was expected: read it, decide anew, and expect its last event␟␞"#,
        &Reply::Err { req: 26, fault: Fault::refused(code::LOG_CONFLICT, conflict.to_string()) },
    );
    reply(
        r#"item␟10␟01K0EXAMPLE␟1750000000000␟orders␟created␟order-1␟01K0BEFORE␟{"total":12}␞"#,
        &Reply::Item { req: 10, event: event() },
    );
    reply(
        r#"err␟2␟E_EVENTFLOW_RID_NOT_FOUND␟no event has the id "01K0BEFORE"␟␞"#,
        &Reply::Err {
            req: 2,
            fault: Fault::refused(code::RID_NOT_FOUND, r#"no event has the id "01K0BEFORE""#),
        },
    );
    reply(
        "err␟1␟E_EVENTFLOW_DB_FULL␟the disk is full␟1000␞",
        &Reply::Err {
            req: 1,
            fault: Fault::retryable(code::DB_FULL, "the disk is full", Duration::from_secs(1)),
        },
    );
    reply(
        r#"event␟1,4␟1750000000000123␟01K0EXAMPLE␟1750000000000␟orders␟created␟order-1␟01K0BEFORE␟{"total":12}␞"#,
        &Reply::Event { subs: vec![1, 4], seq: 1_750_000_000_000_123, event: event() },
    );
    reply(
        r#"claim␟2␟81␟1␟1750000000000123␟01K0EXAMPLE␟1750000000000␟orders␟created␟order-1␟01K0BEFORE␟{"total":12}␞"#,
        &Reply::Claim { sub: 2, token: 81, attempt: 1, seq: 1_750_000_000_000_123, event: event() },
    );
    reply("online␟VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB␟127.0.0.1␟50001␞", &Reply::Online(address()));
    reply("drain␞", &Reply::Drain);
    let fault = Fault::refused(code::GROUP_NOT_FOUND, "the group \"billing\" was removed");
    reply(
        "ended␟2␟E_EVENTFLOW_GROUP_NOT_FOUND␟the group \"billing\" was removed␟␞",
        &Reply::Ended { sub: 2, fault },
    );
    reply(
        "bye␟E_EVENTFLOW_HUB_DRAINING␟the hub is stopping␟1000␞",
        &Reply::Bye(Fault::retryable(code::HUB_DRAINING, "the hub is stopping", Duration::from_secs(1))),
    );
}

fn address() -> HubAddress {
    HubAddress {
        id: Some("VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB".into()),
        host: "127.0.0.1".into(),
        port: 50001,
    }
}

fn renewed() -> Renewed {
    let pem = |body: &str| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    Renewed { cert: pem("MIIB…"), root: pem("MIIC…"), not_after: 1_757_776_000_000 }
}

fn trace() -> Trace {
    let consumer = uid("WORK-1.EVENTFLOW-SPOKE");
    Trace {
        publisher: Some(uid("SHOP-1.EVENTFLOW-SPOKE")),
        published: Some(1_750_000_000_000),
        hub: Some(uid("VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB")),
        seq: Some(1_750_000_000_000_123),
        scheduled: None,
        recurring: None,
        state: "dead".into(),
        consumer: Some(consumer.clone()),
        ended: Some(1_750_000_000_900),
        attempts: vec![Attempt {
            number: 1,
            round: 1,
            group: None,
            consumer,
            started: 1_750_000_000_100,
            ended: 1_750_000_000_900,
            reason: "nack".into(),
            error: "no such customer".into(),
        }],
        groups: vec![
            GroupTrace {
                group: None,
                state: "dead".into(),
                round: 1,
                attempts: 1,
                consumer: Some(uid("WORK-1.EVENTFLOW-SPOKE")),
                since: None,
                due: None,
                ended: Some(1_750_000_000_900),
            },
            GroupTrace {
                group: Some(group()),
                state: "retrying".into(),
                round: 2,
                attempts: 2,
                consumer: None,
                since: None,
                due: Some(1_750_000_009_000),
                ended: None,
            },
        ],
        redriven: vec![RoundTrace {
            group: Some(group()),
            round: 1,
            state: "dead".into(),
            consumer: Some(uid("WORK-1.EVENTFLOW-SPOKE")),
            ended: 1_750_000_000_500,
        }],
        associations: vec![Association::Entity { eid: Eid::parse("customer-3").unwrap() }],
    }
}

#[test]
fn npm_dialect() {
    let from_npm = |golden: &str, message: FromNpm| {
        assert_eq!(npm::parse(&record(golden)), message);
        documented(golden);
    };
    let exact = |text: &str| Pattern::exact(text.to_owned());
    from_npm("subscribe␟orders␟*␞", FromNpm::Subscribe { domain: exact("orders"), name: Pattern::any() });
    from_npm(
        "unsubscribe␟orders␟created␞",
        FromNpm::Unsubscribe { domain: exact("orders"), name: exact("created") },
    );
    let Event { id, domain, name, pid, .. } = event();
    from_npm("publish␟orders␟01K0EXAMPLE␟created␟order-1␞", FromNpm::Publish { domain, id, name, pid });
    let hub = uid("VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB");
    from_npm(
        "online␟VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB␟127.0.0.1␟50001␞",
        FromNpm::Online { hub: hub.clone(), ip: "127.0.0.1".into(), port: 50001 },
    );
    assert_eq!(npm::publish(&event()), wire("publish␟orders␟01K0EXAMPLE␟created␟order-1␞"));
    assert_eq!(
        npm::online(&hub, "127.0.0.1", 50001),
        wire("online␟VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB␟127.0.0.1␟50001␞")
    );
}
