//! Dead letters: the event that tells of a dead one, published with its outcome.

#[cfg(test)]
mod tests;

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{groups::GroupNo, policy::Policy};
use crate::{
    actors::dispatched::Dispatched,
    event::{Data, Domain, EventId, Name, NewEvent},
    wire::Attempt,
};

/// How many bytes of a digest make an id: enough that no two events share one.
const DIGEST: usize = 20;
/// The bytes of the last error's beginning that a letter has.
const ERROR_BYTES: usize = 1024;

/// Writes dead letters, for all groups of a hub. Clones know the same.
#[derive(Debug, Clone)]
pub struct Letters {
    /// What arrives there is never told of again, whoever fails at it.
    domains: Rc<RefCell<HashMap<GroupNo, Domain>>>,
    /// The most bytes of an event's data.
    most: usize,
}

/// The data of a letter.
#[derive(Serialize)]
struct Told<'a> {
    event: &'a EventId,
    group: &'a str,
    domain: &'a Domain,
    name: &'a Name,
    reason: &'a str,
    error: &'a str,
    attempts: u32,
    round: u32,
}

impl Letters {
    /// Letters whose data has at most so many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { domains: Rc::default(), most }
    }

    /// Those of a group go to this domain from now on; none: there are none, or there is no such group any more.
    pub fn go_to(&self, no: GroupNo, domain: Option<&Domain>) {
        let mut domains = self.domains.borrow_mut();
        match domain {
            Some(domain) => domains.insert(no, domain.clone()),
            None => domains.remove(&no),
        };
    }

    /// The letter about an event that is dead with this attempt, if this policy wants one.
    #[must_use]
    pub fn of(&self, policy: &Policy, dead: &Dispatched, last: &Attempt) -> Option<Box<NewEvent>> {
        let domain = policy.dead_letter.as_ref()?;
        let event = &dead.event;
        if *domain == event.domain || self.domains.borrow().values().any(|letters| *letters == event.domain) {
            return None;
        }
        let group = last.group.as_ref().map_or("", |group| group.as_str());
        let told = serde_json::to_string(&Told {
            event: &event.id,
            group,
            domain: &event.domain,
            name: &event.name,
            reason: &last.reason,
            error: &last.error[..last.error.floor_char_boundary(ERROR_BYTES)],
            attempts: last.number,
            round: last.round,
        })
        .ok()?;
        let whole = (told.len() + event.data.len() < self.most)
            .then(|| format!("{},\"data\":{}}}", told.trim_end_matches('}'), event.data.as_str()));
        // The data may be nested as deeply as an event's may: one level deeper it doesn't fit.
        let data = whole.and_then(|whole| Data::parse(whole).ok()).or_else(|| Data::parse(told).ok())?;
        Some(Box::new(NewEvent {
            id: EventId::parse(id_of(&event.id, group, last.round)).ok()?,
            domain: domain.clone(),
            name: event.name.clone(),
            pid: event.pid.clone(),
            rid: Some(event.id.clone()),
            data,
        }))
    }
}

/// One id for each event, group and round: what is recorded twice is published once.
fn id_of(event: &EventId, group: &str, round: u32) -> String {
    // Neither an id nor a name has control characters.
    let digest = Sha256::digest(format!("{event}\0{group}\0{round}"));
    let mut id = "dl-".to_owned();
    digest.iter().take(DIGEST).for_each(|byte| id.push_str(&format!("{byte:02x}")));
    id
}
