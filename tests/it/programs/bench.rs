//! `eventflow bench`: every run verifies its counts, and programs can read what it found.

use serde_json::Value;

use super::*;

/// What a run tells, one JSON object a line.
fn findings(command: Command) -> Vec<Value> {
    let (stdout, _) = run(command, 0);
    stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// What must be true of each: it is named, every count is what it must be, times rise with their part of all.
fn assert_sound(finding: &Value, bench: &str) {
    assert_eq!(finding["bench"], bench, "{finding}");
    assert_eq!(finding["ok"], true, "{finding}");
    assert!(finding["per_second"].as_f64().unwrap() > 0.0, "{finding}");
    assert!(!finding["machine"].as_str().unwrap().is_empty(), "{finding}");
    let counts = finding["counts"].as_array().unwrap();
    assert!(!counts.is_empty(), "{finding}");
    for count in counts {
        assert_eq!(count["expected"], count["found"], "{finding}");
    }
    for (_, times) in finding["latency_ms"].as_object().unwrap() {
        let [p50, p99, max] = ["p50", "p99", "max"].map(|part| times[part].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= p99 && p99 <= max, "{finding}");
    }
}

/// The number of a count.
fn count(finding: &Value, what: &str) -> u64 {
    let counts = finding["counts"].as_array().unwrap();
    let count =
        counts.iter().find(|count| count["what"] == what).unwrap_or_else(|| panic!("{what}: {finding}"));
    count["found"].as_u64().unwrap()
}

#[test]
fn each_bench_counts_what_it_measures() {
    let hub = Started::new();
    let bench = |line: &str| {
        let words: Vec<_> = ["bench"].into_iter().chain(line.split_whitespace()).collect();
        findings(hub.client(&words))
    };
    let published = bench("publish --events 300 --clients 3 --window 8 --bytes 64");
    assert_sound(&published[0], "publish");
    assert_eq!(count(&published[0], "acknowledged"), 300);
    assert_eq!(count(&published[0], "stored"), 300);

    let consumed = bench("consume --events 300 --rounds 2");
    for finding in &consumed[..2] {
        assert_sound(finding, "consume");
        assert_eq!(count(finding, "handled"), 300);
        assert_eq!(count(finding, "outcomes recorded"), 300);
    }
    assert_eq!((&consumed[2]["rounds"], &consumed[2]["ok"]), (&Value::from(2), &Value::from(true)));
    assert!(consumed[2]["median_per_second"].as_f64().unwrap() > 0.0);

    let spread = bench("fanout --subscribers 4 --events 50");
    assert_sound(&spread[0], "fanout");
    assert_eq!(count(&spread[0], "delivered"), 200);

    let timed = bench("latency --rate 100 --rate 200 --duration 500ms");
    let counts: Vec<_> = timed.iter().map(|finding| count(finding, "handled")).collect();
    assert_eq!(counts, [50, 100]);
    timed.iter().for_each(|finding| assert_sound(finding, "latency"));
    assert!(timed[0]["latency_ms"]["publish to handler"].is_object(), "{}", timed[0]);

    let stormed = bench("storm --clients 12 --at-once 4");
    assert_sound(&stormed[0], "storm");
    assert_eq!(count(&stormed[0], "connected"), 12);

    // Whose memory is to be measured must be known.
    let (_, stderr) = run(hub.client(&["bench", "idle"]), 2);
    assert!(stderr.contains("--embedded") && stderr.contains("--hub-pid"), "{stderr}");
}

#[test]
fn a_bench_brings_its_own_hub_and_takes_it_away() {
    let folder = tempfile::tempdir().unwrap();
    let (svg, page) = (folder.path().join("chart.svg"), folder.path().join("page.md"));
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let bench = |line: &str| {
        let mut command =
            client(Path::new("/nowhere"), &["bench", "--embedded", "--hub-flag=--store-durability=relaxed"]);
        command.args(line.split_whitespace()).env("TMPDIR", &temporary);
        command
    };
    let mut idle = bench("idle --clients 20 --claims 30");
    idle.arg("--svg").arg(&svg).arg("--markdown").arg(&page);
    let idle = findings(idle);
    assert_eq!(idle.len(), 3, "connections, subscriptions, claims");
    for finding in &idle {
        assert_sound(finding, "idle");
        assert!(finding["figures"]["hub MiB"].as_f64().unwrap() > 1.0, "{finding}");
    }
    let soaked = findings(bench("soak --duration 2s --rate 100"));
    assert_sound(&soaked[0], "soak");
    assert_eq!(count(&soaked[0], "outcomes recorded"), 200);
    assert!(soaked[0]["courses"][0]["points"].as_array().unwrap().len() > 20, "{}", soaked[0]);

    assert!(std::fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("| idle | 20 x connection | 20 |"), "{page}");
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
