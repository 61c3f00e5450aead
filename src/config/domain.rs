//! `[[domain]]`: what some domains want otherwise than the rest.

use std::collections::BTreeMap;

use super::{HubConfig, form};
use crate::event::{Keep, Pattern, Policies, Policy};

/// What the domains of a pattern want; what it doesn't say is as for all domains. Of several entries whose pattern
/// matches a domain the first holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainPolicy {
    /// Which domains.
    pub pattern: Pattern,
    /// In place of [`HubConfig::orphan_keep`].
    pub orphan_keep: Option<Keep>,
    /// In place of [`KeepSettings::expire_after`].
    pub expire_after: Option<Keep>,
    /// In place of [`KeepSettings::success`].
    pub keep_success: Option<Keep>,
    /// In place of [`KeepSettings::dead`].
    pub keep_dead: Option<Keep>,
    /// In place of [`KeepSettings::expired`].
    pub keep_expired: Option<Keep>,
    /// In place of [`KeepSettings::unknown`].
    pub keep_unknown: Option<Keep>,
    /// In place of [`KeepSettings::orphan`].
    pub keep_orphan: Option<Keep>,
    /// In place of [`KeepSettings::persisted`].
    pub keep_persisted: Option<Keep>,
}

/// When events expire, and for how long they are kept after their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepSettings {
    /// How old an event that no binding wants must be to expire; for ever: none does.
    pub expire_after: Keep,
    /// After each group has ended it well.
    pub success: Keep,
    /// After a group has given it up.
    pub dead: Keep,
    /// After it expired.
    pub expired: Keep,
    /// After an npm spoke claimed it and was not heard of since.
    pub unknown: Keep,
    /// After it was published, if nobody wants it.
    pub orphan: Keep,
    /// After it was stored, if it was never published.
    pub persisted: Keep,
}

impl Default for KeepSettings {
    fn default() -> Self {
        let keep = Keep::Forever;
        Self {
            expire_after: keep,
            success: keep,
            dead: keep,
            expired: keep,
            unknown: keep,
            orphan: keep,
            persisted: keep,
        }
    }
}

impl DomainPolicy {
    /// An entry that wants nothing special yet.
    #[must_use]
    pub fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            orphan_keep: None,
            expire_after: None,
            keep_success: None,
            keep_dead: None,
            keep_expired: None,
            keep_unknown: None,
            keep_orphan: None,
            keep_persisted: None,
        }
    }

    fn over(&self, rest: &Policy) -> Policy {
        Policy {
            orphan_keep: self.orphan_keep.unwrap_or(rest.orphan_keep),
            expire_after: self.expire_after.unwrap_or(rest.expire_after),
            keep_success: self.keep_success.unwrap_or(rest.keep_success),
            keep_dead: self.keep_dead.unwrap_or(rest.keep_dead),
            keep_expired: self.keep_expired.unwrap_or(rest.keep_expired),
            keep_unknown: self.keep_unknown.unwrap_or(rest.keep_unknown),
            keep_orphan: self.keep_orphan.unwrap_or(rest.keep_orphan),
            keep_persisted: self.keep_persisted.unwrap_or(rest.keep_persisted),
        }
    }
}

impl HubConfig {
    /// The policies of all domains.
    #[must_use]
    pub fn policies(&self) -> Policies {
        let keep = &self.keep;
        let others = Policy {
            orphan_keep: self.orphan_keep,
            expire_after: keep.expire_after,
            keep_success: keep.success,
            keep_dead: keep.dead,
            keep_expired: keep.expired,
            keep_unknown: keep.unknown,
            keep_orphan: keep.orphan,
            keep_persisted: keep.persisted,
        };
        let entry = |domain: &DomainPolicy| (domain.pattern.clone(), domain.over(&others));
        Policies::new(self.domains.iter().map(entry).collect(), others)
    }
}

/// A key of an entry beside `pattern`. What it means stands at the setting of the same name.
pub(super) struct DomainKey {
    pub(super) key: &'static str,
    pub(super) set: fn(&mut DomainPolicy, &str) -> Result<(), String>,
    pub(super) show: fn(&DomainPolicy) -> Option<String>,
}

macro_rules! domain_keys {
    ($($field:ident: $form:expr,)*) => {
        &[$(DomainKey {
            key: stringify!($field),
            set: |policy, text| {
                policy.$field = Some($form.read(text)?);
                Ok(())
            },
            show: |policy| policy.$field.as_ref().map(|keep| $form.show(keep)),
        },)*]
    };
}

/// The keys of an entry, in the order in which they are shown.
pub(super) static DOMAIN_KEYS: &[DomainKey] = domain_keys! {
    orphan_keep: form::keep(),
    expire_after: form::never(),
    keep_success: form::keep(),
    keep_dead: form::keep(),
    keep_expired: form::keep(),
    keep_unknown: form::keep(),
    keep_orphan: form::keep(),
    keep_persisted: form::keep(),
};

/// A whole policy as it would be written in the file.
#[must_use]
pub fn show_policy(policy: &Policy) -> BTreeMap<&'static str, String> {
    let mut whole = DomainPolicy::new(Pattern::any());
    whole.orphan_keep = Some(policy.orphan_keep);
    whole.expire_after = Some(policy.expire_after);
    whole.keep_success = Some(policy.keep_success);
    whole.keep_dead = Some(policy.keep_dead);
    whole.keep_expired = Some(policy.keep_expired);
    whole.keep_unknown = Some(policy.keep_unknown);
    whole.keep_orphan = Some(policy.keep_orphan);
    whole.keep_persisted = Some(policy.keep_persisted);
    DOMAIN_KEYS.iter().filter_map(|known| Some((known.key, (known.show)(&whole)?))).collect()
}
