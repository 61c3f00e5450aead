//! Which of 100,000 subscriptions an event is for.

use std::hint::black_box;

use divan::Bencher;
use eventflow::event::{Pattern, PatternIndex};

const SUBSCRIPTIONS: usize = 100_000;

/// 99,000 subscriptions of exact domains and names, 500 of all names in a domain, 500 of all domains below one.
fn index() -> PatternIndex<usize> {
    let mut index = PatternIndex::default();
    let pattern = |text: &str| Pattern::parse(text.to_owned()).unwrap();
    for number in 0..SUBSCRIPTIONS {
        let (domain, name) = match number {
            0..500 => (format!("shop.{number}"), "*".to_owned()),
            500..1_000 => (format!("region.{number}.*"), "created.*".to_owned()),
            _ => (format!("orders.{number}"), "created".to_owned()),
        };
        index.insert(&pattern(&domain), &pattern(&name), number);
    }
    index
}

fn found(index: &PatternIndex<usize>, domain: &str, name: &str) -> usize {
    let mut found = 0;
    index.matching(black_box(domain), black_box(name), |_| found += 1);
    found
}

fn many(times: usize, domain: &str, name: &str, expected: usize) {
    let index = index();
    assert_eq!(found(&index, domain, name), expected);
    for _ in 0..times {
        black_box(found(&index, domain, name));
    }
}

pub fn exact(times: usize) {
    many(times, "orders.50000", "created", 1);
}

pub fn wildcards(times: usize) {
    many(times, "region.700.north", "created.twice", 1);
}

pub fn nothing(times: usize) {
    many(times, "stock.7", "counted", 0);
}

#[divan::bench]
fn matches_exactly(bencher: Bencher<'_, '_>) {
    let index = index();
    bencher.bench_local(|| found(&index, "orders.50000", "created"));
}

#[divan::bench]
fn matches_by_wildcards(bencher: Bencher<'_, '_>) {
    let index = index();
    bencher.bench_local(|| found(&index, "region.700.north", "created.twice"));
}

#[divan::bench]
fn matches_nothing(bencher: Bencher<'_, '_>) {
    let index = index();
    bencher.bench_local(|| found(&index, "stock.7", "counted"));
}
