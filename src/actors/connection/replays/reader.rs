//! One subscription from its first stored event to the moment when it is live.
//!
//! It reads the store in pages up to what is dispatched, and no further than its link takes. Near the present it takes a
//! seat with the registry, which from then on keeps what is dispatched; it reads up to the seat, sends what was kept, and
//! is live: each event comes from one side of the seat, once.

use std::{rc::Rc, sync::Arc, time::Duration};

use bytes::BytesMut;

use super::{Around, Asked, since::Span};
use crate::{
    actors::{
        connection::restart,
        dispatched::Dispatched,
        outlet::{EventPush, Frame},
        registry::{GoLive, Switch, TakeSeat},
    },
    event::{Fault, Pattern, Retry},
    metrics::{CutReason, Metrics},
    store::{RemovedMark, ReplayPage},
    wire::{Answer, RemovedEvents, Reply, Sub},
};

/// Events of a page at most.
const PAGE_EVENTS: usize = 1_000;
/// Their bytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that go into the link's queue at once.
const CHUNK: usize = 64 * 1024;
/// A reader that lags by no more than this takes a seat. Numbers are microseconds.
const NEAR: u64 = 1_000_000;
/// The shortest wait before the store is asked again after it failed.
const AGAIN: Duration = Duration::from_millis(100);

/// Answers the request and serves the subscription until it is live.
pub async fn run(around: Rc<Around>, asked: Asked) {
    let Asked { req, sub, domain, name, since } = asked;
    let _under_way = UnderWay::begin(&around.metrics);
    let turn = around.turns.acquire().await;
    let span = around.span(&since).await;
    drop(turn);
    let span = match span {
        Ok(span) => span,
        Err(fault) => {
            around.refused.borrow_mut().push(sub);
            around.outlet.room().await;
            around.outlet.answer(req, Err(fault));
            return;
        }
    };
    around.outlet.answer(req, Ok(Answer::Position(span.after)));
    let mut reader = Reader { around, sub, domain, name, span, mark: RemovedMark::default() };
    if let Err(fault) = reader.serve().await {
        // It has no other way to be told.
        reader.around.outlet.cut(CutReason::of(&fault.code), fault);
    }
}

struct Reader {
    around: Rc<Around>,
    sub: Sub,
    domain: Pattern,
    name: Pattern,
    /// What there is to read as far as it knows; it moves on.
    span: Span,
    /// What was removed up to here was told.
    mark: RemovedMark,
}

impl Reader {
    async fn serve(&mut self) -> Result<(), Fault> {
        let around = self.around.clone();
        loop {
            // It is never closed.
            let _turn = around.turns.acquire().await;
            if self.span.after < self.span.head {
                self.page().await?;
                continue;
            }
            self.span.head = around.head().await?;
            if self.span.head.saturating_sub(self.span.after) <= NEAR && self.end().await? {
                return Ok(());
            }
        }
    }

    /// Tries to be live. False: more was dispatched meanwhile than is kept, there is more to read.
    async fn end(&mut self) -> Result<bool, Fault> {
        let (outlet, registry) = (&self.around.outlet.clone(), &self.around.registry.clone());
        let (sub, domain, name) = (self.sub, self.domain.clone(), self.name.clone());
        let seat = TakeSeat { outlet: outlet.clone(), sub, domain, name };
        self.span.head = registry.deliver(seat).await.map_err(|_| restart())?;
        while self.span.after < self.span.head {
            self.page().await?;
        }
        loop {
            let go = GoLive { outlet: outlet.clone(), sub };
            match registry.deliver(go).await.map_err(|_| restart())? {
                Switch::Live => return Ok(true),
                Switch::Kept(events) => {
                    let last = events.last().map(|event| event.seq);
                    self.send(events.into_iter()).await;
                    self.span.after = last.unwrap_or(self.span.after);
                }
                Switch::Behind(head) => {
                    self.span.head = head;
                    return Ok(false);
                }
            }
        }
    }

    /// Reads and sends one page, after a word on what is missing in it.
    async fn page(&mut self) -> Result<(), Fault> {
        let ReplayPage { events, to } = loop {
            match self.read().await {
                Ok(page) => break page,
                Err(Fault { retry: Retry::After(wait), .. }) => tokio::time::sleep(wait.max(AGAIN)).await,
                Err(fault) => return Err(fault),
            }
        };
        self.send(events.into_iter().map(|(event, seq)| Arc::new(Dispatched::new(event, seq)))).await;
        self.span.after = to;
        Ok(())
    }

    async fn read(&mut self) -> Result<ReplayPage, Fault> {
        let Around { hub, store, .. } = &*self.around;
        let Span { after, head } = self.span;
        let patterns = (&self.domain, &self.name);
        let page = store.replay_page(hub, (after, head), patterns, PAGE_EVENTS, PAGE_BYTES).await?;
        // Looked up after the page was read: whatever is missing in it is on record.
        let (removed, mark) = store.removed_since(hub, after, self.mark).await?;
        self.mark = mark;
        let removed = removed.iter().filter(|removed| self.domain.matches(&removed.domain));
        let gap = removed.fold(None, |gap: Option<RemovedEvents>, removed| {
            let gap = gap.unwrap_or(RemovedEvents { from: u64::MAX, to: 0, events: 0 });
            Some(RemovedEvents {
                from: gap.from.min(removed.first_seq.max(after + 1)),
                to: gap.to.max(removed.last_seq),
                events: gap.events.saturating_add(removed.events),
            })
        });
        if let Some(removed) = gap {
            self.tell(removed).await;
        }
        Ok(page)
    }

    async fn tell(&self, removed: RemovedEvents) {
        let mut bytes = BytesMut::new();
        let gap = Reply::Gap { sub: self.sub, removed };
        // Numbers hold no control character.
        if gap.encode(&mut bytes).is_ok() {
            self.around.outlet.room().await;
            self.around.outlet.send(Frame::Raw(bytes.freeze()));
        }
    }

    /// Sends events as the link takes them.
    async fn send(&self, events: impl Iterator<Item = Arc<Dispatched>>) {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        for event in events {
            let weight = EventPush::weight_of(&event);
            if !chunk.is_empty() && bytes + weight > CHUNK {
                self.put(std::mem::take(&mut chunk), std::mem::take(&mut bytes)).await;
            }
            chunk.push(EventPush { subs: vec![self.sub], event });
            bytes += weight;
        }
        if !chunk.is_empty() {
            self.put(chunk, bytes).await;
        }
    }

    async fn put(&self, chunk: Vec<EventPush>, bytes: usize) {
        let Around { outlet, metrics, .. } = &*self.around;
        outlet.room_for(bytes).await;
        metrics.hub().replayed.add(chunk.len() as u64);
        metrics.hub().delivered.add(chunk.len() as u64);
        outlet.send(Frame::Events(chunk));
    }
}

/// A replay under way, for the metrics.
struct UnderWay(Metrics);

impl UnderWay {
    fn begin(metrics: &Metrics) -> Self {
        metrics.hub().replays.inc();
        Self(metrics.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.hub().replays.dec();
    }
}
