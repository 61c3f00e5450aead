//! Deliveries that ended without success, as rows of `v1_attempt`.

use crate::{
    event::{EventId, Group, Uid},
    wire::Attempt,
};

/// A delivery that ended without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    /// Of which event.
    pub event_id: EventId,
    /// To which group; empty is the default one.
    pub group: String,
    /// The first round is 1; a redrive begins the next.
    pub round: u32,
    /// Which delivery of the round; the first is 1.
    pub number: u32,
    /// Who had it.
    pub consumer: Uid,
    /// When it was handed out, in milliseconds since 1970.
    pub started: i64,
    /// When it ended, in milliseconds since 1970.
    pub ended: i64,
    /// `nack`, `link lost`, …: at most 64 characters are kept.
    pub reason: String,
    /// What the consumer said about it.
    pub error: String,
}

/// What is shown of an error's beginning, in bytes.
const SHOWN_HEAD: usize = 256;
/// And of its end: a command's reason is the last that it wrote, so that this is the larger part.
const SHOWN_TAIL: usize = 768;
/// Stands for what is left out.
const LEFT_OUT: &str = " … ";

/// The beginning and the end of a long text, each cut between characters.
pub(in crate::store) fn ends_of(text: String) -> String {
    if text.len() <= SHOWN_HEAD + LEFT_OUT.len() + SHOWN_TAIL {
        return text;
    }
    let head = text.floor_char_boundary(SHOWN_HEAD);
    let tail = text.ceil_char_boundary(text.len() - SHOWN_TAIL);
    format!("{}{LEFT_OUT}{}", &text[..head], &text[tail..])
}

impl From<AttemptRow> for Attempt {
    /// For people: of an error's text longer than 1 KiB only the beginning and the end are shown.
    fn from(row: AttemptRow) -> Self {
        Attempt {
            number: row.number,
            round: row.round,
            group: (!row.group.is_empty()).then(|| Group::from_stored(row.group)),
            consumer: row.consumer,
            started: row.started,
            ended: row.ended,
            reason: row.reason,
            error: ends_of(row.error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_error_the_beginning_and_the_end_are_shown() {
        for short in [String::new(), "no such customer".to_owned(), "x".repeat(1024)] {
            assert_eq!(ends_of(short.clone()), short);
        }
        let long = format!("Traceback{}ValueError: no such customer", "é".repeat(4000));
        let shown = ends_of(long);
        assert!(shown.starts_with("Traceback") && shown.ends_with("ValueError: no such customer"), "{shown}");
        assert!(shown.contains("é … é"), "{shown}");
        assert!(shown.len() <= SHOWN_HEAD + LEFT_OUT.len() + SHOWN_TAIL, "{}", shown.len());
    }
}
