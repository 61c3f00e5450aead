//! Waits: lost links, the rest of the time, the client's own clock, bounds.

use tokio::time::Instant;

use super::*;
use crate::{
    spoke::{Wait, WaitError},
    wire::{self, Ended, OutcomeOptions, WaitFor},
};

fn paid(seconds: u64) -> Wait {
    Wait::new("orders", "order-1").name("paid").timeout(Duration::from_secs(seconds))
}

fn success() -> Ended {
    Ended { state: "success".to_owned(), consumer: None, ended: 1000, error: String::new() }
}

impl FakeLink {
    async fn wait(&mut self) -> (Req, wire::Wait) {
        match self.work().await {
            Request::Wait { req, wait } => (req, wait),
            other => panic!("expected a wait: {other:?}"),
        }
    }

    pub(super) async fn outcome(&mut self) -> (Req, EventId, OutcomeOptions) {
        match self.work().await {
            Request::Outcome { req, id, options } => (req, id, options),
            other => panic!("expected an outcome: {other:?}"),
        }
    }

    pub(super) async fn found(&mut self, req: Req, id: &str) {
        self.send(Reply::Item { req, event: event(id) }).await;
        self.ok(req, Answer::Done).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_outlives_a_lost_link_and_is_asked_again_with_the_rest_of_its_time() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (waited, ()) = tokio::join!(spoke.wait(paid(20)), async {
        let (_, wait) = link.wait().await;
        assert_eq!(wait.timeout, Duration::from_secs(20));
        let WaitFor::Process { names, .. } = wait.wanted else { panic!("expected a process") };
        assert_eq!(names[0].as_str(), "paid");
        tokio::time::advance(Duration::from_secs(5)).await;
        drop(link);
        let mut link = hub.relinked().await;
        let (req, wait) = link.wait().await;
        assert!(wait.timeout <= Duration::from_secs(15), "{:?}", wait.timeout);
        link.found(req, "e1").await;
    });
    assert_eq!(waited, Ok(event("e1")));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_if_the_hub_says_so_if_it_is_silent_and_if_there_is_none() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (waited, ()) = tokio::join!(spoke.wait(paid(10)), async {
        let (req, _) = link.wait().await;
        link.refuse(req, code::WAIT_TIMEOUT).await;
    });
    let timed_out = || WaitError::TimedOut {
        what: r#"event named "paid" of the process "order-1" in "orders""#.to_owned(),
        waited: Duration::from_secs(10),
    };
    assert_eq!(waited, Err(timed_out()));

    let began = Instant::now();
    let (waited, _asked) = tokio::join!(spoke.wait(paid(10)), link.wait());
    assert_eq!(waited, Err(timed_out()));
    assert_eq!(began.elapsed().as_secs(), 10);

    drop(link);
    let began = Instant::now();
    let error = spoke.wait(paid(3)).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (code::WAIT_TIMEOUT, true));
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[test]
fn a_time_out_says_what_was_waited_for_and_for_how_long() {
    for (micros, text) in
        [(50_000, "50ms"), (49_001, "50ms"), (1_000_000, "1s"), (29_987_654, "30s"), (10, "1ms")]
    {
        let waited = Duration::from_micros(micros);
        let error = WaitError::TimedOut { what: r#"answer to the event "e1""#.to_owned(), waited };
        let expected =
            format!(r#"no answer to the event "e1" came within {text}: wait again, or for longer"#);
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_asked_in_slices() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (waited, ()) = tokio::join!(spoke.wait(paid(70)), async {
        for slice in [30, 30, 10] {
            let (req, wait) = link.wait().await;
            assert!(
                wait.timeout <= Duration::from_secs(slice) && wait.timeout > Duration::from_secs(slice - 1)
            );
            if slice == 10 {
                link.found(req, "e1").await;
            } else {
                tokio::time::sleep(wait.timeout).await;
                link.refuse(req, code::WAIT_TIMEOUT).await;
            }
        }
    });
    assert_eq!(waited, Ok(event("e1")));
}

#[tokio::test(start_paused = true)]
async fn many_waits_keep_to_the_hubs_bound_and_do_not_hold_up_reads() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let mut waits = Vec::new();
    for n in 0..1002 {
        let spoke = spoke.clone();
        let wait = Wait::new("orders", format!("order-{n}")).timeout(Duration::from_secs(15));
        waits.push(tokio::spawn(async move { spoke.wait(wait).await }));
    }
    let mut asked = Vec::new();
    for _ in 0..1000 {
        asked.push(link.wait().await.0);
    }
    // Neither of the last two has a place, but a read needs none.
    let (read, ()) = tokio::join!(spoke.read("e1"), async {
        let Request::Read { req, .. } = link.work().await else { panic!("expected a read") };
        link.found(req, "e1").await;
    });
    assert!(read.is_ok());
    // One that is given up before it has a place never takes one.
    waits.remove(1000).abort();
    link.found(asked.pop().unwrap(), "e2").await;
    let (req, wait) = link.wait().await;
    let WaitFor::Process { pid, .. } = wait.wanted else { panic!("expected a process") };
    assert_eq!(pid.as_str(), "order-1001");
    link.found(req, "e3").await;
    assert_eq!(waits.pop().unwrap().await.unwrap(), Ok(event("e3")));
    // One that is given up later gives its place back when the hub has no more to say of it.
    let given_up = asked.pop().unwrap();
    waits.remove(998).abort();
    let (one_more, another) = (spoke.wait(paid(15)), spoke.wait(paid(15)));
    let (_, another, ()) = tokio::join!(one_more, another, async {
        link.wait().await;
        assert!(timeout(Duration::from_secs(1), link.next()).await.is_err(), "all places are taken");
        link.refuse(given_up, code::WAIT_TIMEOUT).await;
        let (req, _) = link.wait().await;
        link.found(req, "e4").await;
    });
    assert_eq!(another, Ok(event("e4")));
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_busy_is_asked_again() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let began = Instant::now();
    let (waited, ()) = tokio::join!(spoke.wait(paid(10)), async {
        let (req, _) = link.wait().await;
        link.send(Reply::Err { req, fault: busy(2000) }).await;
        let (req, _) = link.wait().await;
        assert_eq!(began.elapsed().as_secs(), 2);
        link.found(req, "e1").await;
    });
    assert_eq!(waited, Ok(event("e1")));
}

#[tokio::test(start_paused = true)]
async fn a_wait_without_time_is_a_look() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    for there in [true, false] {
        let (waited, ()) = tokio::join!(spoke.wait(paid(0)), async {
            let (req, wait) = link.wait().await;
            assert_eq!(wait.timeout, Duration::ZERO);
            if there {
                link.found(req, "e1").await;
            } else {
                link.refuse(req, code::WAIT_TIMEOUT).await;
            }
        });
        let Err(error) = waited else {
            assert!(there);
            continue;
        };
        assert!(!there && error.code() == code::WAIT_TIMEOUT, "{error}");
        let text = r#"there is no event named "paid" of the process "order-1" in "orders" yet: look again, or wait for it"#;
        assert_eq!(error.to_string(), text);
    }
    let (none, ()) = tokio::join!(spoke.outcome("e1", Duration::ZERO), async {
        let (req, ..) = link.outcome().await;
        link.ok(req, Answer::Outcome(None)).await;
    });
    let text = r#"there is no outcome of the event "e1" yet: look again, or wait for it"#;
    assert_eq!(none.unwrap_err().to_string(), text);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_waited_for_or_looked_at() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (ended, ()) = tokio::join!(spoke.outcome("e1", Duration::from_secs(5)), async {
        let (req, id, options) = link.outcome().await;
        assert_eq!((id.as_str(), options.timeout_ms), ("e1", 5000));
        link.ok(req, Answer::Outcome(Some(Box::new(success())))).await;
    });
    assert_eq!(ended, Ok(success()));
    let (now, ()) = tokio::join!(spoke.outcome_now("e1"), async {
        let (req, _, options) = link.outcome().await;
        assert_eq!(options.timeout_ms, 0);
        link.ok(req, Answer::Outcome(None)).await;
    });
    assert_eq!(now, Ok(None));
    let (none, ()) = tokio::join!(spoke.outcome("e2", Duration::from_secs(5)), async {
        let (req, ..) = link.outcome().await;
        link.refuse(req, code::EVENT_NOT_FOUND).await;
    });
    assert_eq!(none, Err(WaitError::NotFound { id: "e2".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn what_breaks_a_rule_is_refused_before_it_is_sent() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    for (wait, code) in [
        (Wait::new("", "order-1"), code::INVALID_DOMAIN),
        (Wait::new("orders", " 1"), code::INVALID_PID),
        (Wait::success_or_failed("orders", "1").name("*"), code::INVALID_NAME),
        (Wait::new("orders", "1").after_event(""), code::INVALID_ID),
        (Wait::answer_to(""), code::INVALID_ID),
        (Wait::new("orders", "1").names((0..65).map(|n| format!("n{n}"))), code::INVALID_RECORD),
    ] {
        assert_eq!(spoke.wait(wait).await.unwrap_err().code(), code);
    }
    link.silence().await;
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_waits() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let waiting = tokio::spawn({
        let spoke = spoke.clone();
        async move { spoke.wait(paid(15)).await }
    });
    link.wait().await;
    let began = Instant::now();
    let closing = spoke.close();
    let (drained, ()) = tokio::join!(closing, async { drop(link) });
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(drained.requests, 1);
    assert_eq!(waiting.await.unwrap().unwrap_err().code(), code::CLOSED);
}
