//! Those who wait, by what they wait for.

use std::collections::BTreeMap;

use super::{outlet::LinkId, round::round};

/// Names one wait of one link; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitKey {
    /// The link.
    pub link: LinkId,
    /// Which of its waits.
    pub number: u64,
}

/// Who waits for which `K`, each as a `W`. Its bound is that of the waits of a link, times that of links.
#[derive(Debug)]
pub struct Waiters<K, W> {
    by: BTreeMap<K, BTreeMap<WaitKey, W>>,
}

impl<K, W> Default for Waiters<K, W> {
    fn default() -> Self {
        Self { by: BTreeMap::new() }
    }
}

impl<K: Ord, W> Waiters<K, W> {
    /// Nobody waits for anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    /// What is waited for: what comes behind `last`, then the others.
    pub fn round<'a>(&'a self, last: Option<&'a K>) -> impl Iterator<Item = &'a K> {
        round(&self.by, last)
    }

    /// All that is waited for, in order.
    pub fn all(&self) -> impl Iterator<Item = &K> {
        self.by.keys()
    }

    /// One more waits.
    pub fn add(&mut self, what: K, who: WaitKey, waiter: W) {
        self.by.entry(what).or_default().insert(who, waiter);
    }

    /// It waits no longer, if it did.
    pub fn remove(&mut self, what: &K, who: WaitKey) {
        if let Some(waiters) = self.by.get_mut(what) {
            waiters.remove(&who);
            if waiters.is_empty() {
                self.by.remove(what);
            }
        }
    }

    /// Takes out those who waited for this and are `met`.
    pub fn take(&mut self, what: &K, mut met: impl FnMut(&W) -> bool) -> Vec<W> {
        let Some(waiters) = self.by.get_mut(what) else { return Vec::new() };
        let taken = waiters.extract_if(.., |_, waiter| met(waiter)).map(|(_, waiter)| waiter).collect();
        if waiters.is_empty() {
            self.by.remove(what);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_met_or_gives_up_leaves_nothing_behind() {
        let key = |link, number| WaitKey { link: LinkId(link), number };
        let mut waiters = Waiters::default();
        waiters.add("a", key(1, 1), 10);
        waiters.add("a", key(1, 2), 20);
        waiters.add("a", key(2, 1), 30);
        waiters.add("b", key(2, 2), 40);
        assert_eq!(waiters.take(&"a", |value| *value > 10), [20, 30]);
        assert_eq!(waiters.take(&"a", |value| *value > 10), Vec::<i32>::new());
        assert_eq!(waiters.take(&"c", |_| true), Vec::<i32>::new());
        waiters.remove(&"a", key(2, 1));
        assert!(!waiters.is_empty(), "another one's");
        assert_eq!(waiters.round(Some(&"a")).collect::<Vec<_>>(), [&"b", &"a"]);
        waiters.remove(&"a", key(1, 1));
        waiters.remove(&"a", key(1, 1));
        assert_eq!(waiters.take(&"b", |_| true), [40]);
        assert!(waiters.is_empty());
    }
}
