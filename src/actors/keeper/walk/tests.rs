use super::*;
use crate::{
    event::{EventId, Kept},
    store::KeepMark,
};

const MINUTE: i64 = 60_000;

fn row(number: i64, fate: Fate) -> Looked {
    let id = EventId::parse(format!("e{number:03}")).unwrap();
    Looked { mark: KeepMark::at(number, id.clone()), id, seq: None, fate }
}

fn mark(number: i64) -> Option<KeepMark> {
    Some(row(number, Fate::Stays).mark)
}

fn walk() -> Walk {
    Walk::new(Duration::from_secs(60))
}

#[test]
fn a_pass_goes_on_where_the_last_one_ended() {
    let mut walk = walk();
    assert_eq!(walk.begin("orders", 0), None);
    let rows: Vec<_> = (1..=3).map(|number| row(number, Fate::Goes(Kept::Success))).collect();
    walk.looked("orders", None, &rows, |_| true, 0);
    for now in [0, MINUTE, 100 * DAY] {
        assert_eq!(walk.begin("orders", now), mark(3), "all of it has gone: nothing is looked at again");
    }
}

#[test]
fn what_is_due_later_is_looked_at_again_then() {
    let mut walk = walk();
    let rows =
        [row(1, Fate::Goes(Kept::Success)), row(2, Fate::Due(10 * MINUTE)), row(3, Fate::Due(5 * MINUTE))];
    walk.looked("orders", None, &rows, |row| row.id.as_str() == "e001", 0);
    assert_eq!(walk.begin("orders", 5 * MINUTE - 1), mark(3));
    assert_eq!(walk.begin("orders", 5 * MINUTE), mark(1), "from the first of them on");
}

#[test]
fn what_waits_is_looked_at_less_and_less_often() {
    let mut walk = walk();
    let (mut now, mut times) = (0, Vec::new());
    let mut from = walk.begin("orders", now);
    for _ in 0..10 {
        walk.looked("orders", from, &[row(1, Fate::Waits), row(2, Fate::Stays)], |_| false, now);
        let began = now;
        while walk.begin("orders", now) == mark(2) {
            now += MINUTE / 2;
        }
        times.push((now - began) / MINUTE);
        from = None;
    }
    assert_eq!(times, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    // As soon as something goes it is as at first.
    walk.looked(
        "orders",
        None,
        &[row(1, Fate::Goes(Kept::Dead)), row(2, Fate::Waits)],
        |row| row.id.as_str() == "e001",
        now,
    );
    assert_eq!(walk.begin("orders", now + MINUTE), mark(1));
}

#[test]
fn what_stays_for_ever_is_looked_at_once_a_day() {
    let mut walk = walk();
    walk.looked("orders", None, &[row(1, Fate::Stays)], |_| false, 0);
    assert_eq!(walk.begin("orders", DAY - 1), mark(1));
    assert_eq!(walk.begin("orders", DAY), None);
}

#[test]
fn what_is_open_is_looked_at_again_at_its_time_or_before() {
    let mut walk = walk();
    let at = MINUTE + MINUTE / 2;
    walk.looked("orders", None, &[row(1, Fate::Open(Some(at)))], |_| false, 0);
    assert_eq!(walk.begin("orders", MINUTE), None, "it may have got its end");
    walk.looked("orders", None, &[row(1, Fate::Open(Some(at)))], |_| false, MINUTE);
    assert_eq!(walk.begin("orders", at - 1), mark(1));
    assert_eq!(walk.begin("orders", at), None);
}

#[test]
fn what_has_expired_is_looked_at_again_soon() {
    let mut walk = walk();
    walk.looked("orders", None, &[row(1, Fate::Expires)], |_| true, 0);
    assert_eq!(walk.begin("orders", MINUTE), None);
}

#[test]
fn places_are_few_and_those_of_domains_that_are_gone_are_forgotten() {
    let mut walk = walk();
    for number in 0..MOST_DOMAINS + 5 {
        walk.looked(&format!("d{number:05}"), None, &[row(1, Fate::Goes(Kept::Dead))], |_| true, 0);
    }
    assert_eq!(walk.domains(), MOST_DOMAINS);
    walk.only(Some("d00003"), Some("d00010"));
    assert_eq!(walk.domains(), MOST_DOMAINS - 6);
    assert_eq!(walk.begin("d00003", 0), mark(1));
    assert_eq!(walk.begin("d00004", 0), None);
    walk.only(None, None);
    assert_eq!(walk.domains(), 0);
}
