use super::*;

fn wall(text: &str) -> DateTime {
    text.parse().unwrap()
}

/// The next times from 2026-01-01 on.
fn times(rule: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(rule).unwrap();
    let mut from = wall("2026-01-01T00:00:00");
    let mut times = Vec::new();
    for _ in 0..count {
        let next = cron.next(from).unwrap();
        times.push(next.to_string());
        from = next.checked_add(1.second()).unwrap();
    }
    times
}

#[test]
fn fields_say_when() {
    for (rule, expected) in [
        ("* * * * *", ["2026-01-01T00:00:00", "2026-01-01T00:01:00", "2026-01-01T00:02:00"]),
        ("*/20 * * * * *", ["2026-01-01T00:00:00", "2026-01-01T00:00:20", "2026-01-01T00:00:40"]),
        ("30 8 * * MON-FRI", ["2026-01-01T08:30:00", "2026-01-02T08:30:00", "2026-01-05T08:30:00"]),
        ("0 0 12 1 1,jul *", ["2026-01-01T12:00:00", "2026-07-01T12:00:00", "2027-01-01T12:00:00"]),
        ("15/20 23 * * *", ["2026-01-01T23:15:00", "2026-01-01T23:35:00", "2026-01-01T23:55:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00:00", "2032-02-29T00:00:00", "2036-02-29T00:00:00"]),
        ("0 0 13 * FRI", ["2026-01-02T00:00:00", "2026-01-09T00:00:00", "2026-01-13T00:00:00"]),
        ("0 0 */2 * SUN", ["2026-01-11T00:00:00", "2026-01-25T00:00:00", "2026-02-01T00:00:00"]),
        ("0 0 * * 7", ["2026-01-04T00:00:00", "2026-01-11T00:00:00", "2026-01-18T00:00:00"]),
        ("0 0 * * SAT-SUN", ["2026-01-03T00:00:00", "2026-01-04T00:00:00", "2026-01-10T00:00:00"]),
        ("59 59 23 31 12 *", ["2026-12-31T23:59:59", "2027-12-31T23:59:59", "2028-12-31T23:59:59"]),
    ] {
        assert_eq!(times(rule, 3), expected, "{rule}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (rule, field, position, text) in [
        ("60 * * * *", "minute", 1, "60"),
        ("0 24 * * *", "hour", 3, "24"),
        ("0 0 0 * *", "day of month", 5, "0"),
        ("0 0  1,2,32 * *", "day of month", 10, "32"),
        ("0 0 1 JANUARY *", "month", 7, "JANUARY"),
        ("0 0 * * MON-FOO", "day of week", 9, "MON-FOO"),
        ("0 0 * * 5-1", "day of week", 9, "5-1"),
        ("*/0 * * * *", "minute", 1, "*/0"),
        ("a * * * * *", "second", 1, "a"),
        ("0 0 L * *", "day of month", 5, "L"),
        ("0 0 , * *", "day of month", 5, ""),
        ("0 0 é * *", "day of month", 5, "é"),
    ] {
        match Cron::parse(rule).unwrap_err() {
            RuleError::Field { field: found, position: at, text: part, .. } => {
                assert_eq!((found, at, part.as_str()), (field, position, text), "{rule}");
            }
            other => panic!("{rule}: {other}"),
        }
    }
    for (rule, fields) in [("", 0), ("* * * *", 4), ("* * * * * * *", 7)] {
        assert!(
            matches!(Cron::parse(rule), Err(RuleError::Fields { count, .. }) if count == fields),
            "{rule}"
        );
    }
    let words = Cron::parse("0 25 * * *").unwrap_err().to_string();
    assert!(
        words.starts_with("in the rule \"0 25 * * *\" the hour \"25\" at character 3 is none: give 0 to 23"),
        "{words}"
    );
}

#[test]
fn days_that_never_come_are_refused() {
    for rule in ["0 0 30 2 *", "0 0 31 4,6,9,11 *"] {
        assert!(matches!(Cron::parse(rule), Err(RuleError::Never { .. })), "{rule}");
    }
    // A weekday is enough, where both are given.
    assert!(Cron::parse("0 0 30 2 MON").is_ok());
    // The leap day on a Sunday comes every 28 years.
    assert!(Cron::parse("0 0 29 2 */7").is_ok());
}

#[test]
fn the_calendar_ends() {
    let cron = Cron::parse("0 0 1 1 *").unwrap();
    assert_eq!(cron.next(wall("9999-06-01T00:00:00")), None);
}

#[test]
fn it_agrees_with_a_look_at_every_second() {
    let field = |random: &mut fastrand::Rng, low: u32, high: u32| match random.u8(0..4) {
        0 => "*".to_owned(),
        1 => format!("*/{}", random.u32(1..=high)),
        2 => random.u32(low..=high).to_string(),
        _ => {
            let from = random.u32(low..=high);
            format!("{from}-{},{}", random.u32(from..=high), random.u32(low..=high))
        }
    };
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let rule = format!(
            "{} {} {} * * *",
            field(&mut random, 0, 59),
            field(&mut random, 0, 59),
            field(&mut random, 0, 23)
        );
        let cron = Cron::parse(&rule).unwrap();
        let matches = |at: DateTime| {
            has(cron.seconds, at.second()) && has(cron.minutes, at.minute()) && has(cron.hours, at.hour())
        };
        let from =
            wall("2026-01-01T00:00:00").checked_add(i64::from(random.u32(0..86_400)).seconds()).unwrap();
        let next = cron.next(from).unwrap();
        let mut naive = from;
        while !matches(naive) {
            naive = naive.checked_add(1.second()).unwrap();
        }
        assert_eq!(next, naive, "{rule} from {from}");
    }
}
