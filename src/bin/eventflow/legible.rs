//! An event as programs read it, whatever its data is.

use eventflow::event::Event;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// An event as one JSON object. Somebody who writes to the database may have put in data that isn't JSON: its text is
/// then a string, `data_text`, and there is no `data`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Legible<'a>(pub(crate) &'a Event);

/// The fields of [`Event`], in its order.
#[derive(Serialize)]
struct Fields<'a> {
    id: &'a str,
    timestamp: i64,
    domain: &'a str,
    name: &'a str,
    pid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_text: Option<&'a str>,
}

impl Serialize for Legible<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Event { id, timestamp, domain, name, pid, rid, data } = self.0;
        let text = data.as_str();
        let data = serde_json::from_str::<&RawValue>(text).ok();
        Fields {
            id: id.as_str(),
            timestamp: *timestamp,
            domain: domain.as_str(),
            name: name.as_str(),
            pid: pid.as_str(),
            rid: rid.as_ref().map(|rid| rid.as_str()),
            data,
            data_text: data.is_none().then_some(text),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use eventflow::event::Data;

    use super::*;
    use crate::output::{json, tests::event};

    #[test]
    fn it_is_the_event_as_it_serializes_itself() {
        let answer = event(Some("id-0"), r#"{"b":1,"a":[1.50]}"#);
        assert_eq!(json(&Legible(&answer)), json(&answer));
    }

    #[test]
    fn data_that_is_no_json_is_a_text() {
        let mut odd = event(None, "1");
        odd.data = Data::from_stored("{'total': 12}");
        assert_eq!(
            json(&Legible(&odd)),
            r#"{"id":"id-1","timestamp":1700000000123,"domain":"orders","name":"created","pid":"order-1","data_text":"{'total': 12}"}"#
        );
    }
}
