//! Promise: replay without a gap. A subscription from a point on gets each event from there once and in order: stored
//! ones first, then live ones; while others publish at full speed, over lost links and killed hubs, however slowly it
//! reads. What retention removed it is told.
//!
//! 20,000 events are published while several subscribers begin; `EVENTFLOW_TEST_LONG=1` makes that 1,000,000.

mod beginning;
mod pace;
mod resuming;
mod retention;

use std::time::Duration;

use eventflow::{
    event::Pattern,
    spoke::{Delivery, Publish, Since, Spoke, Subscription},
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::support::{PATIENCE, TestHub, load::is_long, until};

/// Events of one batch: what a publisher at full speed sends.
const BATCH: usize = 100;

/// What a subscription wants.
#[derive(Debug)]
struct Wanted(Pattern, Pattern);

impl Wanted {
    fn of(domain: &'static str, name: &'static str) -> Self {
        Self(Pattern::parse(domain).unwrap(), Pattern::parse(name).unwrap())
    }

    fn matches(&self, domain: &str, name: &str) -> bool {
        self.0.matches(domain) && self.1.matches(name)
    }
}

/// Publishes at full speed until so many events are there; gives their numbers, rising.
async fn publish(spoke: Spoke, domain: &'static str, events: usize, count: watch::Sender<usize>) -> Vec<u64> {
    let mut seqs = Vec::with_capacity(events);
    while seqs.len() < events {
        let batch =
            (0..BATCH).map(|_| Publish::new(domain, "created", "p").data_text("{\"total\":12}").unwrap());
        let published = spoke.publish_all(batch.collect()).await.unwrap();
        seqs.extend(published.iter().map(|published| published.seq));
        count.send_modify(|count| *count += published.len());
    }
    seqs
}

/// The number of the next event; other deliveries fail the test.
async fn next(subscription: &mut Subscription) -> u64 {
    match timeout(PATIENCE, subscription.next()).await.expect("an event in time") {
        Some(Delivery::Event { seq, .. }) => seq,
        other => panic!("an event, not {other:?}; {:?}", subscription.fault()),
    }
}

/// The numbers of what comes up to this number.
async fn numbers_to(subscription: &mut Subscription, last: u64) -> Vec<u64> {
    let mut seqs = Vec::new();
    while seqs.last() != Some(&last) {
        seqs.push(next(subscription).await);
    }
    seqs
}

/// The numbers of what comes, in a task of its own, until the number that is told at last has come.
fn read(mut subscription: Subscription, mut last: watch::Receiver<Option<u64>>) -> JoinHandle<Vec<u64>> {
    tokio::spawn(async move {
        let mut seqs: Vec<u64> = Vec::new();
        loop {
            let told = *last.borrow_and_update();
            if told.is_some_and(|told| seqs.last() >= Some(&told)) {
                return seqs;
            }
            tokio::select! {
                delivery = subscription.next() => match delivery {
                    Some(Delivery::Event { seq, .. }) => {
                        assert!(seqs.last().is_none_or(|last| *last < seq), "{seq} after {:?}", seqs.last());
                        seqs.push(seq);
                    }
                    other => panic!("an event, not {other:?}; {:?}", subscription.fault()),
                },
                told = last.changed() => told.unwrap(),
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_comes_once_and_in_order_while_others_publish_at_full_speed() {
    let events = if is_long() { 1_000_000 } else { 20_000 };
    let hub = TestHub::start().await;
    let (count, counted) = watch::channel(0);
    let began = Instant::now();
    let domains = ["orders", "orders.eu", "users"];
    let mut publishers = Vec::new();
    for domain in domains {
        publishers.push(tokio::spawn(publish(hub.spoke().await, domain, events / 3, count.clone())));
    }

    // They begin at any moment, each on a link of its own.
    let mut readers = Vec::new();
    for (domain, name) in
        [(">", "*"), ("*", "created"), ("orders.*", "*"), ("users", "created"), ("*", "paid")]
    {
        let moment = fastrand::usize(..events);
        let mut counted = counted.clone();
        timeout(20 * PATIENCE, counted.wait_for(|count| *count >= moment)).await.unwrap().unwrap();
        let spoke = hub.spoke().await;
        let subscription = spoke.subscribe_from(domain, name, Since::All).await.unwrap();
        assert_eq!(subscription.position().seq(&hub.handle.info().id), Some(0));
        let (end, last) = watch::channel(None);
        readers.push((Wanted::of(domain, name), spoke, end, read(subscription, last)));
    }
    let mut published = Vec::new();
    for (domain, publisher) in domains.into_iter().zip(publishers) {
        let seqs = timeout(20 * PATIENCE, publisher).await.unwrap().unwrap();
        published.extend(seqs.into_iter().map(|seq| (seq, domain, "created")));
    }
    let took = began.elapsed();

    // Once they are live each of them has a last event.
    let live = async {
        while hub.handle.metrics().hub.replays > 0 {
            // A rest between two looks: it takes as long as the machine needs.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(20 * PATIENCE, live).await.expect("all of them are live in the end");
    let caught_up = began.elapsed();
    let spoke = hub.spoke().await;
    for (domain, name) in [("orders.eu", "created"), ("users", "created"), ("users", "paid")] {
        let seq = spoke.publish(Publish::new(domain, name, "p")).await.unwrap().seq;
        published.push((seq, domain, name));
    }
    published.sort_unstable();
    for (wanted, reader, end, seen) in readers {
        let matching = published.iter().filter(|(_, domain, name)| wanted.matches(domain, name));
        let expected: Vec<_> = matching.map(|(seq, ..)| *seq).collect();
        end.send_replace(expected.last().copied());
        let seen = timeout(20 * PATIENCE, seen).await.expect("all events come in time").unwrap();
        assert!(seen == expected, "{wanted:?}: {} events instead of {}", seen.len(), expected.len());
        reader.close().await;
    }
    let numbers = hub.handle.metrics().hub;
    let (delivered, replayed) = (numbers.delivered, numbers.replayed);
    println!(
        "{events} events published in {took:?}, all readers live after {caught_up:?}, \
         {delivered} deliveries, {replayed} of them while replaying"
    );
    assert!(replayed > 0 && replayed < delivered, "stored ones, then live ones");
    assert_eq!(numbers.cuts.values().sum::<u64>(), 0, "no link was cut");
    spoke.close().await;
    hub.stop().await;
}

/// Publishes events of `orders` one by one; gives their numbers.
async fn some(spoke: &Spoke, events: usize) -> Vec<u64> {
    let mut seqs = Vec::new();
    for _ in 0..events {
        seqs.push(spoke.publish(Publish::new("orders", "created", "p")).await.unwrap().seq);
    }
    seqs
}

/// Publishes events of `orders` of 10 kB each; gives their numbers.
async fn large(spoke: &Spoke, events: usize) -> Vec<u64> {
    let data = format!("\"{}\"", "x".repeat(10_000));
    let mut seqs = Vec::new();
    while seqs.len() < events {
        // What fits into one record of a narrow hub.
        let batch = (0..10).map(|_| Publish::new("orders", "created", "p").data_text(data.clone()).unwrap());
        seqs.extend(spoke.publish_all(batch.collect()).await.unwrap().iter().map(|published| published.seq));
    }
    seqs
}

/// A moment in which nothing comes.
async fn silent(subscription: &mut Subscription) {
    let nothing = timeout(Duration::from_millis(100), subscription.next()).await;
    assert!(nothing.is_err(), "{nothing:?} comes too much");
}
