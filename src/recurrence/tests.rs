//! Nights on which clocks are set, against a look at every minute; and what becomes of missed times.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use proptest::prelude::*;

use super::*;
use crate::wire::Missed;

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn times(rule: &str, zone: &str) -> Times {
    Times::new(Rule::parse(rule, zone).unwrap(), 0, None, None)
}

fn due(times: &Times, from: &str, to: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut at = times.next(ms(from) - 1);
    while let Some(time) = at.filter(|time| *time <= ms(to)) {
        all.push(Timestamp::from_millisecond(time).unwrap().to_string());
        at = times.next(time);
    }
    all
}

/// Each zone's two nights of 2026, from noon to noon, in UTC.
const NIGHTS: [(&str, &str); 6] = [
    ("Europe/Berlin", "2026-03-28T12:00:00Z"),
    ("Europe/Berlin", "2026-10-24T12:00:00Z"),
    ("America/New_York", "2026-03-07T17:00:00Z"),
    ("America/New_York", "2026-10-31T17:00:00Z"),
    // By half an hour.
    ("Australia/Lord_Howe", "2026-10-03T02:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T02:00:00Z"),
];

#[test]
fn a_time_in_the_gap_is_due_at_the_first_instant_after_it() {
    for (rule, zone, night, expected) in [
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", vec!["2026-03-29T01:00:00Z"]),
        ("0 2 * * *", "Europe/Berlin", "2026-03-29", vec!["2026-03-29T01:00:00Z"]),
        // Several of one gap are one; the wall time that the jump leads to is the same instant.
        ("*/20 2 * * *", "Europe/Berlin", "2026-03-29", vec!["2026-03-29T01:00:00Z"]),
        ("30 2,3 * * *", "Europe/Berlin", "2026-03-29", vec!["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]),
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-29", vec!["2026-03-29T01:00:00Z"]),
        ("30 2 * * *", "America/New_York", "2026-03-08", vec!["2026-03-08T07:00:00Z"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03", vec!["2026-10-03T15:30:00Z"]),
    ] {
        let found = due(&times(rule, zone), &format!("{night}T00:00:00Z"), &format!("{night}T23:59:59Z"));
        assert_eq!(found, expected, "{rule} {zone}");
    }
    // A whole day that Samoa left out.
    let samoa = times("0 12 30 12 *", "Pacific/Apia");
    assert_eq!(due(&samoa, "2011-12-01T00:00:00Z", "2011-12-31T23:00:00Z"), ["2011-12-30T10:00:00Z"]);
}

#[test]
fn a_time_in_the_overlap_is_due_once_the_first_time() {
    for (rule, zone, night, expected) in [
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", vec!["2026-10-25T00:30:00Z"]),
        ("30 1 * * *", "America/New_York", "2026-11-01", vec!["2026-11-01T05:30:00Z"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04", vec!["2026-04-04T14:45:00Z"]),
    ] {
        let found = due(&times(rule, zone), &format!("{night}T00:00:00Z"), &format!("{night}T23:59:59Z"));
        assert_eq!(found, expected, "{rule} {zone}");
    }
    // Every ten minutes, with an hour of rest while clocks show it for the second time.
    let found = due(&times("*/10 * * * *", "Europe/Berlin"), "2026-10-25T00:40:00Z", "2026-10-25T02:10:00Z");
    let expected = ["00:40", "00:50", "02:00", "02:10"].map(|time| format!("2026-10-25T{time}:00Z"));
    assert_eq!(found, expected);
    // An interval knows no wall.
    let every = Times::new(
        Rule::parse("@every 30m", "Europe/Berlin").unwrap(),
        ms("2026-10-25T00:00:00Z"),
        None,
        None,
    );
    assert_eq!(due(&every, "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z").len(), 4);
}

/// What is due between two noons, found by looking at each wall minute of both days.
fn naive(minutes: &[i8], hours: &[i8], zone: &str, from: i64) -> Vec<i64> {
    let zone = TimeZone::get(zone).unwrap();
    let day = 86_400_000;
    // All instants at which clocks show something new, with what they show.
    let shown: Vec<(i64, DateTime)> = (from - day..from + 2 * day)
        .step_by(60_000)
        .map(|at| (at, zone.to_datetime(Timestamp::from_millisecond(at).unwrap())))
        .collect();
    let mut found = std::collections::BTreeSet::new();
    let mut wall = shown[0].1;
    while wall <= shown[shown.len() - 1].1 {
        if minutes.contains(&wall.minute()) && hours.contains(&wall.hour()) {
            // The first clock that shows it, or if none does, the first that shows more.
            let exact = shown.iter().find(|(_, at)| *at == wall);
            let instant = exact.or_else(|| shown.iter().find(|(_, at)| *at > wall));
            found.extend(instant.map(|(at, _)| *at).filter(|at| (from..from + day).contains(at)));
        }
        wall = wall.checked_add(jiff::SignedDuration::from_mins(1)).unwrap();
    }
    found.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_wall_minute_is_due_once_on_nights_on_which_clocks_are_set(
        minutes in prop::collection::btree_set(0_i8..60, 1..8),
        hours in prop::collection::btree_set(0_i8..5, 1..5),
        night in 0..NIGHTS.len(),
    ) {
        let (zone, noon) = NIGHTS[night];
        let list = |set: &std::collections::BTreeSet<i8>| {
            set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let rule = format!("{} {} * * *", list(&minutes), list(&hours));
        let from = ms(noon);
        let times = times(&rule, zone);
        let mut found = Vec::new();
        let mut at = times.next(from - 1);
        while let Some(time) = at.filter(|time| *time < from + 86_400_000) {
            found.push(time);
            at = times.next(time);
        }
        let (minutes, hours): (Vec<_>, Vec<_>) = (minutes.into_iter().collect(), hours.into_iter().collect());
        prop_assert_eq!(found, naive(&minutes, &hours, zone, from), "{} in {}", rule, zone);
    }

    /// Down for a while, once or several times, with the clock set back and forth: each time of the rule is run or left out
    /// or yet to come, none twice and none early.
    #[test]
    fn every_time_is_accounted_for_whatever_the_clock_does(
        steps in prop::collection::vec((-40_000_i64..200_000, 1_usize..8), 1..40),
        missed in prop_oneof![Just(Missed::Once), Just(Missed::All), Just(Missed::Skip)],
        window_ms in 1_000_i64..300_000,
        seconds in 1_i64..40,
    ) {
        let rule = Rule::parse(&format!("@every {seconds}s"), "UTC").unwrap();
        let times = Times::new(rule, 0, None, None);
        let policy = Policy { missed, window_ms };
        let (mut due, mut now, mut latest) = (times.next(0).unwrap(), 0_i64, 0_i64);
        let mut ran = std::collections::BTreeSet::new();
        let mut left_out = 0;
        for (step, room) in steps {
            now = (now + step).max(0);
            latest = latest.max(now);
            while let Some(plan) = plan(&times, policy, due, now, room) {
                prop_assert!(plan.runs.len() <= room.max(1));
                for run in &plan.runs {
                    prop_assert!(*run <= now && *run >= due, "early");
                    prop_assert!(ran.insert(*run), "twice");
                    prop_assert_eq!(run % (seconds * 1_000), 0);
                }
                if missed == Missed::All {
                    let oldest = (now - window_ms).min(now - GRACE_MS);
                    prop_assert!(plan.runs.iter().all(|run| *run >= oldest));
                }
                left_out += plan.left_out;
                let next = plan.next.unwrap();
                prop_assert!(next > due, "it goes on");
                due = next;
            }
            prop_assert!(due > now);
        }
        let passed = u64::try_from((due - 1) / (seconds * 1_000)).unwrap();
        prop_assert_eq!(ran.len() as u64 + left_out, passed, "all are accounted for");
    }
}

#[test]
fn missed_times_run_by_their_policy() {
    let every = Times::new(Rule::parse("@every 1m", "UTC").unwrap(), 0, None, None);
    let minute = 60_000;
    let at = |missed, window, due: i64, now: i64, room| {
        plan(&every, Policy { missed, window_ms: window * minute }, due * minute, now, room)
    };
    // An hour is missed; it is half a minute past.
    let now = 61 * minute - 30_000;
    let once = at(Missed::Once, 60, 1, now, 9).unwrap();
    assert_eq!(once, Plan { runs: vec![60 * minute], late: 1, left_out: 59, next: Some(61 * minute) });
    let skip = at(Missed::Skip, 60, 1, now, 9).unwrap();
    assert_eq!(skip, Plan { runs: vec![], late: 0, left_out: 60, next: Some(61 * minute) });
    let all = at(Missed::All, 10, 1, now, 4).unwrap();
    let runs: Vec<_> = (51..=54).map(|at| at * minute).collect();
    assert_eq!(all, Plan { runs, late: 4, left_out: 50, next: Some(55 * minute) });
    // One that is just over isn't missed, whatever the policy.
    for missed in [Missed::Once, Missed::All, Missed::Skip] {
        let plan = at(missed, 60, 60, 60 * minute + 10_000, 1).unwrap();
        assert_eq!(plan, Plan { runs: vec![60 * minute], late: 0, left_out: 0, next: Some(61 * minute) });
        assert_eq!(at(missed, 60, 60, 60 * minute - 1, 1), None, "not early");
    }
    let skip = at(Missed::Skip, 60, 1, 60 * minute + 500, 9).unwrap();
    assert_eq!(
        (skip.runs.len(), skip.left_out, skip.next),
        (0, 59, Some(60 * minute)),
        "the last one isn't missed"
    );
}

#[test]
fn what_is_hardly_late_runs_whatever_becomes_of_what_was_missed() {
    let every = Times::new(Rule::parse("@every 4s", "UTC").unwrap(), 0, None, None);
    // Away for a minute: 48 s was missed, 52 s to 60 s are late by less than ten seconds.
    let (mut ran, now) = (Vec::new(), 61_000);
    for missed in [Missed::Once, Missed::Skip, Missed::All] {
        let (mut due, mut runs, mut late, mut left_out) = (4_000, Vec::new(), 0, 0);
        while let Some(plan) = plan(&every, Policy { missed, window_ms: 5_000 }, due, now, 9) {
            runs.extend(plan.runs);
            (due, late, left_out) = (plan.next.unwrap(), late + plan.late, left_out + plan.left_out);
        }
        assert_eq!(due, 64_000);
        ran.push((runs, late, left_out));
    }
    let recent = vec![52_000, 56_000, 60_000];
    let once: Vec<_> = std::iter::once(48_000).chain(recent.clone()).collect();
    // A window shorter than what counts as missed leaves out no more than that.
    assert_eq!(ran, [(once, 1, 11), (recent.clone(), 0, 12), (recent, 0, 12)]);
}

#[test]
fn of_too_many_the_newest_run_and_the_rest_is_counted() {
    let every = Times::new(Rule::parse("@every 1s", "UTC").unwrap(), 0, None, None);
    let policy = Policy { missed: Missed::All, window_ms: 86_400_000 };
    let now = 5_000_000;
    let found = plan(&every, policy, 1_000, now, CATCH_UP).unwrap();
    assert_eq!((found.runs.len(), found.left_out), (1_000, 4_000));
    assert_eq!((found.runs[0], found.next), (4_001_000, Some(5_001_000)));
    // Ten years by the second cost no more than they must.
    let began = std::time::Instant::now();
    let found = plan(&every, policy, 1_000, 315_360_000_000, 16).unwrap();
    assert_eq!((found.runs.len(), found.left_out), (16, COUNTED));
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_schedule_has_a_start_and_an_end() {
    let rule = || Rule::parse("@every 10s", "UTC").unwrap();
    let bounded = Times::new(rule(), 0, Some(25_000), Some(45_000));
    assert_eq!(
        (bounded.next(0), bounded.next(25_000), bounded.next(45_000)),
        (Some(25_000), Some(35_000), None)
    );
    let made = Times::new(rule(), 3_000, None, None);
    assert_eq!(made.next(3_000), Some(13_000));
    let hourly = Times::new(Rule::parse("@hourly", "UTC").unwrap(), 0, Some(3_600_000), Some(7_200_000));
    assert_eq!(
        (hourly.next(0), hourly.next(3_600_000), hourly.next(7_200_000)),
        (Some(3_600_000), Some(7_200_000), None)
    );
    assert!(matches!(hourly.first(7_200_000, "@hourly"), Err(RuleError::Never { .. })));
}

#[test]
fn rules_that_are_none_are_refused() {
    for (rule, zone, code) in [
        ("@fortnightly", "UTC", "E_EVENTFLOW_INVALID_RULE"),
        ("@every", "UTC", "E_EVENTFLOW_INVALID_RULE"),
        ("@every 999ms", "UTC", "E_EVENTFLOW_INVALID_RULE"),
        ("0 0 30 2 *", "UTC", "E_EVENTFLOW_INVALID_RULE"),
        (&"1,".repeat(200), "UTC", "E_EVENTFLOW_INVALID_RULE"),
        ("@daily", "Europe/Berlinn", "E_EVENTFLOW_INVALID_ZONE"),
    ] {
        let error = Rule::parse(rule, zone).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().len() < 500, "{error}");
    }
    for word in ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@DAILY", " @daily "] {
        assert!(Rule::parse(word, "UTC").is_ok(), "{word}");
    }
}
