//! What a wait is for, in words: the hub's time-out and the client's say the same.

use std::fmt;

use super::{After, WaitFor};

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (domain, pid, names, after) = match self {
            WaitFor::Answer { rid } => return write!(f, "answer to the event {rid:?}"),
            WaitFor::Process { domain, pid, names, after } => (domain, pid, names, after),
        };
        f.write_str("event")?;
        match names.as_slice() {
            [] => {}
            [name] => write!(f, " named {name:?}")?,
            [name, ..] => write!(f, " named {name:?} or one of {} others", names.len() - 1)?,
        }
        write!(f, " of the process {pid:?} in {domain:?}")?;
        match after {
            After::Start => Ok(()),
            After::Event(id) => write!(f, " after the event {id:?}"),
            After::Time(ms) => write!(f, " after {ms} ms since 1970"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Domain, EventId, Name, Pid};

    #[test]
    fn it_says_what_is_waited_for() {
        let text = |names: &[&str], after| {
            let names = names.iter().map(|name| Name::parse((*name).to_owned()).unwrap()).collect();
            let (domain, pid) = (Domain::parse("orders").unwrap(), Pid::parse("1").unwrap());
            WaitFor::Process { domain, pid, names, after }.to_string()
        };
        let event = || EventId::parse("e").unwrap();
        for (said, expected) in [
            (text(&["paid"], After::Start), r#"event named "paid" of the process "1" in "orders""#),
            (text(&[], After::Event(event())), r#"event of the process "1" in "orders" after the event "e""#),
            (
                text(&["paid", "sent", "lost"], After::Time(5)),
                r#"event named "paid" or one of 2 others of the process "1" in "orders" after 5 ms since 1970"#,
            ),
            (WaitFor::Answer { rid: event() }.to_string(), r#"answer to the event "e""#),
        ] {
            assert_eq!(said, expected);
        }
    }
}
