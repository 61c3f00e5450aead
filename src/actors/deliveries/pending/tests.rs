use super::*;

/// A count of what is up to 100, of which nothing is read yet.
fn counting() -> Pending {
    let mut pending = Pending::default();
    assert_eq!(pending.begin(Some(0), 100), Some(MarksWanted { after: 0, until: 100 }));
    pending
}

#[test]
fn where_nothing_is_wanted_or_everything_settled_nothing_is_read() {
    for floor in [None, Some(9)] {
        let mut pending = Pending::default();
        assert_eq!(pending.count(), None, "not known yet");
        assert_eq!(pending.begin(floor, 9), None);
        assert_eq!(pending.count(), Some(0));
        pending.came(10);
        pending.came(11);
        pending.went(10);
        assert_eq!(pending.count(), Some(1));
        assert_eq!(pending.begin(Some(0), 11), None, "nobody doubts it");
    }
}

#[test]
fn what_happens_while_pages_are_read_is_counted_once() {
    let mut pending = counting();
    // Before its page: 30 is taken and comes back, 40 is taken, 101 is new.
    pending.went(30);
    pending.went(40);
    pending.came(30);
    pending.came(101);
    // 20 was taken before the count, and ends while the page is read, which shows it.
    pending.ended(20);
    assert_eq!(pending.page([20, 30].into_iter(), Some(50)), Some(MarksWanted { after: 50, until: 100 }));
    assert_eq!(pending.count(), None);
    // Behind it: 30 is taken, 40 comes back. Ahead of it: 60 is taken.
    pending.went(30);
    pending.came(40);
    pending.went(60);
    assert_eq!(pending.page([70, 80].into_iter(), None), None);
    assert_eq!(pending.count(), Some(4), "40, 70, 80 and 101");
    pending.came(60);
    assert_eq!(pending.count(), Some(5));
}

#[test]
fn until_a_count_is_done_the_last_number_is_told_and_kept() {
    let mut pending = counting();
    pending.page([1, 2].into_iter(), None);
    pending.doubt();
    assert!(pending.begin(Some(0), 100).is_some());
    pending.doubt();
    assert_eq!(pending.begin(Some(0), 100), None, "one at a time");
    pending.went(1);
    assert_eq!(pending.count(), Some(1));
    pending.failed();
    assert_eq!(pending.count(), Some(1));
    assert!(pending.begin(Some(0), 100).is_some(), "it is tried again");
    for _ in 0..3 {
        pending.went(2);
    }
    assert_eq!(pending.count(), Some(0), "never below nothing");
    pending.page([2, 3, 4].into_iter(), None);
    assert_eq!(pending.count(), Some(3));
}

#[test]
fn small_doubts_wait_and_those_about_npm_spokes_come_again() {
    let mut pending = counting();
    pending.page([].into_iter(), None);
    pending.refresh();
    assert_eq!(pending.begin(Some(0), 100), None, "no reason to");
    pending.be_unsure();
    assert_eq!(pending.begin(Some(0), 100), None);
    pending.refresh();
    assert!(pending.begin(Some(0), 100).is_some());
    pending.page([].into_iter(), None);
    pending.share();
    for _ in 0..2 {
        pending.refresh();
        assert!(pending.begin(Some(0), 100).is_some());
        pending.page([].into_iter(), None);
    }
}

#[test]
fn a_count_that_more_ends_than_it_can_remember_begins_anew() {
    let mut pending = Pending::default();
    pending.begin(Some(0), u64::MAX);
    (1..=MOST_ENDED as u64 + 1).for_each(|seq| pending.ended(seq));
    assert_eq!(pending.page([1].into_iter(), None), None);
    assert_eq!(pending.count(), None);
    assert!(pending.begin(Some(0), u64::MAX).is_some());
}
