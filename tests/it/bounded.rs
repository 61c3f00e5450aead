//! Promise: bounded by construction. A slow subscriber, a stalled consumer or a flooding publisher costs its own
//! link; the others get all that is theirs. What that does to the others' pace, `cargo bench --bench bounded` tells.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use eventflow::{
    event::code,
    spoke::{Consume, Consumer, Delivery, Publish, Spoke},
};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    process::HubProcess,
    support::{PATIENCE, Raw, until},
};

/// What the hub's memory may grow by, in MiB.
const GROWTH: u64 = 64;
const CUT: &str = "eventflow_links_cut_total";

/// The hub and those who behave: a publisher, a subscriber, a consumer.
struct Stage {
    hub: HubProcess,
    others: Spoke,
    /// What the subscriber saw, and how it goes on.
    seen: mpsc::UnboundedReceiver<Delivery>,
    sighted: BTreeSet<String>,
    consumers: Vec<Consumer>,
    handled: Arc<Mutex<Vec<String>>>,
    published: BTreeSet<String>,
    before: Option<u64>,
}

impl Stage {
    async fn set() -> Self {
        let hub = HubProcess::start(&[]);
        let others = hub.spoke().await;
        let mut subscription = others.subscribe("orders", "*").await.unwrap();
        let (sees, seen) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(delivery) = subscription.next().await {
                sees.send(delivery).unwrap();
            }
        });
        let handled = Arc::new(Mutex::new(Vec::new()));
        let (sighted, published) = (BTreeSet::new(), BTreeSet::new());
        Self { hub, others, seen, sighted, consumers: Vec::new(), handled, published, before: None }
    }

    async fn consume(&mut self) {
        let handled = self.handled.clone();
        let handler = move |event: eventflow::event::Event| {
            handled.lock().unwrap().push(event.id.to_string());
            async { Ok::<(), String>(()) }
        };
        let consume = Consume::new("orders", "*").concurrency(8);
        self.consumers.push(self.others.consume(consume, handler).await.unwrap());
    }

    /// In parts, each seen by the subscriber before the next: it shares its link with all that the others do, and on
    /// a machine that stalls it would be the slow one.
    async fn publish(&mut self, mut events: usize, bytes: usize) {
        let data = format!("\"{}\"", "x".repeat(bytes));
        while events > 0 {
            let part = events.min((2 * 1024 * 1024 / bytes).max(1));
            events -= part;
            let mut pending = Vec::new();
            for _ in 0..part {
                let id = format!("e{}", self.published.len());
                let publish =
                    Publish::new("orders", "created", "p").id(id.clone()).data_text(data.clone()).unwrap();
                pending.push(self.others.publish_later(publish).await.unwrap());
                self.published.insert(id);
            }
            for pending in pending {
                pending.await.expect("the others' publishes are taken");
            }
            self.subscriber_has_everything().await;
        }
    }

    async fn subscriber_has_everything(&mut self) {
        while self.sighted.len() < self.published.len() {
            match timeout(PATIENCE, self.seen.recv()).await.expect("an event in time") {
                Some(Delivery::Event { event, .. }) => {
                    assert!(self.sighted.insert(event.id.to_string()), "{} twice", event.id);
                }
                other => panic!("{other:?} after {} events", self.sighted.len()),
            }
        }
        assert_eq!(self.sighted, self.published);
    }

    /// The subscriber and the consumer got everything, once, over the links that they had from the start.
    async fn others_have_everything(&mut self) {
        self.subscriber_has_everything().await;
        let all = self.published.len();
        until("every event is handled", || async { self.handled.lock().unwrap().len() >= all }).await;
        let handled = self.handled.lock().unwrap().clone();
        assert_eq!(handled.len(), all, "each once");
        assert_eq!(handled.into_iter().collect::<BTreeSet<_>>(), self.published);
        until("the outcomes are recorded", || async {
            self.hub.number("eventflow_events_in_flight").await == 0.0
        })
        .await;
        assert_eq!(self.others.status().links_lost, 0);
    }

    /// One link was cut, for this reason, or none; queues are empty, nothing failed.
    async fn only_cut(&self, reason: Option<&str>) {
        let numbers = self.hub.numbers().await;
        // A link that this test itself drops with bytes unread breaks in the hub's eyes.
        let cuts = |series: &str| series.starts_with(CUT) && !series.contains("\"transport\"");
        for (series, value) in numbers.iter().filter(|(series, _)| cuts(series)) {
            let expected = reason.is_some_and(|reason| series.contains(&format!("\"{reason}\"")));
            assert_eq!(*value, f64::from(u8::from(expected)), "{series}");
        }
        for series in
            ["eventflow_journal_queue_writes", "eventflow_journal_queue_bytes", "eventflow_events_pending"]
        {
            // What was published within the window may be on its way yet.
            until(series, || async { self.hub.number(series).await == 0.0 }).await;
        }
        self.hub.assert_calm().await;
    }

    /// From here on memory is compared with what the same load took without anybody who misbehaves.
    async fn measure_from_here(&mut self) {
        self.others_have_everything().await;
        self.before = self.hub.resident_peak();
    }

    fn assert_small(&self) {
        match (self.before, self.hub.resident_peak()) {
            (Some(before), Some(peak)) => {
                println!("memory: {before} MiB, then at most {peak} MiB");
                assert!(peak < before + GROWTH, "memory grew from {before} to {peak} MiB");
            }
            _ => println!("skipped: this system doesn't tell what memory a process has"),
        }
    }
}

