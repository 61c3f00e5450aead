//! Which of many patterns match an event: a tree of segments, so that the cost doesn't follow their number.

use std::{collections::HashMap, hash::Hash};

use bytestring::ByteString;

use super::{Pattern, pattern::Segment};

/// A set of keys, each under a pair of patterns for domain and name.
///
/// One key may stand under several pairs; a match then yields it once per pair.
#[derive(Debug)]
pub struct PatternIndex<K> {
    domains: Node<Node<Vec<K>>>,
    len: usize,
}

#[derive(Debug)]
struct Node<T> {
    /// What ends exactly here.
    here: Option<T>,
    /// What takes everything that follows.
    rest: Option<T>,
    literal: HashMap<ByteString, Node<T>>,
    one: Option<Box<Node<T>>>,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self { here: None, rest: None, literal: HashMap::new(), one: None }
    }
}

impl<T: Default> Node<T> {
    fn slot(&mut self, pattern: &Pattern) -> &mut T {
        let mut node = self;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Rest => return node.rest.get_or_insert_default(),
                Segment::One => node.one.get_or_insert_default(),
                Segment::Literal(text) => node.literal.entry(ByteString::from(text)).or_default(),
            };
        }
        node.here.get_or_insert_default()
    }
}

impl<T> Node<T> {
    /// Runs `change` on the slot of `pattern`; if it says that the slot is empty now, prunes the branch.
    fn prune(&mut self, segments: &[Segment<'_>], change: &mut dyn FnMut(&mut T) -> bool) {
        let emptied = |slot: &mut Option<T>, change: &mut dyn FnMut(&mut T) -> bool| {
            if slot.as_mut().is_some_and(change) {
                *slot = None;
            }
        };
        match segments.split_first() {
            None => emptied(&mut self.here, change),
            Some((Segment::Rest, _)) => emptied(&mut self.rest, change),
            Some((Segment::One, others)) => {
                if let Some(node) = &mut self.one {
                    node.prune(others, change);
                    if node.is_empty() {
                        self.one = None;
                    }
                }
            }
            Some((Segment::Literal(text), others)) => {
                if let Some(node) = self.literal.get_mut(*text) {
                    node.prune(others, change);
                    if node.is_empty() {
                        self.literal.remove(*text);
                    }
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.here.is_none() && self.rest.is_none() && self.one.is_none() && self.literal.is_empty()
    }

    fn visit<'a>(&'a self, text: Option<&str>, found: &mut dyn FnMut(&'a T)) {
        let Some(text) = text else {
            if let Some(here) = &self.here {
                found(here);
            }
            return;
        };
        if let Some(rest) = &self.rest {
            found(rest);
        }
        let (segment, others) = match text.split_once('.') {
            Some((segment, others)) => (segment, Some(others)),
            None => (text, None),
        };
        if let Some(node) = self.literal.get(segment) {
            node.visit(others, found);
        }
        if let Some(node) = &self.one {
            node.visit(others, found);
        }
    }
}

impl<K> Default for PatternIndex<K> {
    fn default() -> Self {
        Self { domains: Node::default(), len: 0 }
    }
}

impl<K: Clone + Eq + Hash> PatternIndex<K> {
    /// Puts `key` under the pair of patterns.
    pub fn insert(&mut self, domain: &Pattern, name: &Pattern, key: K) {
        self.domains.slot(domain).slot(name).push(key);
        self.len += 1;
    }

    /// Takes `key` from under the pair of patterns; nothing happens if it isn't there.
    pub fn remove(&mut self, domain: &Pattern, name: &Pattern, key: &K) {
        let domains: Vec<_> = domain.segments().collect();
        let names: Vec<_> = name.segments().collect();
        let mut removed = 0;
        self.domains.prune(&domains, &mut |node| {
            node.prune(&names, &mut |keys| {
                if let Some(at) = keys.iter().position(|other| other == key) {
                    keys.swap_remove(at);
                    removed += 1;
                }
                keys.is_empty()
            });
            node.is_empty()
        });
        self.len -= removed;
    }

    /// Calls `found` with each key whose patterns match.
    pub fn matching<'a>(&'a self, domain: &str, name: &str, mut found: impl FnMut(&'a K)) {
        if self.len == 0 {
            return;
        }
        self.domains.visit(Some(domain), &mut |node| {
            node.visit(Some(name), &mut |keys| keys.iter().for_each(&mut found));
        });
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec("[ab]", 1..4).prop_map(|parts| parts.join("."))
    }

    fn pattern() -> impl Strategy<Value = String> {
        (proptest::collection::vec("[ab*]", 1..4), any::<bool>()).prop_map(|(mut parts, rest)| {
            if rest {
                parts.push(">".into());
            }
            parts.join(".")
        })
    }

    proptest! {
        #[test]
        fn agrees_with_trying_each_pattern(
            patterns in proptest::collection::vec((pattern(), pattern()), 0..30),
            gone in proptest::collection::vec(any::<bool>(), 30),
            domain in text(),
            name in text(),
        ) {
            let parsed: Vec<_> = patterns
                .iter()
                .map(|(d, n)| (Pattern::parse(d.clone()).unwrap(), Pattern::parse(n.clone()).unwrap()))
                .collect();
            let mut index = PatternIndex::default();
            for (key, (d, n)) in parsed.iter().enumerate() {
                index.insert(d, n, key);
            }
            for (key, (d, n)) in parsed.iter().enumerate() {
                if gone[key] {
                    index.remove(d, n, &key);
                }
            }
            let mut found = Vec::new();
            index.matching(&domain, &name, |key| found.push(*key));
            found.sort_unstable();
            let expected: Vec<_> = parsed
                .iter()
                .enumerate()
                .filter(|(key, (d, n))| !gone[*key] && d.matches(&domain) && n.matches(&name))
                .map(|(key, _)| key)
                .collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(index.len(), parsed.len() - gone.iter().take(parsed.len()).filter(|g| **g).count());
        }
    }

    #[test]
    fn removing_all_leaves_nothing_behind() {
        let mut index = PatternIndex::default();
        let (d, n) = (Pattern::parse("a.*.c").unwrap(), Pattern::parse("x.>").unwrap());
        index.insert(&d, &n, 1);
        index.remove(&d, &n, &1);
        assert!(index.is_empty());
        assert!(index.domains.is_empty());
    }
}
