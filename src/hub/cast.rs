//! Asks the whole cast how it is: in parallel, under one deadline, and nobody twice at a time.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use actix::{Actor, Context, Handler, dev::ToEnvelope};
use actix_rt::ArbiterHandle;
use serde::Serialize;
use serde_json::Value;
use tokio::{
    sync::{Mutex, oneshot, watch},
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::guardian::Guardian;
use crate::{
    actors::{
        announcer::Announcer,
        connection::Core,
        deliveries::{Held, Holding},
        keeper::Keeper,
        listener::{Busiest, BusiestLinks, LinkState, Listener},
        mail::{Envelope, Handle, Mail, MailError},
        monitor::Monitor,
        outlet::LinkId,
        registry::{Wanted, Wanting},
        snapshot::{Snapshot, State},
        warden::Warden,
    },
    metrics::{ActorKind, ActorsReport, Dialect, Gauges, Label, Metrics, Told},
};

/// How long the actors have to answer, all of them together.
const DEADLINE: Duration = Duration::from_millis(500);

/// Knows whom to ask. Works in any thread with tokio, best in one that isn't the actors' own.
#[derive(Debug)]
pub struct Cast {
    /// The guardian.
    pub guardian: Handle<Guardian>,
    /// The core, while there is one.
    pub core: watch::Receiver<Option<Core>>,
    /// The listener.
    pub listener: Handle<Listener>,
    /// The monitor.
    pub monitor: Handle<Monitor>,
    /// The warden.
    pub warden: Handle<Warden>,
    /// The announcer: another one after a failure.
    pub announcer: watch::Receiver<Handle<Announcer>>,
    /// The keeper: another one after a failure.
    pub keeper: watch::Receiver<Handle<Keeper>>,
    /// The numbers beside the states.
    pub metrics: Metrics,
    /// What was asked.
    pub asked: Mutex<Asked>,
}

/// The questions that are under way, and the last report.
#[derive(Debug, Default)]
pub struct Asked {
    guardian: Question<State>,
    listener: Question<State>,
    monitor: Question<State>,
    warden: Question<State>,
    announcer: Question<State>,
    keeper: Question<State>,
    journal: Question<State>,
    registry: Question<State>,
    deliveries: Question<State>,
    scheduler: Question<State>,
    collector: Question<State>,
    busiest: Question<BusiestLinks>,
    wanting: Question<Wanted>,
    holding: Question<Held>,
    last: Option<(Instant, ActorsReport)>,
}

/// One question. It stays open when its answer is late, and isn't asked again before: an actor that is stuck finds
/// one of them in its mailbox, however often people look.
#[derive(Debug)]
struct Question<T>(Option<JoinHandle<Result<T, MailError>>>);

impl<T> Default for Question<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Send + 'static> Question<T> {
    /// Asks, unless it is asked already, and waits for the answer until then. Nobody to ask: gone.
    async fn until<F>(&mut self, deadline: Instant, ask: Option<F>) -> Result<T, Told>
    where
        F: Future<Output = Result<T, MailError>> + Send + 'static,
    {
        let Some(ask) = ask else { return Err(Told::Gone) };
        // An answer that came after its time is of no use now.
        self.0.take_if(|open| open.is_finished());
        // It stays in its place while it is awaited: whoever looks may give up at any moment.
        let answer = timeout_at(deadline, self.0.get_or_insert_with(|| tokio::spawn(ask))).await;
        let answer = answer.map_err(|_| Told::Late)?;
        self.0 = None;
        answer.ok().and_then(Result::ok).ok_or(Told::Gone)
    }
}

/// The future of a question. It owns its handle, since it may outlive this report.
fn put<A, M>(
    to: &Handle<A>,
    question: M,
) -> impl Future<Output = Result<M::Result, MailError>> + Send + use<A, M>
where
    A: Actor<Context = Context<A>> + Handler<Envelope<M>>,
    M: Mail,
    M::Result: Send,
    Context<A>: ToEnvelope<A, Envelope<M>>,
{
    let to = to.clone();
    async move { to.deliver(question).await }
}

/// The links, as one kind of actor.
#[derive(Debug, Serialize)]
struct ConnectionsState {
    /// Links that are up, by what they speak.
    links: BTreeMap<&'static str, i64>,
    /// Those that moved most bytes.
    busiest: Vec<ConnectionState>,
}

#[derive(Debug, Serialize)]
struct ConnectionState {
    #[serde(flatten)]
    link: LinkState,
    /// Subscriptions and consumers; none if the registry didn't say in time.
    subscriptions: Option<usize>,
    /// Events that it holds to work on; none if deliveries didn't say in time.
    claims: Option<usize>,
}

/// Asks from a thread of links: the handle's own may have no timers, and the actors' own may be the one that is stuck.
#[derive(Debug, Clone)]
pub struct Onlooker {
    /// Who knows whom to ask.
    pub cast: Arc<Cast>,
    /// The thread.
    pub thread: Option<ArbiterHandle>,
}

impl Onlooker {
    /// What everyone tells; after the hub's end they are all gone.
    pub async fn report(&self, metrics: &Metrics) -> ActorsReport {
        let (done, report) = oneshot::channel();
        let cast = self.cast.clone();
        if let Some(thread) = &self.thread {
            thread.spawn(async move {
                // Whoever asked may not wait any more.
                let _ = done.send(cast.report().await);
            });
        }
        report.await.unwrap_or_else(|_| ActorsReport::new(metrics, BTreeMap::new()))
    }
}

