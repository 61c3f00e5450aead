//! What is there of a group before a consumer comes to it.

use eventflow::spoke::{GroupError, Spoke};

use crate::{failure::Failure, stop::Stop};

/// How a group stands to the patterns of a consumer that is about to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// There is no such group yet.
    Nothing,
    /// It is there, and didn't ask for these events so far.
    Unbound,
    /// It has a binding of these patterns.
    Bound,
    /// The hub doesn't say, or not now. To consume may do all the same.
    Unknown,
}

impl Found {
    /// What to add to the group's name, if the consumer says where it starts or doesn't.
    pub(super) fn told(self, says_where: bool) -> &'static str {
        match (self, says_where) {
            (Self::Nothing, false) => " (new group, from now on)",
            (Self::Nothing, true) => " (new group)",
            (Self::Unbound, false) => " (new for this group, from now on)",
            (Self::Unbound, true) => " (new for this group)",
            (Self::Bound | Self::Unknown, _) => "",
        }
    }
}

/// Looks at the group of this name.
pub(super) async fn look(
    spoke: &Spoke,
    group: &str,
    [domain, name]: [&str; 2],
    stop: &Stop,
) -> Result<Found, Failure> {
    let look = async {
        Ok::<_, GroupError>(match spoke.group(group).backlog().await {
            Ok(stands) => {
                let is_it = |binding: &eventflow::wire::BindingInfo| {
                    binding.domain.as_str() == domain && binding.name.as_str() == name
                };
                if stands.bindings.iter().any(is_it) { Found::Bound } else { Found::Unbound }
            }
            Err(GroupError::NotFound { .. }) => Found::Nothing,
            Err(_) => Found::Unknown,
        })
    };
    stop.unless_requested(look).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_group_is_told_with_where_it_starts() {
        assert_eq!(Found::Nothing.told(false), " (new group, from now on)");
        assert_eq!(Found::Nothing.told(true), " (new group)");
        assert_eq!(Found::Bound.told(false), "");
    }
}
