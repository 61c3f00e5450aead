//! Subscriptions and consumers, on every link.

use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};

use super::{
    Fleet, SETTLES,
    state::{LinkId, Stage, Standing, State, merge},
};
use crate::{
    event::{Fault, Position, code},
    spoke::command::{Answering, Command, ConsumeCommand, Failure, Key, Port, SubscribeCommand, Unanswered},
    wire::Since,
};

type Asked<T> = Vec<(LinkId, oneshot::Receiver<Result<T, Failure>>)>;

/// What the links said that were up.
struct Said<T> {
    begun: Vec<T>,
    /// Those that don't know the event from which the subscription is to begin.
    strange: Vec<(LinkId, Fault)>,
    refused: Option<Fault>,
    closed: Option<Fault>,
}

impl Fleet {
    /// Subscribes on all links; where it begins. The caller drops it if this fails.
    pub(in crate::spoke) async fn subscribe(
        &self,
        key: Key,
        subscribe: SubscribeCommand,
    ) -> Result<Position, Unanswered> {
        self.promptly(self.subscribing(key, subscribe)).await
    }

    async fn subscribing(&self, key: Key, subscribe: SubscribeCommand) -> Result<Position, Failure> {
        let by_id = matches!(subscribe.since, Some(Since::Id(_)));
        loop {
            self.settled().await;
            let asked = {
                let mut state = self.open()?;
                let shared = state.shares(subscribe.since.as_ref());
                let subscribe = SubscribeCommand { shared, ..subscribe.clone() };
                state.subscriptions.insert(key, subscribe.clone());
                ask_all(&state, |answer| Command::Subscribe { key, subscribe: subscribe.clone(), answer })
            };
            let said = self.gather(asked, by_id).await;
            if let Some(fault) = said.refused.or_else(|| unknown_to_all(&said.begun, &said.strange)) {
                return Err(Failure::Refused(fault));
            }
            let mut begun = Position::default();
            said.begun.iter().for_each(|position| merge(&mut begun, position));
            if !said.begun.is_empty() {
                if by_id {
                    self.begin_elsewhere(key, &begun, &said.strange);
                }
                return Ok(begun);
            }
            if let Some(fault) = said.closed {
                return Err(Failure::Closed(fault));
            }
            // The links were lost meanwhile: once more, from where it began.
            for link in self.state().links.values() {
                link.port.post(Command::Unsubscribe { key, answer: oneshot::channel().0 });
            }
        }
    }

    /// One hub has published the event from which the subscription is to begin: the others begin with its moment, which its
    /// number tells.
    fn begin_elsewhere(&self, key: Key, begun: &Position, strange: &[(LinkId, Fault)]) {
        let first = begun.hubs().filter_map(|hub| begun.seq(hub)).min().unwrap_or_default();
        let moment = Since::Time(i64::try_from(first / 1_000).unwrap_or(i64::MAX));
        let mut state = self.state();
        let State { links, subscriptions, .. } = &mut *state;
        // It may have been dropped.
        let Some(subscribe) = subscriptions.get_mut(&key) else { return };
        subscribe.since = Some(moment);
        for link in strange.iter().filter_map(|(id, _)| links.get(id)) {
            link.port.post(Command::Subscribe { key, subscribe: subscribe.clone(), answer: None });
        }
    }

    /// Takes a subscription off all hubs.
    pub(in crate::spoke) async fn unsubscribe(&self, key: Key) -> Result<(), Unanswered> {
        self.state().subscriptions.remove(&key);
        self.everywhere(|answer| Command::Unsubscribe { key, answer }).await
    }

    /// Consumes on all links.
    pub(in crate::spoke) async fn consume(
        &self,
        key: Key,
        consume: ConsumeCommand,
    ) -> Result<(), Unanswered> {
        self.promptly(self.consuming(key, consume)).await
    }

    async fn consuming(&self, key: Key, consume: ConsumeCommand) -> Result<(), Failure> {
        loop {
            self.settled().await;
            let asked = {
                let mut state = self.open()?;
                state.consumers.insert(key, consume.clone());
                state.widen();
                ask_all(&state, |answer| Command::Consume { key, consume: consume.clone(), answer })
            };
            let said = self.gather(asked, false).await;
            if let Some(fault) = said.refused {
                return Err(Failure::Refused(fault));
            }
            if !said.begun.is_empty() {
                return Ok(());
            }
            if let Some(fault) = said.closed {
                return Err(Failure::Closed(fault));
            }
            // The links were lost meanwhile: their sessions know it already, and say so when they are up.
        }
    }