impl Cast {
    /// What everyone tells. Those who ask at the same time share a report.
    pub async fn report(&self) -> ActorsReport {
        let wanted = Instant::now();
        let mut asked = self.asked.lock().await;
        if let Some((_, last)) = asked.last.as_ref().filter(|(began, _)| *began >= wanted) {
            return last.clone();
        }
        let began = Instant::now();
        let states = self.ask(&mut asked, began + DEADLINE).await;
        let report = ActorsReport::new(&self.metrics, states);
        asked.last = Some((began, report.clone()));
        report
    }

    async fn ask(
        &self,
        asked: &mut Asked,
        deadline: Instant,
    ) -> BTreeMap<&'static str, (Told, Option<Value>)> {
        let core = self.core.borrow().clone();
        let core = core.as_ref();
        let announcer = self.announcer.borrow().clone();
        let keeper = self.keeper.borrow().clone();
        let Asked { busiest, wanting, holding, .. } = asked;
        let connections = self.connections((busiest, wanting, holding), core, deadline);
        let (
            guardian,
            listener,
            monitor,
            warden,
            announcer,
            keeper,
            journal,
            registry,
            deliveries,
            scheduler,
            collector,
            connections,
        ) = tokio::join!(
            asked.guardian.until(deadline, Some(put(&self.guardian, Snapshot))),
            asked.listener.until(deadline, Some(put(&self.listener, Snapshot))),
            asked.monitor.until(deadline, Some(put(&self.monitor, Snapshot))),
            asked.warden.until(deadline, Some(put(&self.warden, Snapshot))),
            asked.announcer.until(deadline, Some(put(&announcer, Snapshot))),
            asked.keeper.until(deadline, Some(put(&keeper, Snapshot))),
            asked.journal.until(deadline, core.map(|core| put(&core.journal, Snapshot))),
            asked.registry.until(deadline, core.map(|core| put(&core.registry, Snapshot))),
            asked.deliveries.until(deadline, core.map(|core| put(&core.deliveries, Snapshot))),
            asked.scheduler.until(deadline, core.map(|core| put(&core.scheduler, Snapshot))),
            asked.collector.until(deadline, core.map(|core| put(&core.collector, Snapshot))),
            connections,
        );
        let told = [
            (ActorKind::Guardian, guardian),
            (ActorKind::Listener, listener),
            (ActorKind::Monitor, monitor),
            (ActorKind::Warden, warden),
            (ActorKind::Announcer, announcer),
            (ActorKind::Keeper, keeper),
            (ActorKind::Journal, journal),
            (ActorKind::Registry, registry),
            (ActorKind::Deliveries, deliveries),
            (ActorKind::Scheduler, scheduler),
            (ActorKind::Collector, collector),
            (ActorKind::Connection, connections),
        ];
        let states = told.into_iter().map(|(kind, answer)| match answer {
            Ok(State(state)) => (kind.as_str(), (Told::InTime, Some(state))),
            Err(why) => (kind.as_str(), (why, None)),
        });
        states.collect()
    }

    /// Links are asked through those who know all of them: there may be thousands.
    async fn connections(
        &self,
        (busiest, wanting, holding): (
            &mut Question<BusiestLinks>,
            &mut Question<Wanted>,
            &mut Question<Held>,
        ),
        core: Option<&Core>,
        deadline: Instant,
    ) -> Result<State, Told> {
        let BusiestLinks(links) = busiest.until(deadline, Some(put(&self.listener, Busiest))).await?;
        let ids: Arc<[LinkId]> = links.iter().map(|link| link.id).collect();
        let (wanted, held) = tokio::join!(
            wanting.until(deadline, core.map(|core| put(&core.registry, Wanting(ids.clone())))),
            holding.until(deadline, core.map(|core| put(&core.deliveries, Holding(ids.clone())))),
        );
        // Both may answer what was asked before: then some of these links are missing.
        let of = |counts: &Option<HashMap<LinkId, usize>>, id| counts.as_ref()?.get(&id).copied();
        let (wanted, held) = (wanted.ok().map(|wanted| wanted.0), held.ok().map(|held| held.0));
        let state = |link: LinkState| ConnectionState {
            subscriptions: of(&wanted, link.id),
            claims: of(&held, link.id),
            link,
        };
        let links_up: &Gauges<Dialect> = &self.metrics.hub().links;
        Ok(State::of(&ConnectionsState {
            links: Dialect::ALL
                .iter()
                .map(|&dialect| (dialect.as_str(), links_up.of(dialect).get()))
                .collect(),
            busiest: links.into_iter().map(state).collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
        task::{Context, Waker},
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_gives_up_leaves_the_question_open() {
        let (mut question, asked) = (Question::<State>::default(), Arc::new(AtomicUsize::new(0)));
        let stuck = || {
            let asked = asked.clone();
            Some(async move {
                asked.fetch_add(1, Ordering::Relaxed);
                pending().await
            })
        };
        for _ in 0..3 {
            let until = pin!(question.until(Instant::now() + DEADLINE, stuck()));
            assert!(until.poll(&mut Context::from_waker(Waker::noop())).is_pending());
            tokio::task::yield_now().await;
        }
        assert!(matches!(question.until(Instant::now() + DEADLINE, stuck()).await, Err(Told::Late)));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
