//! Serves all in turn, where only a few are served at once.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Unbounded},
};

/// The keys behind `last`, then those from the first one up to it: each once.
pub fn round<'a, K: Ord, V>(map: &'a BTreeMap<K, V>, last: Option<&'a K>) -> impl Iterator<Item = &'a K> {
    let behind = last.map_or(Unbounded, Excluded);
    let before = last.into_iter().flat_map(|last| map.range(..=last));
    map.range((behind, Unbounded)).chain(before).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn_once() {
        let map = BTreeMap::from([(1, ()), (3, ()), (5, ())]);
        let round = |last: Option<i32>| round(&map, last.as_ref()).copied().collect::<Vec<_>>();
        assert_eq!(round(None), [1, 3, 5]);
        assert_eq!(round(Some(0)), [1, 3, 5]);
        assert_eq!(round(Some(1)), [3, 5, 1]);
        assert_eq!(round(Some(4)), [5, 1, 3]);
        assert_eq!(round(Some(5)), [1, 3, 5]);
    }
}
