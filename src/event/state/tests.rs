use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::event::{Domain, EventId, Name, Pid};

fn composed(values: &[Value]) -> Value {
    let mut state = State::default();
    values.iter().for_each(|value| state.merge(value.clone()));
    state.into_value()
}

#[test]
fn objects_merge_arrays_join_and_all_else_is_replaced() {
    for (log, state) in [
        (vec![], json!({})),
        (vec![json!({ "a": 1 }), json!({ "b": 2 })], json!({ "a": 1, "b": 2 })),
        (
            vec![json!({ "a": { "x": 1, "y": 1 } }), json!({ "a": { "y": 2 } })],
            json!({ "a": { "x": 1, "y": 2 } }),
        ),
        (vec![json!({ "a": [1, 2] }), json!({ "a": [2, 3, 3] })], json!({ "a": [1, 2, 3] })),
        (
            vec![json!({ "a": [1, "1", true, null] }), json!({ "a": [1.0, "1", true, null] })],
            json!({ "a": [1, "1", true, null] }),
        ),
        (
            vec![json!({ "a": [{ "x": 1 }, [1]] }), json!({ "a": [{ "x": 1 }, [1]] })],
            json!({ "a": [{ "x": 1 }, [1], { "x": 1 }, [1]] }),
        ),
        (vec![json!({ "a": [1] }), json!({ "a": { "x": 1 } })], json!({ "a": { "x": 1 } })),
        (vec![json!({ "a": { "x": 1 } }), json!({ "a": [1] })], json!({ "a": [1] })),
        (vec![json!({ "a": { "x": 1 } }), json!({ "a": null })], json!({ "a": null })),
        (vec![json!({ "a": null }), json!({ "a": { "x": 1 } })], json!({ "a": { "x": 1 } })),
        (vec![json!({ "a": "x" }), json!({ "a": false })], json!({ "a": false })),
    ] {
        assert_eq!(composed(&log), state, "{log:?}");
    }
}

#[test]
fn the_state_is_always_an_object() {
    let none = [json!(null), json!(1), json!("x"), json!([1]), json!({ "$type": "Map", "$value": [] })];
    assert_eq!(composed(&none), json!({}));
    for none in none {
        assert_eq!(
            composed(&[json!({ "a": 1 }), none.clone(), json!({ "b": 2 })]),
            json!({ "a": 1, "b": 2 }),
            "{none}"
        );
    }
}

#[test]
fn a_typed_value_is_replaced_as_a_whole() {
    let set = |values: &[u32]| json!({ "$type": "Set", "$value": values });
    assert_eq!(composed(&[json!({ "a": set(&[1]) }), json!({ "a": set(&[2]) })]), json!({ "a": set(&[2]) }));
    assert_eq!(composed(&[json!({ "a": { "x": 1 } }), json!({ "a": set(&[2]) })]), json!({ "a": set(&[2]) }));
    assert_eq!(
        composed(&[json!({ "a": set(&[1]) }), json!({ "a": { "x": 1 } })]),
        json!({ "a": { "x": 1 } })
    );
    // With anything more it is an object like others.
    let odd = json!({ "a": { "$type": "Set", "$value": 1, "x": 1 } });
    assert_eq!(composed(&[odd, json!({ "a": { "y": 1 } })])["a"]["x"], json!(1));
}

#[test]
fn events_compose_by_their_data() {
    let event = |data: &str| Event {
        id: EventId::parse("e").unwrap(),
        timestamp: 0,
        domain: Domain::parse("d").unwrap(),
        name: Name::parse("n").unwrap(),
        pid: Pid::parse("p").unwrap(),
        rid: None,
        data: Data::from_stored(data.to_owned()),
    };
    assert_eq!(
        compose(&[event(r#"{"a":1}"#), event("null"), event(r#"{"b":[]}"#)]).unwrap(),
        json!({ "a": 1, "b": [] })
    );
    assert!(compose(&[event("{")]).is_err());
}

/// Any JSON of some depth, over few keys and primitives so that they meet.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        (0_u8..4).prop_map(|half| Value::from(f64::from(half) / 2.0)),
        "[ab]?".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("[abc]", inner.clone(), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            inner.prop_map(|value| json!({ "$type": "Map", "$value": value })),
        ]
    })
}

/// Objects whose members keep their kind: under `o` objects, under `l` lists of primitives, under `p` primitives.
fn steady() -> impl Strategy<Value = Value> {
    let primitive =
        prop_oneof![Just(Value::Null), (0_i64..4).prop_map(Value::from), "[ab]".prop_map(Value::from)];
    let leaves = (
        proptest::option::of(proptest::collection::vec(primitive.clone(), 0..5)),
        proptest::option::of(primitive),
    );
    let object = leaves.prop_map(|(list, primitive)| {
        let list = list.map(|list| ("l".to_owned(), Value::from(list)));
        let primitive = primitive.map(|primitive| ("p".to_owned(), primitive));
        Value::Object(list.into_iter().chain(primitive).collect())
    });
    object.prop_recursive(3, 8, 1, |inner| {
        inner.prop_map(|inner| json!({ "o": inner.clone(), "l": [inner["p"]] }))
    })
}

/// The rule once more, as a function of two values that makes a third.
fn model(before: &Value, later: &Value) -> Value {
    let typed = |value: &Value| value["$type"].is_string() && value.as_object().is_some_and(|o| o.len() == 2);
    match (before, later) {
        _ if typed(before) || typed(later) => later.clone(),
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            let member = |key: &&String| match (a.get(*key), b.get(*key)) {
                (Some(a), Some(b)) => model(a, b),
                (a, b) => b.or(a).cloned().unwrap_or_default(),
            };
            Value::Object(keys.iter().map(|key| ((*key).clone(), member(key))).collect())
        }
        (Value::Array(a), Value::Array(b)) => {
            let mut all: Vec<Value> = Vec::new();
            for value in a.iter().chain(b) {
                let number = |value: &Value| value.as_f64().map(|number| (number * 2.0) as i64);
                let same =
                    |other: &Value| other == value || (value.is_number() && number(other) == number(value));
                if value.is_array() || value.is_object() || !all.iter().any(same) {
                    all.push(value.clone());
                }
            }
            Value::Array(all)
        }
        (_, later) => later.clone(),
    }
}

proptest! {
    #[test]
    fn the_state_is_what_the_rule_says(log in proptest::collection::vec(value(), 0..6)) {
        let is_object = |value: &&Value| value.is_object() && value.get("$type").is_none();
        let expected = log.iter().filter(is_object).fold(json!({}), |state, later| model(&state, later));
        let state = composed(&log);
        prop_assert!(state.is_object());
        prop_assert_eq!(state, expected);
    }

    /// Where no member changes its kind, parts of a log can be composed by themselves.
    #[test]
    fn composing_parts_is_composing_the_whole(a in steady(), b in steady(), c in steady()) {
        let whole = composed(&[a.clone(), b.clone(), c.clone()]);
        prop_assert_eq!(&whole, &composed(&[composed(&[a.clone(), b.clone()]), c.clone()]));
        prop_assert_eq!(&whole, &composed(&[a, composed(&[b, c])]));
    }

    #[test]
    fn nothing_added_changes_nothing(log in proptest::collection::vec(value(), 0..6)) {
        let state = composed(&log);
        prop_assert_eq!(&composed(&[state.clone(), json!({})]), &state);
        prop_assert_eq!(&composed(&[json!({}), state.clone()]), &state);
    }
}
