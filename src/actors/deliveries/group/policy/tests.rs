use super::*;

#[test]
fn waits_double_up_to_their_cap_and_are_spread_by_a_fifth() {
    let policy = Policy::default();
    let middle: Vec<i64> = (1..12).map(|failed| policy.back_off(failed, 0.5)).collect();
    assert_eq!(
        middle,
        [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]
    );
    assert_eq!((policy.back_off(1, 0.0), policy.back_off(1, 1.0)), (800, 1_200));
    assert_eq!((policy.back_off(99, 0.0), policy.back_off(u32::MAX, 1.0)), (240_000, 360_000));
    assert_eq!(policy.back_off(0, 0.5), 1_000);
}

#[test]
fn even_the_longest_settings_wait_no_longer_than_anybody_may() {
    let policy = Policy { delay: Duration::MAX, max_delay: Duration::MAX, ..Policy::default() };
    assert_eq!(policy.back_off(u32::MAX, 0.5), 30 * 24 * 3_600 * 1_000);
}

#[test]
fn a_change_leaves_what_it_does_not_name() {
    let mut policy = Policy::default();
    let change = GroupSettings {
        max_attempts: Some(8),
        delay: Some(50),
        dead_letter: Some("failures".to_owned()),
        ..GroupSettings::default()
    };
    policy.change(&change);
    assert_eq!((policy.max_attempts, policy.delay), (8, Duration::from_millis(50)));
    assert_eq!(policy.max_delay, Duration::from_secs(300));
    assert_eq!(policy.settings().dead_letter.as_deref(), Some("failures"));
    let mut same = Policy::default();
    same.change(&policy.settings());
    assert_eq!(same, policy);
    policy.change(&GroupSettings { dead_letter: Some(String::new()), ..GroupSettings::default() });
    assert_eq!(policy.dead_letter, None);
}
