//! Any batches against a model that takes their writes one by one.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::wire::Deletion;

#[derive(Debug, Clone, Copy)]
struct Content {
    id: u8,
    data: u8,
    rid: Option<u8>,
}

#[derive(Debug, Clone)]
enum Step {
    Publish(Content),
    Persist(Content),
    Batch(Vec<Content>),
    /// `stale`: for the number of an event that was there before.
    Finish {
        id: u8,
        dead: bool,
        stale: bool,
    },
    Attempt {
        id: u8,
    },
    Delete {
        id: u8,
    },
}

impl Step {
    /// Which of a transaction's writes take effect first.
    fn turn(&self) -> u8 {
        match self {
            Step::Publish(_) | Step::Persist(_) | Step::Batch(_) => 0,
            Step::Finish { .. } | Step::Attempt { .. } => 1,
            Step::Delete { .. } => 2,
        }
    }
}

/// Two spellings each of two values.
const DATA: [&str; 4] =
    [r#"{"a":1,"b":[]}"#, r#"{"b":[],"a":1.0}"#, r#"{"a":1,"b":[null]}"#, r#"{"b":[null],"a":1}"#];
/// The events of a batch at most; each step has so many numbers.
const MOST: u8 = 6;

fn content() -> impl Strategy<Value = Content> {
    (0..12u8, 0..4u8, prop::option::weighted(0.3, 0..12u8)).prop_map(|(id, data, rid)| Content {
        id,
        data,
        rid,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..12u8;
    prop_oneof![
        8 => content().prop_map(Step::Publish),
        3 => content().prop_map(Step::Persist),
        4 => prop::collection::vec(content(), 1..=usize::from(MOST)).prop_map(Step::Batch),
        5 => (id.clone(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(id, dead, stale)| Step::Finish { id, dead, stale }),
        2 => id.clone().prop_map(|id| Step::Attempt { id }),
        1 => id.prop_map(|id| Step::Delete { id }),
    ]
}

fn name(id: u8) -> String {
    format!("e{id}")
}

fn stored(content: &Content) -> Event {
    let event = with_data(&name(content.id), DATA[usize::from(content.data)]);
    Event { rid: content.rid.map(|rid| id(&name(rid))), ..event }
}

fn write(step: &Step, seq: u64, model: &Model) -> Write {
    match step {
        Step::Publish(content) => publish(stored(content), seq),
        Step::Persist(content) => Write::Persist(stored(content), None),
        Step::Batch(contents) => {
            let placed = |(content, seq)| Placed::new(stored(content), seq);
            let events = contents.iter().zip(seq..).map(placed).collect();
            Write::Batch { events, publisher: uid("SPOKE-1"), hub: hub() }
        }
        Step::Finish { id, dead, stale } => {
            let seq = if *stale { seq } else { model.seq(*id) };
            finish(&name(*id), seq, if *dead { Outcome::Dead } else { Outcome::Success })
        }
        Step::Attempt { id } => Write::Attempt(attempt(&name(*id), 1)),
        Step::Delete { id: number } => Write::Delete(Delete {
            what: Deletion::Event { id: id(&name(*number)) },
            before: None,
            most: 1,
            by: uid("SPOKE-1"),
            hub: hub(),
            at: AT,
        }),
    }
}

#[derive(Default, Clone)]
struct Model(HashMap<u8, Stored>);

#[derive(Clone)]
struct Stored {
    value: u8,
    rid: Option<u8>,
    /// None: it is stored only.
    seq: Option<u64>,
    ended: bool,
}

impl Model {
    fn seq(&self, id: u8) -> u64 {
        self.0.get(&id).and_then(|stored| stored.seq).unwrap_or(0)
    }

    /// What a write answers: `fresh`, `duplicate` with the number, `ok`, or a code.
    fn take(&mut self, step: &Step, seq: u64) -> String {
        match step {
            Step::Publish(content) => self.store(content, Some(seq)).unwrap_or_else(str::to_owned),
            Step::Persist(content) => self.store(content, None).unwrap_or_else(str::to_owned),
            Step::Batch(contents) => {
                let mut after = self.clone();
                let each = contents.iter().zip(seq..).map(|(content, seq)| after.store(content, Some(seq)));
                match each.collect::<Result<Vec<_>, _>>() {
                    Ok(words) => {
                        *self = after;
                        words.join(", ")
                    }
                    Err(code) => code.to_owned(),
                }
            }
            Step::Finish { id, stale, .. } => match self.0.get_mut(id) {
                Some(stored) if stored.seq.is_some() && !stale => {
                    if std::mem::replace(&mut stored.ended, true) { code::CLAIM_LOST } else { "ok" }.into()
                }
                _ => code::EVENT_NOT_FOUND.into(),
            },
            Step::Attempt { id } if self.0.contains_key(id) => "ok".into(),
            Step::Delete { id } if self.0.remove(id).is_some() => {
                for other in self.0.values_mut().filter(|other| other.rid == Some(*id)) {
                    other.rid = None;
                }
                "ok".into()
            }
            Step::Attempt { .. } | Step::Delete { .. } => code::EVENT_NOT_FOUND.into(),
        }
    }

    fn store(&mut self, content: &Content, seq: Option<u64>) -> Result<String, &'static str> {
        let Content { id, data, rid } = *content;
        let has_rid = rid.is_none_or(|rid| self.0.contains_key(&rid));
        match self.0.get_mut(&id) {
            Some(stored) if stored.rid != rid || stored.value != data / 2 => Err(code::EVENT_CONFLICT),
            Some(stored) if stored.seq.is_none() && seq.is_some() => {
                stored.seq = seq;
                Ok(format!("fresh {}", seq.unwrap_or(0)))
            }
            Some(stored) => Ok(format!("duplicate {}", stored.seq.unwrap_or(0))),
            None if !has_rid => Err(code::RID_NOT_FOUND),
            None => {
                self.0.insert(id, Stored { value: data / 2, rid, seq, ended: false });
                Ok(format!("fresh {}", seq.unwrap_or(0)))
            }
        }
    }
}

fn word(answer: &Answer) -> String {
    let word = |published: &Published| {
        format!("{} {}", if published.fresh { "fresh" } else { "duplicate" }, published.seq)
    };
    match answer {
        Ok(Written::Published(published)) => word(published),
        Ok(Written::Batch(all)) => all.iter().map(word).collect::<Vec<_>>().join(", "),
        other => code_of(other).into(),
    }
}

async fn agree(batches: &[Vec<Step>]) {
    let store = memory().await;
    let mut model = Model::default();
    let mut seq = 0;
    for batch in batches {
        let numbered: Vec<(&Step, u64)> = batch.iter().zip((seq + 1..).step_by(usize::from(MOST))).collect();
        seq += u64::try_from(batch.len()).unwrap() * u64::from(MOST);
        let mut expected = vec![String::new(); batch.len()];
        let mut writes = vec![None; batch.len()];
        for turn in 0..3 {
            for (at, (step, seq)) in numbered.iter().enumerate().filter(|(_, (step, _))| step.turn() == turn)
            {
                writes[at] = Some(write(step, *seq, &model));
                expected[at] = model.take(step, *seq);
            }
        }
        let answers = store.commit(writes.into_iter().map(Option::unwrap).collect()).await;
        assert_eq!(answers.iter().map(word).collect::<Vec<_>>(), expected);
    }
    let counts = store.counts(&hub()).await.unwrap();
    let published = model.0.values().filter(|stored| stored.seq.is_some()).count();
    let ended = model.0.values().filter(|stored| stored.ended).count();
    assert_eq!(usize::try_from(counts.events), Ok(model.0.len()));
    assert_eq!(usize::try_from(counts.published), Ok(published));
    assert_eq!(usize::try_from(counts.success + counts.failed), Ok(ended));
    assert_eq!(usize::try_from(counts.open), Ok(published - ended));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn batches_answer_as_if_taken_one_by_one(
        batches in prop::collection::vec(prop::collection::vec(step(), 0..20), 1..5)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(agree(&batches));
    }
}
