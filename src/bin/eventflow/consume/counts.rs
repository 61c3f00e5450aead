//! How the work on events ended, counted.

/// What became of the events so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) done: u64,
    pub(super) failed: u64,
    /// Nothing was done: the hub offers them again.
    pub(super) handed_back: u64,
    /// The link that brought them was gone, or the hub had offered them to somebody else.
    pub(super) too_late: u64,
    /// The hub didn't say whether it recorded the outcome.
    pub(super) unconfirmed: u64,
}

impl Counts {
    pub(super) fn finished(&self) -> u64 {
        self.done + self.failed
    }

    pub(super) fn line(&self) -> String {
        let Self { done, failed, handed_back, too_late, unconfirmed } = self;
        let mut line = format!("done {done}, failed {failed}");
        for (what, count) in
            [("handed back", handed_back), ("came too late", too_late), ("unconfirmed", unconfirmed)]
        {
            if *count > 0 {
                line += &format!(", {what} {count}");
            }
        }
        line
    }
}

/// How the work on one event ended.
#[derive(Debug)]
pub(super) enum Ended {
    Done,
    Failed,
    HandedBack,
    TooLate,
    Unconfirmed,
    Unrunnable(String),
    /// Its command was killed.
    Killed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_counted_and_named() {
        let mut counts = Counts::default();
        assert_eq!(counts.line(), "done 0, failed 0");
        counts = Counts { done: 2, failed: 1, handed_back: 1, too_late: 1, unconfirmed: 0 };
        assert_eq!(counts.finished(), 3);
        assert_eq!(counts.line(), "done 2, failed 1, handed back 1, came too late 1");
    }
}
