//! Up to where groups have come, as it is to be saved.

use super::{Groups, Name};
use crate::store::KnownBindings;

impl Groups {
    /// What is to be saved of the groups whose cursors have moved, by name; the default one's is empty. Those whose cursor the
    /// store is being told to set are left out: it is theirs once that is done. Each with the bindings that it goes by.
    pub fn unsaved(
        &mut self,
        is_changing: impl Fn(&Option<Name>) -> bool,
    ) -> Vec<(String, u64, KnownBindings)> {
        let groups = self.iter_mut().filter(|group| !is_changing(&group.identity().name));
        groups
            .filter_map(|group| {
                let seq = group.unsaved()?;
                let name = group.identity().name.as_ref().map(ToString::to_string);
                Some((name.unwrap_or_default(), seq, group.known_bindings()))
            })
            .collect()
    }
}
