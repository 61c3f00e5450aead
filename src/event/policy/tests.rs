use proptest::prelude::*;

use super::*;

const DAY: i64 = 24 * 60 * 60 * 1_000;
const NOW: i64 = 1_796_030_712_007;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text.to_owned()).unwrap()
}

fn hours(hours: u64) -> Keep {
    Keep::For(Duration::from_secs(hours * 3_600))
}

fn orphans(keep: Keep) -> Policy {
    Policy { orphan_keep: keep, ..Policy::default() }
}

#[test]
fn the_first_entry_that_matches_holds() {
    let policies = Policies::new(
        vec![
            (pattern("orders.vip"), orphans(Keep::Forever)),
            (pattern("orders.>"), orphans(hours(1))),
            (pattern("orders.vip"), orphans(hours(2))),
        ],
        Policy::default(),
    );
    assert_eq!(policies.of("orders.vip").orphan_keep, Keep::Forever);
    assert_eq!(policies.of("orders.eu").orphan_keep, hours(1));
    assert_eq!(policies.of("orders").orphan_keep, hours(24), "`orders.>` isn't `orders`");
    assert_eq!(policies.find("orders.eu").0, Some(1));
    assert_eq!(policies.find("users").0, None);
    assert!(policies.keeps_all());
}

#[test]
fn what_is_kept_for_ever_is_kept_longest() {
    assert!(hours(1) < hours(2) && hours(1_000_000) < Keep::Forever);
    assert_eq!(hours(1).min(Keep::Forever), hours(1));
    assert_eq!(Policy::default().least(), Keep::Forever);
    let policy = Policy { keep_dead: hours(3), expire_after: hours(5), ..Policy::default() };
    assert_eq!(policy.least(), hours(3));
}

#[test]
fn a_binding_within_one_policy_has_one_start() {
    let policies = Policies::new(
        vec![(pattern("orders.>"), orphans(hours(1))), (pattern("logs"), orphans(Keep::Forever))],
        Policy::default(),
    );
    let start = policies.start(&pattern("orders.eu.>"), NOW);
    assert_eq!(start, Start { seq: (NOW as u64 - 3_600_000) * 1_000, domains: Vec::new() });
    assert_eq!(policies.start(&pattern("logs"), NOW), Start { seq: 0, domains: Vec::new() });
    let start = policies.start(&pattern("users"), NOW);
    assert_eq!(start, Start { seq: (NOW - DAY) as u64 * 1_000, domains: Vec::new() });
}

#[test]
fn a_binding_across_policies_starts_at_the_earliest_and_knows_the_others() {
    let policies = Policies::new(
        vec![(pattern("orders.>"), orphans(hours(1))), (pattern("logs"), orphans(Keep::Forever))],
        Policy::default(),
    );
    let Start { seq, domains } = policies.start(&Pattern::any(), NOW);
    assert_eq!((seq, domains.len()), (0, 3));
    let of = |hours: i64| (NOW - hours * 3_600_000) as u64 * 1_000;
    for (domain, first) in [("orders.eu", of(1)), ("logs", 0), ("users", of(24)), ("orders", of(24))] {
        assert!(has_started(&domains, domain, first), "{domain}");
        assert!(first == 0 || !has_started(&domains, domain, first - 1), "{domain}");
    }
}

fn a_pattern() -> impl Strategy<Value = Pattern> {
    let segment = prop_oneof![Just("a"), Just("b"), Just("c"), Just("*")];
    (prop::collection::vec(segment, 1..4), any::<bool>()).prop_map(|(mut segments, rest)| {
        if rest {
            segments.push(">");
        }
        pattern(&segments.join("."))
    })
}

/// A binding, and a domain that it wants.
fn a_wish() -> impl Strategy<Value = (Pattern, String)> {
    (a_pattern(), a_domain()).prop_map(|(pattern, text)| {
        let mut given = text.split('.').cycle();
        let domain: Vec<&str> = pattern
            .as_str()
            .split('.')
            .map(|segment| match given.next() {
                Some(given) if matches!(segment, "*" | ">") => given,
                _ => segment,
            })
            .collect();
        let domain = domain.join(".");
        (pattern, domain)
    })
}

fn a_domain() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just("a"), Just("b"), Just("c"), Just("d")], 1..5)
        .prop_map(|segments| segments.join("."))
}

proptest! {
    #[test]
    fn patterns_that_have_a_text_in_common_overlap(one in a_pattern(), other in a_pattern(), text in a_domain()) {
        let both = one.matches(&text) && other.matches(&text);
        prop_assert!(!both || one.overlaps(&other));
        prop_assert_eq!(one.overlaps(&other), other.overlaps(&one));
        prop_assert!(!(one.covers(&other) && other.matches(&text)) || one.matches(&text));
        prop_assert!(one.covers(&one) && Pattern::any().covers(&one));
    }

    /// Of each domain that a binding wants, the events that its own policy keeps are offered, and no others.
    #[test]
    fn each_domain_has_its_own_start(
        entries in prop::collection::vec((a_pattern(), 0_u64..4), 0..5),
        others in 0_u64..4,
        (binding, domain) in a_wish(),
        age in 0_i64..5 * 3_600_000,
    ) {
        let entries = entries.into_iter().map(|(pattern, keep)| (pattern, orphans(hours(keep)))).collect();
        let policies = Policies::new(entries, orphans(hours(others)));
        prop_assert!(binding.matches(&domain));
        let start = policies.start(&binding, NOW);
        let seq = (NOW - age) as u64 * 1_000;
        let offered = seq >= start.seq && has_started(&start.domains, &domain, seq);
        let Keep::For(keep) = policies.of(&domain).orphan_keep else { unreachable!() };
        prop_assert_eq!(offered, age <= millis(keep));
    }
}
