//! What concerns every hub: each does its part, and the answers are put together.

use tokio::sync::oneshot;

use super::Fleet;
use crate::{
    event::code,
    spoke::{
        command::{Command, Failure, Found, QueryCommand},
        query::Query,
    },
    wire::{Answer, Backlog},
};

impl Fleet {
    /// Asks each hub that is up, one after the other. What one refuses is refused, but for what the hub before has taken away.
    pub(super) async fn ask_everywhere(&self, query: &Query) -> Result<Found, Failure> {
        let ports: Vec<_> = self.state().up().map(|(_, link)| link.port.clone()).collect();
        let mut all: Option<Found> = None;
        for port in ports {
            let (answer, answered) = oneshot::channel();
            port.post(Command::Query(QueryCommand {
                query: query.clone(),
                again: false,
                bound: true,
                answer,
            }));
            let told = answered.await.unwrap_or_else(|_| Err(Failure::Closed(self.closed())));
            match (&mut all, told) {
                (Some(all), Ok(found)) => combine(&mut all.answer, found.answer),
                (None, Ok(found)) => all = Some(found),
                (Some(_), Err(Failure::Refused(fault))) if is_gone(&fault.code) => {}
                // A look leaves out what is away.
                (_, Err(Failure::LinkLost(_))) if !query.changes() => {}
                (_, Err(failure)) => return Err(failure),
            }
        }
        all.ok_or_else(|| Failure::Closed(self.closed()))
    }
}

/// Whether the hub before may have taken away what is asked for.
fn is_gone(code: &str) -> bool {
    [code::GROUP_NOT_FOUND, code::BINDING_NOT_FOUND].contains(&code)
}

/// Two hubs' parts of one answer.
fn combine(all: &mut Answer, more: Answer) {
    match (all, more) {
        (Answer::Group(all), Answer::Group(more)) => all.events += more.events,
        (Answer::Redriven(all), Answer::Redriven(more)) => *all += more,
        (Answer::Backlog(all), Answer::Backlog(more)) => {
            for stands in more {
                match all.iter_mut().find(|known| known.group == stands.group) {
                    Some(known) => add(known, stands),
                    None => all.push(stands),
                }
            }
        }
        _ => {}
    }
}

fn add(all: &mut Backlog, more: Backlog) {
    all.pending = all.pending.zip(more.pending).map(|(one, other)| one + other);
    all.in_flight += more.in_flight;
    all.retrying += more.retrying;
    all.dead += more.dead;
    all.oldest = all.oldest.into_iter().chain(more.oldest).min();
    // A consumer of ours is connected to each of them.
    if more.consumers > all.consumers {
        (all.consumers, all.connected) = (more.consumers, more.connected);
    }
}
