//! Promise: how much the log tells is changed while the hub runs, and each line says whom it is about.

use std::{path::Path, process::Command};

use eventflow::spoke::Publish;
use serde_json::Value;

use crate::support::{
    TestHub,
    http::{Answer, send},
    process::Home,
    until,
};

/// Runs `eventflow hub log-level` on a hub's data folder; exit code, standard output and standard error.
fn log_level(data: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eventflow"));
    command.args(["hub", "log-level"]).args(arguments).env_clear().env("EVENTFLOW_DATA", data);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The entries of a JSON log that say this.
fn entries(home: &Home, message: &str) -> Vec<Value> {
    let words = home.words();
    let entries = words.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.filter(|entry| entry["message"] == message).collect()
}

#[tokio::test]
async fn the_level_changes_while_the_hub_runs() {
    let home = Home::new();
    let mut hub = home.start().await;
    assert_eq!(log_level(&home.data(), &[]).1, "{\"filter\":\"warn\"}\n");
    home.spoke().await.close().await;
    assert!(!home.words().contains("hello"), "{}", home.words());

    let (exit, stdout, stderr) = log_level(&home.data(), &["debug"]);
    assert_eq!((exit, stdout.as_str()), (Some(0), "{\"filter\":\"debug\"}\n"), "{stderr}");
    home.spoke().await.close().await;
    until("a line of the new level", || async { home.words().contains("hello") }).await;

    for wrong in ["loud", "eventflow=loud", "debug,loud"] {
        let (exit, stdout, stderr) = log_level(&home.data(), &[wrong]);
        assert_eq!((exit, stdout.as_str()), (Some(1), ""), "{wrong}: {stderr}");
        assert!(stderr.contains("is no log level") && stderr.contains("eventflow=debug,warn"), "{stderr}");
        assert_eq!(log_level(&home.data(), &[]).1, "{\"filter\":\"debug\"}\n", "the old one stays");
    }
    let before = home.words().matches("hello").count();
    log_level(&home.data(), &["eventflow=info,warn"]);
    home.spoke().await.close().await;
    assert_eq!(home.words().matches("hello").count(), before, "{}", home.words());
    hub.signal("TERM");
    assert!(hub.ended().await.success());
}

#[tokio::test]
async fn each_line_says_whom_it_is_about() {
    let home = Home::new();
    let mut hub = home.spawn(&[], &["--log-level=trace", "--log-format=json"]);
    hub.ready().await;
    let spoke = home.spoke().await;
    spoke.publish(Publish::new("orders", "created", "order-1").id("e1")).await.unwrap();
    until("the lines are there", || async {
        !entries(&home, "hello").is_empty() && !entries(&home, "committed").is_empty()
    })
    .await;
    let id = std::fs::read_to_string(home.data().join("hub-id")).unwrap();

    let hello = &entries(&home, "hello")[0];
    let spans = hello["spans"].as_array().unwrap();
    assert_eq!((&spans[0]["name"], &spans[0]["hub.id"]), (&"hub".into(), &id.trim().into()), "{hello}");
    assert_eq!((&spans[1]["name"], &spans[1]["conn.id"]), (&"link".into(), &"1".into()), "{hello}");
    assert!(spans[1]["spoke.id"].as_str().unwrap().ends_with(".EVENTFLOW-SPOKE"), "{hello}");
    let committed = &entries(&home, "committed")[0];
    assert_eq!(
        (&committed["event.id"], &committed["domain"]),
        (&"e1".into(), &"orders".into()),
        "{committed}"
    );
    assert_eq!(committed["span"]["hub.id"], id.trim(), "the parts of the hub name it too: {committed}");
    spoke.close().await;
    hub.signal("TERM");
    assert!(hub.ended().await.success());
}

#[tokio::test]
async fn a_host_that_keeps_its_log_to_itself_says_so() {
    let hub = TestHub::start().await;
    for (method, body) in [("GET", ""), ("PUT", "{\"level\":\"debug\"}")] {
        let Answer { status, body } = send(&hub, method, "/log", body).await;
        assert_eq!(status, 501, "{body}");
        assert!(
            body.contains("E_EVENTFLOW_UNSUPPORTED") && body.contains("keeps its log to itself"),
            "{body}"
        );
    }
    hub.stop().await;
}
