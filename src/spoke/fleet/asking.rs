//! What is asked of one hub, of each in turn, or of all at once.

use std::{
    collections::BTreeSet,
    future::{Future as _, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{sync::oneshot, time::Instant};

use super::{
    Fleet,
    state::{Home, LinkId, Stage},
};
use crate::{
    event::{Fault, code},
    spoke::{
        command::{Command, Failure, Found, QueryCommand, Unanswered, WaitCommand, Wanted},
        query::Query,
    },
};

type Answered = oneshot::Receiver<Result<Found, Failure>>;

impl Fleet {
    /// Asks the first hub that can be reached; what is away or refuses for now leaves it to the next one.
    pub(in crate::spoke) async fn ask(&self, query: Query) -> Result<Found, Unanswered> {
        match tokio::time::timeout(self.deadline, self.asking(query)).await {
            Ok(answered) => answered.map_err(Unanswered::Failed),
            Err(_) => Err(Unanswered::TimedOut(self.deadline)),
        }
    }

    async fn asking(&self, query: Query) -> Result<Found, Failure> {
        if query.concerns_all() && self.state().up().nth(1).is_some() {
            return self.ask_everywhere(&query).await;
        }
        let (mut asked, mut refusal) = (BTreeSet::new(), None);
        loop {
            let Some(answered) = self.ask_next(&query, &mut asked) else {
                return Err(refusal.map_or_else(|| Failure::Closed(self.closed()), Failure::Refused));
            };
            match answered.await {
                Ok(Err(Failure::Refused(fault))) if self.may_help(&query, &fault) => {
                    let _ = refusal.get_or_insert(fault);
                }
                Ok(answered) => return answered,
                Err(_) => return Err(Failure::Closed(self.closed())),
            }
        }
    }

    /// Whether another hub may say something else.
    fn may_help(&self, query: &Query, fault: &Fault) -> bool {
        // What changes something is asked again by the link itself.
        let for_now = fault.is_retryable() && !query.changes();
        let elsewhere = matches!(query, Query::Redrive(_)) && fault.code == code::UNSUPPORTED;
        (for_now || elsewhere) && self.state().alone().is_none()
    }

    /// Asks the next link that is up and wasn't asked. None: there is no other one.
    fn ask_next(&self, query: &Query, asked: &mut BTreeSet<LinkId>) -> Option<Answered> {
        let (answer, answered) = oneshot::channel();
        let command =
            Command::Query(QueryCommand { query: query.clone(), again: false, bound: false, answer });
        let mut state = self.state();
        if asked.is_empty() {
            if matches!(state.home(&command), Home::Nowhere) && state.is_over() {
                return None;
            }
            let first = state.alone().map(|_| LinkId::MIN).or_else(|| state.up().map(|(id, _)| id).next());
            asked.insert(first.unwrap_or_default());
            self.route(&mut state, command);
            return Some(answered);
        }
        let next = state.up().find(|(id, _)| !asked.contains(id));
        let (id, link) = next?;
        asked.insert(id);
        link.port.post(command);
        Some(answered)
    }

    /// Sends a query without holding the fleet while its answer is awaited.
    pub(in crate::spoke) fn post(&self, query: Query) -> Option<Answered> {
        self.ask_next(&query, &mut BTreeSet::new())
    }

    /// Waits at every hub: the first answer counts, and "not in time" only if all say so. None: nobody says anything.
    pub(in crate::spoke) async fn wait_at_all(
        &self,
        wanted: &Wanted,
        deadline: Instant,
    ) -> Option<Result<Found, Failure>> {
        let (mut links, mut race) = (BTreeSet::new(), Race::default());
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            self.wait_at_new(wanted, deadline, &mut links, &mut race.asked);
            tokio::select! {
                answered = poll_fn(|context| race.poll(context)) => return answered,
                // One more is asked too.
                () = arrived => {}
            }
        }
    }

    fn wait_at_new(
        &self,
        wanted: &Wanted,
        deadline: Instant,
        links: &mut BTreeSet<LinkId>,
        asked: &mut Vec<Answered>,
    ) {
        let state = self.state();
        if state.stage == Stage::Closing {
            return;
        }
        for (_, link) in state.links.iter().filter(|(id, _)| links.insert(**id)) {
            let (answer, answered) = oneshot::channel();
            link.port.post(Command::Wait(WaitCommand { wanted: wanted.clone(), deadline, answer }));
            asked.push(answered);
        }
    }
}

/// Several hubs that wait for the same.
#[derive(Default)]
struct Race {
    asked: Vec<Answered>,
    /// What those said that have given up.
    refused: Option<Fault>,
}

impl Race {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Found, Failure>>> {
        let (mut won, refused) = (None, &mut self.refused);
        self.asked.retain_mut(|answered| match Pin::new(answered).poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(Err(Failure::Refused(fault)))) if fault.code == code::WAIT_TIMEOUT => {
                *refused = Some(fault);
                false
            }
            Poll::Ready(Ok(answer)) => {
                // What isn't there at one hub is there at none: they have one database.
                won.get_or_insert(answer);
                false
            }
            // Its link is no more.
            Poll::Ready(Err(_)) => false,
        });
        match won {
            Some(answer) => Poll::Ready(Some(answer)),
            None if self.asked.is_empty() => {
                Poll::Ready(self.refused.take().map(|fault| Err(Failure::Refused(fault))))
            }
            None => Poll::Pending,
        }
    }
}
