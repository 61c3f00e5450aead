//! The state of a log, page by page.

use serde_json::json;

use super::*;
use crate::spoke::StateError;

/// Serves a log of these data, one event a page, as often as it is asked for.
async fn serve(mut link: FakeLink, log: &[&str]) {
    while let Some(Request::Log { req, page, .. }) = link.next().await {
        let at: usize = page.parse().unwrap_or(0);
        if let Some(data) = log.get(at) {
            let event = Event { data: Data::from_stored((*data).to_owned()), ..event(&format!("e{at}")) };
            link.send(Reply::Item { req, event }).await;
        }
        let next = if at + 1 < log.len() { (at + 1).to_string() } else { String::new() };
        link.ok(req, Answer::Page(next)).await;
    }
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Order {
    total: u32,
    tags: Vec<String>,
}

#[tokio::test(start_paused = true)]
async fn a_state_is_composed_page_by_page_and_read_into_a_type() {
    let mut hub = FakeHub::new();
    let (spoke, link) = hub.connected(config(), limits()).await;
    tokio::spawn(serve(link, &[r#"{"total":1,"tags":["a"]}"#, "null", r#"{"total":2,"tags":["a","b"]}"#]));
    assert_eq!(spoke.state("orders", "1").await.unwrap(), json!({ "total": 2, "tags": ["a", "b"] }));
    let order: Order = spoke.state_as("orders", "1").await.unwrap();
    assert_eq!(order, Order { total: 2, tags: vec!["a".to_owned(), "b".to_owned()] });
    let error = spoke.state_as::<Vec<u32>>("orders", "1").await.unwrap_err();
    assert!(matches!(error, StateError::Shape(_)), "{error}");
    assert_eq!((error.code(), error.is_retryable()), (code::INVALID_DATA, false));
}

#[tokio::test(start_paused = true)]
async fn the_state_of_an_empty_log_is_an_empty_object() {
    let mut hub = FakeHub::new();
    let (spoke, link) = hub.connected(config(), limits()).await;
    tokio::spawn(serve(link, &[]));
    assert_eq!(spoke.state("orders", "1").await.unwrap(), json!({}));
    assert_eq!(spoke.state("orders", "").await.unwrap_err().code(), code::INVALID_PID);
}
