//! Any batches against a model that takes their writes one by one.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::{event::Pattern, wire::Deletion};

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
        group: usize,
        dead: bool,
        stale: bool,
    },
    Attempt {
        id: u8,
    },
    /// `again`: as if it weren't known whether it was written.
    Retry {
        id: u8,
        group: usize,
        again: bool,
    },
    Redrive {
        id: u8,
        group: usize,
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
            Step::Finish { .. } | Step::Attempt { .. } | Step::Retry { .. } => 1,
            Step::Redrive { .. } => 2,
            Step::Delete { .. } => 3,
        }
    }
}

/// The default group, and one with a name.
const GROUPS: [&str; 2] = ["", "mail"];
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
        5 => (id.clone(), 0..2usize, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(id, group, dead, stale)| Step::Finish { id, group, dead, stale }),
        5 => (id.clone(), 0..2usize, prop::bool::weighted(0.2))
            .prop_map(|(id, group, again)| Step::Retry { id, group, again }),
        4 => (id.clone(), 0..2usize).prop_map(|(id, group)| Step::Redrive { id, group }),
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
        Step::Finish { id, group, dead, stale } => {
            let seq = if *stale { seq } else { model.seq(*id) };
            let standing = model.standing(*id, *group);
            let outcome = if *dead { Outcome::Dead } else { Outcome::Success };
            let waits = standing.waits.is_some();
            in_group(finish(&name(*id), seq, outcome), GROUPS[*group], standing.round(), waits)
        }
        Step::Retry { id, group, again } => {
            let standing = model.standing(*id, *group);
            let number = (standing.waits.unwrap_or(0) + u32::from(!again)).max(1);
            retry(&name(*id), model.seq(*id), GROUPS[*group], (standing.round(), number), AT)
        }
        Step::Redrive { id, group } => redrive(GROUPS[*group], Some(&name(*id))),
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
    groups: [Place; 2],
}

/// How it stands in a group.
#[derive(Default, Clone, Copy)]
struct Place {
    /// Rounds that were redriven.
    over: u32,
    ended: Option<bool>,
    /// Attempts, while it waits.
    waits: Option<u32>,
}

impl Place {
    fn round(self) -> u32 {
        self.over + 1
    }

    fn is_dead(self) -> bool {
        self.ended == Some(true)
    }
}

impl Model {
    fn seq(&self, id: u8) -> u64 {
        self.0.get(&id).and_then(|stored| stored.seq).unwrap_or(0)
    }

    fn standing(&self, id: u8, group: usize) -> Place {
        self.0.get(&id).map_or_else(Place::default, |stored| stored.groups[group])
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
            Step::Finish { id, group, dead, stale } => match self.0.get_mut(id) {
                Some(stored) if stored.seq.is_some() && !stale => {
                    let place = &mut stored.groups[*group];
                    if place.ended.is_some() {
                        return code::CLAIM_LOST.into();
                    }
                    *place = Place { over: place.over, ended: Some(*dead), waits: None };
                    "ok".into()
                }
                _ => code::EVENT_NOT_FOUND.into(),
            },
            Step::Retry { id, group, again } => match self.0.get_mut(id) {
                Some(stored) if stored.seq.is_some() => {
                    let place = &mut stored.groups[*group];
                    if place.ended.is_some() {
                        return code::CLAIM_LOST.into();
                    }
                    place.waits = Some((place.waits.unwrap_or(0) + u32::from(!again)).max(1));
                    "ok".into()
                }
                _ => code::EVENT_NOT_FOUND.into(),
            },
            Step::Redrive { id, group } => match self.0.get_mut(id) {
                Some(stored) if stored.groups[*group].is_dead() => {
                    let place = &mut stored.groups[*group];
                    *place = Place { over: place.over + 1, ended: None, waits: Some(0) };
                    "ok".into()
                }
                Some(_) => code::NOT_DEAD.into(),
                None => code::EVENT_NOT_FOUND.into(),
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
                self.0.insert(id, Stored { value: data / 2, rid, seq, groups: Default::default() });
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
    let store = fresh().await;
    let settings = crate::wire::GroupSettings::default();
    one(&store, Write::SetGroup { name: "mail".into(), settings, at: AT }).await.unwrap();
    let mut model = Model::default();
    let mut seq = 0;
    for batch in batches {
        let numbered: Vec<(&Step, u64)> = batch.iter().zip((seq + 1..).step_by(usize::from(MOST))).collect();
        seq += u64::try_from(batch.len()).unwrap() * u64::from(MOST);
        let mut expected = vec![String::new(); batch.len()];
        let mut writes = vec![None; batch.len()];
        for turn in 0..4 {
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
    let ended = model.0.values().filter(|stored| stored.groups[0].ended.is_some()).count();
    assert_eq!(usize::try_from(counts.events), Ok(model.0.len()));
    assert_eq!(usize::try_from(counts.published), Ok(published));
    assert_eq!(usize::try_from(counts.success + counts.failed), Ok(ended));
    assert_eq!(usize::try_from(counts.open), Ok(published - ended));
    for (group, name) in GROUPS.into_iter().enumerate() {
        stands_as(&store, &model, group, name).await;
    }
}

/// Each event, and what is counted and paged.
async fn stands_as(store: &Store, model: &Model, group: usize, group_name: &str) {
    let key = GroupKey { name: group_name, round: 1 };
    let count = |test: &dyn Fn(&Place) -> bool| {
        let published = model.0.values().filter(|stored| stored.seq.is_some());
        published.filter(|stored| test(&stored.groups[group])).count() as u64
    };
    let counted = store.group_counts(&hub(), key).await.unwrap();
    assert_eq!(counted.retrying, count(&|place| place.waits.is_some()));
    assert_eq!(counted.dead, count(&|place| place.is_dead()));
    let any = Pattern::any();
    let open = store.open_page(&hub(), key, 0, (&any, &any), 100, 1_000_000).await.unwrap();
    let waiting = count(&|place| place.ended.is_none() && place.waits.is_none());
    assert_eq!(open.events.len() as u64, waiting);
    let retries = store.retry_page(&hub(), group_name, (0, 0), i64::MAX, 100, 1_000_000).await.unwrap();
    assert_eq!(retries.events.len() as u64, counted.retrying);
    for retry in retries.events {
        let place = model.standing(retry.open.event.id[1..].parse().unwrap(), group);
        assert_eq!((retry.open.round, Some(retry.open.attempts)), (place.round(), place.waits));
    }
    for (number, stored) in &model.0 {
        let standing = store.standing_in(&id(&name(*number)), group_name).await.unwrap();
        assert_eq!(matches!(standing, Standing::Ended(_)), stored.groups[group].ended.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if engines::engine().is_sqlite() { 96 } else { 8 }))]

    #[test]
    fn batches_answer_as_if_taken_one_by_one(
        batches in prop::collection::vec(prop::collection::vec(step(), 0..20), 1..5)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(agree(&batches));
    }
}