    /// Stops a consumer at all hubs.
    pub(in crate::spoke) async fn stop(&self, key: Key) -> Result<(), Unanswered> {
        self.state().consumers.remove(&key);
        self.everywhere(|answer| Command::Stop { key, answer }).await
    }

    /// Asks every link, and waits for all of them.
    async fn everywhere(&self, command: impl Fn(Answering<()>) -> Command) -> Result<(), Unanswered> {
        let post = |port: &Port| {
            let (answer, answered) = oneshot::channel();
            port.post(command(answer));
            answered
        };
        let asked: Vec<_> = self.state().links.values().map(|link| post(&link.port)).collect();
        let answered = async {
            let mut refused = None;
            for answered in asked {
                // A link that is gone has nothing of it any more.
                if let Ok(Err(Failure::Refused(fault))) = answered.await {
                    refused.get_or_insert(fault);
                }
            }
            refused.map_or(Ok(()), |fault| Err(Failure::Refused(fault)))
        };
        self.promptly(answered).await
    }

    /// Waits until a link is up, and a moment for those that were never tried. An only link is asked at once.
    async fn settled(&self) {
        let by = Instant::now() + SETTLES;
        loop {
            let news = self.board().news();
            tokio::pin!(news);
            news.as_mut().enable();
            let is_up = {
                let state = self.state();
                let is_up = state.links.values().any(super::Link::is_up);
                let tried = state.links.values().all(|link| link.standing != Standing::New);
                if state.is_over() || state.alone().is_some() || (is_up && (tried || Instant::now() >= by)) {
                    return;
                }
                is_up
            };
            tokio::select! {
                () = news => {}
                () = sleep_until(by), if is_up => {}
            }
        }
    }

    fn open(&self) -> Result<std::sync::MutexGuard<'_, State>, Failure> {
        let state = self.state();
        if state.stage == Stage::Open && !state.links.is_empty() {
            return Ok(state);
        }
        drop(state);
        Err(Failure::Closed(self.closed()))
    }

    async fn gather<T>(&self, asked: Asked<T>, by_id: bool) -> Said<T> {
        let mut said = Said { begun: Vec::new(), strange: Vec::new(), refused: None, closed: None };
        for (link, answered) in asked {
            match answered.await {
                Ok(Ok(begun)) => said.begun.push(begun),
                Ok(Err(Failure::Refused(fault))) if by_id && fault.code == code::EVENT_NOT_FOUND => {
                    said.strange.push((link, fault));
                }
                Ok(Err(Failure::Refused(fault))) => _ = said.refused.get_or_insert(fault),
                Ok(Err(Failure::Closed(fault))) => said.closed = Some(fault),
                // It joins when it is up again.
                Ok(Err(Failure::LinkLost(_))) => {}
                Err(_) => said.closed = Some(self.closed()),
            }
        }
        said
    }

    async fn promptly<T>(&self, asking: impl Future<Output = Result<T, Failure>>) -> Result<T, Unanswered> {
        match tokio::time::timeout(self.deadline, asking).await {
            Ok(answered) => answered.map_err(Unanswered::Failed),
            Err(_) => Err(Unanswered::TimedOut(self.deadline)),
        }
    }
}

/// Registers with each link; those that are up are asked for an answer, and so is an only one.
fn ask_all<T>(state: &State, command: impl Fn(Option<Answering<T>>) -> Command) -> Asked<T> {
    let mut asked = Vec::new();
    for (id, link) in &state.links {
        let awaited = link.is_up() || state.links.len() == 1;
        let (answer, answered) = awaited.then(oneshot::channel).unzip();
        link.port.post(command(answer));
        asked.extend(answered.map(|answered| (*id, answered)));
    }
    asked
}

/// No hub has published the event.
fn unknown_to_all<T>(begun: &[T], strange: &[(LinkId, Fault)]) -> Option<Fault> {
    strange.first().filter(|_| begun.is_empty()).map(|(_, fault)| fault.clone())
}