/// What else comes, up to the end of the link; the last words may be lost with it.
async fn last_code(link: &mut Raw) -> Option<String> {
    let mut last = None;
    while let Some(record) = link.answer().await {
        if record[0] == "bye" {
            last = Some(record[1].clone());
        }
    }
    last
}

#[tokio::test]
async fn a_subscriber_that_stops_reading_is_cut_alone() {
    let mut stage = Stage::set().await;
    stage.consume().await;
    stage.publish(80, 256 * 1024).await;
    stage.measure_from_here().await;
    let mut slow = stage.hub.v1_narrow().await;
    slow.send(&["subscribe", "1", "1", "orders", "*"]).await;
    assert_eq!(slow.answer().await.unwrap()[2], "position");
    // Until its 8 MiB are full, and what the system holds for such a socket, which varies.
    let cut = format!("{CUT}{{reason=\"slow_subscriber\"}}");
    for published in 1.. {
        stage.publish(16, 256 * 1024).await;
        if stage.hub.number(&cut).await == 1.0 {
            break;
        }
        assert!(published < 25, "it isn't cut after 100 MiB: {:?}", stage.hub.numbers().await);
    }
    if let Some(code) = last_code(&mut slow).await {
        assert_eq!(code, code::SLOW_SUBSCRIBER);
    }
    stage.others_have_everything().await;
    stage.only_cut(Some("slow_subscriber")).await;
    stage.assert_small();
}

#[tokio::test]
async fn a_consumer_that_stalls_holds_its_credit_and_no_more() {
    let mut stage = Stage::set().await;
    stage.before = stage.hub.resident();
    let mut stalled = stage.hub.v1().await;
    stalled.send(&["consume", "1", "1", "", "orders", "*", "{\"credit\":64}"]).await;
    assert_eq!(stalled.answer().await.unwrap()[2], "position");
    stage.consume().await;
    stage.publish(500, 100).await;
    let held = || async { stage.hub.number("eventflow_events_in_flight").await };
    until("all but what it holds is handled", || async {
        let handled = stage.handled.lock().unwrap().len();
        handled >= 436 && handled + held().await as usize == 500
    })
    .await;
    assert!(held().await <= 64.0);
    // Its link ends: what it held goes to the other.
    drop(stalled);
    stage.others_have_everything().await;
    stage.only_cut(None).await;
    stage.assert_small();
}

#[tokio::test]
async fn a_publisher_that_ignores_its_window_is_cut_alone() {
    let mut stage = Stage::set().await;
    stage.before = stage.hub.resident();
    stage.consume().await;
    let mut flooding = stage.hub.v1().await;
    // More than a window within what the hub reads at once, so no answer can come in between.
    let records: String = (1..=700)
        .map(|n| format!("publish\u{1f}{n}\u{1f}f{n}\u{1f}d\u{1f}n\u{1f}p\u{1f}\u{1f}1\u{1e}"))
        .collect();
    stage.publish(100, 1_000).await;
    flooding.bytes(records.as_bytes()).await;
    stage.publish(100, 1_000).await;
    assert_eq!(last_code(&mut flooding).await.as_deref(), Some(code::WINDOW_EXCEEDED));
    stage.others_have_everything().await;
    stage.only_cut(Some("window_exceeded")).await;
    stage.assert_small();
    // What it published within its window is stored.
    assert!(stage.others.read("f1").await.is_ok());
    assert!(stage.others.read("f700").await.is_err());
}

/// Several consumers on one link, each within its credit, take more together than may wait for the link: that is no
/// reason to cut it.
#[tokio::test]
async fn consumers_of_one_link_share_its_room() {
    let mut stage = Stage::set().await;
    stage.publish(60, 1024 * 1024 - 2).await;
    for _ in 0..6 {
        stage.consume().await;
    }
    stage.others_have_everything().await;
    stage.only_cut(None).await;
}
