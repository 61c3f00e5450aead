//! Any batches against a model that takes their writes one by one.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Publish { id: u8, data: u8, rid: Option<u8> },
    Finish { id: u8, dead: bool },
    Attempt { id: u8 },
}

/// Two spellings each of two values.
const DATA: [&str; 4] =
    [r#"{"a":1,"b":[]}"#, r#"{"b":[],"a":1.0}"#, r#"{"a":1,"b":[null]}"#, r#"{"b":[null],"a":1}"#];

fn step() -> impl Strategy<Value = Step> {
    let id = 0..12u8;
    prop_oneof![
        4 => (id.clone(), 0..4u8, prop::option::weighted(0.3, id.clone()))
            .prop_map(|(id, data, rid)| Step::Publish { id, data, rid }),
        2 => (id.clone(), any::<bool>()).prop_map(|(id, dead)| Step::Finish { id, dead }),
        1 => id.prop_map(|id| Step::Attempt { id }),
    ]
}

fn write(step: &Step, seq: u64) -> Write {
    let name = |id: u8| format!("e{id}");
    match *step {
        Step::Publish { id: number, data, rid } => {
            let content = with_data(&name(number), DATA[usize::from(data)]);
            publish(Event { rid: rid.map(|rid| id(&name(rid))), ..content }, seq)
        }
        Step::Finish { id, dead } => finish(&name(id), if dead { Outcome::Dead } else { Outcome::Success }),
        Step::Attempt { id } => Write::Attempt(attempt(&name(id), 1)),
    }
}

#[derive(Default)]
struct Model(HashMap<u8, Stored>);

struct Stored {
    value: u8,
    rid: Option<u8>,
    seq: u64,
    ended: bool,
}

impl Model {
    /// What a write answers: `fresh`, `duplicate` with the number, `ok`, or a code.
    fn take(&mut self, step: &Step, seq: u64) -> String {
        match *step {
            Step::Publish { id, data, rid } => match self.0.get(&id) {
                Some(stored) if stored.rid != rid || stored.value != data / 2 => code::EVENT_CONFLICT.into(),
                Some(stored) => format!("duplicate {}", stored.seq),
                None if rid.is_some_and(|rid| !self.0.contains_key(&rid)) => code::RID_NOT_FOUND.into(),
                None => {
                    self.0.insert(id, Stored { value: data / 2, rid, seq, ended: false });
                    format!("fresh {seq}")
                }
            },
            Step::Finish { id, .. } => match self.0.get_mut(&id) {
                None => code::EVENT_NOT_FOUND.into(),
                Some(stored) if stored.ended => code::CLAIM_LOST.into(),
                Some(stored) => {
                    stored.ended = true;
                    "ok".into()
                }
            },
            Step::Attempt { id } if self.0.contains_key(&id) => "ok".into(),
            Step::Attempt { .. } => code::EVENT_NOT_FOUND.into(),
        }
    }
}

fn word(answer: &Answer) -> String {
    match answer {
        Ok(Written::Published(published)) => {
            format!("{} {}", if published.fresh { "fresh" } else { "duplicate" }, published.seq)
        }
        other => code_of(other).into(),
    }
}

async fn agree(batches: &[Vec<Step>]) {
    let store = memory().await;
    let mut model = Model::default();
    let mut seq = 0;
    for batch in batches {
        let numbered: Vec<(&Step, u64)> = batch.iter().zip(seq + 1..).collect();
        seq += u64::try_from(batch.len()).unwrap();
        let answers = store.commit(numbered.iter().map(|(step, seq)| write(step, *seq)).collect()).await;
        // Publishes take effect before the rest of their batch.
        let is_publish = |step: &Step| matches!(step, Step::Publish { .. });
        let mut expected = vec![String::new(); batch.len()];
        for publishes in [true, false] {
            for (at, (step, seq)) in numbered.iter().enumerate() {
                if is_publish(step) == publishes {
                    expected[at] = model.take(step, *seq);
                }
            }
        }
        assert_eq!(answers.iter().map(word).collect::<Vec<_>>(), expected);
    }
    let counts = store.counts(&hub()).await.unwrap();
    let ended = model.0.values().filter(|stored| stored.ended).count();
    assert_eq!(usize::try_from(counts.events), Ok(model.0.len()));
    assert_eq!(usize::try_from(counts.success + counts.failed), Ok(ended));
    assert_eq!(usize::try_from(counts.open), Ok(model.0.len() - ended));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn batches_answer_as_if_taken_one_by_one(
        batches in prop::collection::vec(prop::collection::vec(step(), 0..20), 1..5)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(agree(&batches));
    }
}
