//! The name of a group.

/// A group's name, '' for the default one. The hub would take other words for it as names of groups of their own.
pub(crate) fn group(text: &str) -> Result<String, String> {
    match text {
        "default" | "(default)" => {
            Err("the default group has the empty name: leave it out, or write ''".to_owned())
        }
        "*" => Err("must be the name of one group: `*` stands for no group".to_owned()),
        name => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_for_the_default_group_are_no_names() {
        for wrong in ["default", "(default)", "*"] {
            assert!(group(wrong).is_err(), "{wrong}");
        }
        assert_eq!(group("").as_deref(), Ok(""));
        assert_eq!(group("billing.*").as_deref(), Ok("billing.*"));
    }
}
