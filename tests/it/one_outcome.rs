//! Promise: one outcome per event, recorded once; who comes late is refused.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use eventflow::spoke::{Consume, Publish};

use crate::support::{TestHub, until};

#[tokio::test]
async fn each_event_is_handled_by_one_of_two_consumers() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let handled = Arc::new(AtomicUsize::new(0));
    let mut consumers = Vec::new();
    for _ in 0..2 {
        let handled = handled.clone();
        let handler = move |_event| {
            handled.fetch_add(1, Ordering::Relaxed);
            async { Ok::<(), String>(()) }
        };
        consumers.push(spoke.consume(Consume::new("orders", "*"), handler).await.unwrap());
    }
    for n in 0..200 {
        let publish = Publish::new("orders", "created", format!("order-{n}"));
        spoke.publish(publish.data(&n).unwrap()).await.unwrap();
    }
    until("200 outcomes", || async { hub.handle.metrics().hub.outcomes.get("success") == Some(&200) }).await;
    assert_eq!(handled.load(Ordering::Relaxed), 200);
    spoke.close().await;
    hub.stop().await;
}
