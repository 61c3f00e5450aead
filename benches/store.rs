//! What the store can do on this machine: events per second with the real schema, in batches as the Journal
//! makes them. `cargo bench --bench store [-- EVENTS]`.

use std::time::Instant;

use eventflow::{
    event::{Data, Domain, Event, EventId, Name, Outcome, Pattern, Pid, Uid},
    store::{Durability, GroupKey, HubRow, Place, Store, StoreConfig, StoreError, Write},
};

type Failure = Box<dyn std::error::Error>;

/// How many events a run writes unless told otherwise.
const EVENTS: usize = 100_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().filter_map(|word| word.parse().ok());
    let events = numbers.next().unwrap_or(EVENTS);
    let batches = numbers.next().map_or(vec![1, 16, 256, 1_000], |batch| vec![batch]);
    println!("{events} events a run, 200 bytes of data, 4 events a pid");
    for durability in [Durability::Full, Durability::Relaxed] {
        for &batch in &batches {
            // One row a transaction is slow: fewer of them say as much.
            let events = if batch == 1 { events / 10 } else { events };
            run(durability, batch, events, false).await?;
            run(durability, batch, events, true).await?;
        }
    }
    Ok(())
}

async fn run(durability: Durability, batch: usize, events: usize, finish: bool) -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(".")?;
    let config = StoreConfig { durability, ..StoreConfig::new(Place::File(folder.path().join("bench.db"))) };
    let store = Store::open(&config).await?;
    let hub = Uid::parse("VIVID-VARIAVEX-MX2WKT7L.EVENTFLOW-HUB")?;
    let ip = String::from("127.0.0.1");
    store
        .register_hub(&HubRow {
            id: hub.clone(),
            external_ip: ip.clone(),
            external_port: 50_001,
            internal_ip: ip,
            internal_port: 50_001,
        })
        .await?;
    let all = make(events)?;

    let (began, worked) = (Instant::now(), processor_seconds());
    // The part before, and the number of its first event.
    let mut before: (&[Event], u64) = (&[], 0);
    let mut seq = 0;
    for part in all.chunks(batch) {
        let first = seq + 1;
        let mut writes = publishes(part, &hub, &mut seq);
        if finish {
            writes.extend(finishes(&hub, before)?);
            before = (part, first);
        }
        checked(store.commit(writes).await)?;
    }
    checked(store.commit(finishes(&hub, before)?).await)?;
    let rate = per_second(events, began);
    let work = (processor_seconds() - worked) * 1e6 / count(events);

    let began = Instant::now();
    let (mut after, mut read) = (0, 0);
    loop {
        let any = (&Pattern::any(), &Pattern::any());
        let page = store.open_page(&hub, GroupKey::DEFAULT, after, any, 1_000, 4 << 20).await?;
        after = page.scanned;
        read += page.events.len();
        if !page.more {
            break;
        }
    }
    let what = if finish { "publish and finish" } else { "publish" };
    print!(
        "{durability:?}, batch {batch:>4}, {what:<18}: {rate:>7.0} events/s, {work:>5.1} µs of processor each"
    );
    if read > 0 {
        print!("; refill {:>7.0} events/s", per_second(read, began));
    }
    println!();
    Ok(())
}

fn make(events: usize) -> Result<Vec<Event>, Failure> {
    let domain = Domain::parse("orders")?;
    let names =
        ["created", "paid", "packed", "sent"].map(Name::parse).into_iter().collect::<Result<Vec<_>, _>>()?;
    let data = Data::from_value(&serde_json::json!({ "total": 12.5, "note": "x".repeat(175) }))?;
    let made = (0..events).map(|number| {
        // As ids are at 50,000 events a second.
        let ms = 1_796_000_000_000 + u64::try_from(number / 50)?;
        let random = u128::from(fastrand::u64(..)) << 16;
        Ok(Event {
            id: EventId::parse(ulid::Ulid::from_parts(ms, random).to_string())?,
            timestamp: i64::try_from(ms)?,
            domain: domain.clone(),
            name: names[number % names.len()].clone(),
            pid: Pid::parse(format!("order-{}", number % (events / 4).max(1)))?,
            rid: None,
            data: data.clone(),
        })
    });
    made.collect()
}

fn publishes(events: &[Event], hub: &Uid, seq: &mut u64) -> Vec<Write> {
    let publish = |event: &Event| {
        *seq += 1;
        Write::Publish {
            event: event.clone(),
            seq: *seq,
            publisher: hub.clone(),
            hub: hub.clone(),
            expect: None,
        }
    };
    events.iter().map(publish).collect()
}

/// Two consumers take turns.
fn finishes(hub: &Uid, (events, first): (&[Event], u64)) -> Result<Vec<Write>, Failure> {
    let consumers = ["A.EVENTFLOW-SPOKE", "B.EVENTFLOW-SPOKE"].map(Uid::parse);
    let [a, b] = consumers;
    let consumers = [a?, b?];
    let finish = |((number, event), seq): ((usize, &Event), u64)| Write::Finish {
        event_id: event.id.clone(),
        seq,
        outcome: Outcome::Success,
        consumer: consumers[number % 2].clone(),
        at: event.timestamp + 1,
        attempt: None,
        hub: hub.clone(),
        group: String::new(),
        round: 1,
        retried: false,
        letter: None,
    };
    Ok(events.iter().enumerate().zip(first..).map(finish).collect())
}

fn checked<T>(answers: Vec<Result<T, StoreError>>) -> Result<(), StoreError> {
    answers.into_iter().try_for_each(|answer| answer.map(drop))
}

fn per_second(events: usize, began: Instant) -> f64 {
    count(events) / began.elapsed().as_secs_f64()
}

/// Counts of this size are exact in a float.
#[allow(clippy::cast_precision_loss)]
fn count(events: usize) -> f64 {
    events as f64
}

/// What this process used so far, user and system, where Linux tells (in ticks of 10 ms); else 0.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold spaces; what follows it doesn't. User and system are fields 14, 15.
    let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>()
        / 100.0
}
