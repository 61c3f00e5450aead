//! The naive world around a group: a database, links, and messages that take their time. It checks what the group
//! does as it does it.

mod applied;
mod counted;
mod npm;
mod ordered;
mod retried;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use self::{ordered::Ordered, retried::DueReading};
use super::{
    super::{
        binding::{Binding, Page, PageWanted, Waiting},
        budget::Budget,
        consumer::{Consumer, ConsumerKey},
        effects::{Effects, Finish, Retry, Verdict},
        group::{Group, Identity},
        groups::{GroupNo, Shared},
        letters::Letters,
        pending::MarksWanted,
        tokens::Tokens,
        windows::Windows,
    },
    Npm, Step,
};
use crate::{
    actors::{
        clock::Now,
        dispatched::Dispatched,
        outlet::{LinkId, Outlet},
    },
    event::{Data, Domain, Event, EventId, Name, Outcome, Pattern, Pid, Uid},
    store::{Gone, OpenMark},
    wire::{NackOptions, Token},
};

const DOMAINS: [&str; 2] = ["a", "b"];
const PIDS: usize = 4;
const PATTERNS: [&str; 3] = ["*", "a", "b"];
/// Rows of a page.
const PAGE: usize = 4;
/// How long a claim is held, in milliseconds.
const LEASE: u64 = 4_000;
const MAX_ATTEMPTS: u32 = 3;

/// A row of the database.
struct Row {
    event: Arc<Dispatched>,
    open: bool,
    deleted: bool,
    dead: bool,
    round: u32,
    attempts: u32,
    /// It waits for its next attempt: when that is due.
    due: Option<i64>,
    /// npm spokes know of it.
    told: bool,
    /// Told before the last restart: the group can't know.
    told_before: bool,
    /// An npm spoke has claimed it.
    npm: bool,
    /// It was claimed for a consumer of ours.
    ours: bool,
}

/// What was committed, on its way through the registry.
enum Way {
    Event(Arc<Dispatched>, Npm),
    Deleted(Gone),
}

struct Wish {
    id: i64,
    pattern: Pattern,
    start: u64,
}

struct Member {
    binding: i64,
    credit: usize,
    stopped: bool,
}

/// A page on its way; read or not.
struct Reading {
    binding: i64,
    wanted: PageWanted,
    read: Option<(Vec<Waiting>, u64, bool)>,
}

pub struct World {
    group: Group,
    rows: BTreeMap<u64, Row>,
    wishes: Vec<Wish>,
    cursor: u64,
    on_the_way: VecDeque<Way>,
    npm_link: Outlet,
    /// Claims to be made; then to be told.
    reserves: Vec<(Token, u64)>,
    reserved: VecDeque<(Token, Option<bool>)>,
    now: Now,
    links: Vec<Outlet>,
    members: BTreeMap<ConsumerKey, Member>,
    /// Un-acked, with the attempt's number.
    held: BTreeMap<Token, (ConsumerKey, u64, u32)>,
    /// When the leases of what is held end.
    leases: BTreeMap<Token, u64>,
    /// What was held until then, and wasn't heard of since.
    overdue: BTreeMap<Token, ConsumerKey>,
    /// Those that haven't said a word since a lease of theirs was over.
    silent: BTreeSet<ConsumerKey>,
    /// Acked or nacked, to be committed; then to be told.
    finishes: Vec<(Finish, u64)>,
    told: VecDeque<(Token, bool)>,
    retries: Vec<Retry>,
    /// With whether somebody waits for the answer.
    settling: BTreeMap<Token, (ConsumerKey, u64, bool)>,
    ended: Vec<u64>,
    ended_told: usize,
    /// Attempts that were counted, whether the database knows them or not.
    counted: BTreeMap<u64, u32>,
    pages: Vec<Reading>,
    due_pages: Vec<DueReading>,
    /// Dead events were made alive in the database, and the group wasn't told yet.
    redriven: bool,
    /// What is being counted, and what the database says of it.
    marks: Option<(MarksWanted, Option<Vec<OpenMark>>)>,
    /// An event is gone, and a claim may have ended, or a page been read, before the group heard of it: the count may be off
    /// until the next one.
    unsure: bool,
    epoch: u64,
    seq: u64,
    made: u64,
    link_bytes: usize,
    /// What all bindings may keep in memory.
    windows: Windows,
    draining: bool,
    ordered: Ordered,
}

impl World {
    /// A world in which the consumers of a link hold so many events together.
    pub fn new(link_events: usize) -> Self {
        let link_bytes = link_events.saturating_mul(dispatched(1, 0).weight());
        Self {
            group: group(0, 0, link_bytes, &Ordered::default()),
            rows: BTreeMap::new(),
            wishes: Vec::new(),
            cursor: 0,
            on_the_way: VecDeque::new(),
            npm_link: Outlet::new(LinkId(0), usize::MAX).0,
            reserves: Vec::new(),
            reserved: VecDeque::new(),
            now: Now { wall: 0, steady: 0 },
            links: Vec::new(),
            members: BTreeMap::new(),
            held: BTreeMap::new(),
            leases: BTreeMap::new(),
            overdue: BTreeMap::new(),
            silent: BTreeSet::new(),
            finishes: Vec::new(),
            told: VecDeque::new(),
            retries: Vec::new(),
            settling: BTreeMap::new(),
            ended: Vec::new(),
            ended_told: 0,
            counted: BTreeMap::new(),
            pages: Vec::new(),
            due_pages: Vec::new(),
            redriven: false,
            marks: None,
            unsure: false,
            epoch: 0,
            seq: 100,
            made: 0,
            link_bytes,
            windows: Windows::new(link_bytes.saturating_mul(2)),
            draining: false,
            ordered: Ordered::default(),
        }
    }

    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Which consumer holds the claim of this place among those that are held.
    pub fn holder(&self, at: usize) -> usize {
        let (key, ..) = self.held.values().nth(at).unwrap();
        self.members.keys().position(|member| member == key).unwrap()
    }

    /// The numbers of the attempts that are held, in the order of the events.
    pub fn attempts_held(&self) -> Vec<u32> {
        let by_seq: BTreeMap<u64, u32> =
            self.held.values().map(|(_, seq, attempt)| (*seq, *attempt)).collect();
        by_seq.into_values().collect()
    }

    pub fn step(&mut self, step: Step) {
        let mut effects = Effects::default();
        match step {
            Step::Bind { patterns, orphans } => self.bind(patterns % PATTERNS.len(), orphans),
            Step::Join { binding, link, credit, concurrency } => {
                if let Some(wish) = pick(&self.wishes, binding).map(|wish| wish.id) {
                    self.join(wish, link, credit, concurrency);
                }
            }
            Step::Stop(which) => {
                let keys: Vec<_> = self.members.keys().copied().collect();
                if let Some(key) = pick(&keys, which) {
                    self.group.stop(*key);
                    self.group.run_lanes(self.now, &mut effects);
                    self.members.get_mut(key).unwrap().stopped = true;
                    let key = *key;
                    self.overdue.retain(|_, holder| *holder != key);
                }
            }
            Step::Publish { domain, events, npm } => {
                let npm = if self.ordered.is_named { Npm::No } else { npm };
                for nth in 0..events {
                    self.seq += 1;
                    let event = event(self.seq, domain % DOMAINS.len(), pid_of(domain, nth), npm);
                    let told = npm == Npm::Elsewhere;
                    self.rows.insert(self.seq, Row::new(event.clone(), told));
                    self.on_the_way.push_back(Way::Event(event, npm));
                }
            }
            Step::NpmClaims(which) => self.npm_claims(which),
            Step::TellLate(which) => {
                if !self.ordered.is_named {
                    self.group.npm_came();
                    self.tell_late(which, &mut effects);
                }
            }
            Step::Order(order) => self.set_order(order),
            Step::Delete(which) => {
                let mut open: Vec<_> = self.rows.values_mut().filter(|row| row.open).collect();
                if let Some(at) = which.checked_rem(open.len()) {
                    self.on_the_way.push_back(Way::Deleted(gone(&open[at].event, open[at].is_open())));
                    (open[at].open, open[at].deleted) = (false, true);
                    self.unsure = true;
                }
            }
            Step::Dispatch => self.dispatch(),
            Step::Read(which) => {
                self.read(which);
                self.read_due(which);
                self.read_ordered(which);
                self.read_marks();
            }
            Step::Page(which) => {
                self.count_marks();
                let read = |page: &Reading| page.read.is_some();
                let ready: Vec<_> = (0..self.pages.len()).filter(|at| read(&self.pages[*at])).collect();
                if let Some(Reading { binding, wanted, read: Some((rows, scanned, more)) }) =
                    pick(&ready, which).map(|at| self.pages.remove(*at))
                {
                    let page = Page { ticket: wanted.ticket, rows, scanned, more };
                    self.group.page(binding, page, self.now, &mut effects);
                }
                self.due_page(which, &mut effects);
                self.ordered_page(which, &mut effects);
            }
            Step::PageFails(which) => {
                if !self.pages.is_empty() {
                    let page = self.pages.remove(which % self.pages.len());
                    self.group.page_failed(page.binding, page.wanted.ticket);
                }
                self.due_page_fails(which);
                self.ordered_page_fails(which);
            }
            Step::Ack(which) => self.settle(which, Verdict::Ack, &mut effects),
            Step::Nack { which, delay, is_final } => {
                let options = NackOptions { reason: "no".to_owned(), delay, is_final };
                self.settle(which, Verdict::Nack(options), &mut effects);
            }
            Step::Extend(which, lease) => self.settle(which, Verdict::Extend(lease), &mut effects),
            Step::Late(which) => self.speak_late(which, &mut effects),
            Step::Redrive(which) => self.redrive(which),
            Step::Release(which) => self.settle(which, Verdict::Release, &mut effects),
            Step::Stray => {
                let (outlet, _) = Outlet::new(LinkId(u64::MAX), 1);
                let token = self.held.keys().next().copied().unwrap_or(u64::MAX);
                self.group.settle(&outlet, 1, token, Verdict::Ack, self.now, &mut effects);
                assert!(
                    matches!(effects.answers[..], [(_, 1, false)]),
                    "a claim of another link, or of none"
                );
            }
            Step::Commit => self.commit(true),
            Step::CommitFails => self.commit(false),
            Step::Recorded => {
                let attempts = std::mem::take(&mut self.ended_told);
                self.group.attempts_recorded(attempts, &mut effects);
                for (token, again) in std::mem::take(&mut self.told) {
                    let (key, seq, waits) = self.settling.remove(&token).unwrap();
                    if again && waits && self.members.contains_key(&key) {
                        self.held.insert(token, (key, seq, self.counted.get(&seq).unwrap_or(&0) + 1));
                        self.leases.insert(token, self.now.steady + LEASE);
                    }
                    let answered = self.group.recorded(token, again, self.now, &mut effects);
                    assert_eq!(answered.is_some(), waits, "who said so itself waits for the answer");
                    // Each may lead to claims, which must fit what was told before them.
                    self.apply(std::mem::take(&mut effects));
                }
                if std::mem::take(&mut self.redriven) {
                    self.ordered.untold.clear();
                    self.group.look_at_retries(self.now, &mut effects);
                }
                for (token, won) in std::mem::take(&mut self.reserved) {
                    self.group.reserved(token, won, self.now, &mut effects);
                    self.apply(std::mem::take(&mut effects));
                }
            }
            Step::LinkGone(which) => {
                if !self.links.is_empty() {
                    let link = self.links.remove(which % self.links.len()).id();
                    self.members.retain(|key, _| key.link != link);
                    self.held.retain(|_, (key, ..)| key.link != link);
                    self.overdue.retain(|_, key| key.link != link);
                    self.group.link_gone(link, self.now, &mut effects);
                }
            }
            Step::SaveCursor => self.cursor = self.group.floor().unwrap_or(self.cursor).max(self.cursor),
            Step::Tick => {
                self.now.wall += 1_000;
                self.now.steady += 1_000;
                self.group.want_pages(&mut effects);
                let over = self.end_leases();
                self.group.due(self.now, &mut effects);
                assert_eq!(effects.over, over, "leases end at their time");
                self.want_marks();
            }
            Step::Drain => {
                self.group.drain();
                self.draining = true;
            }
            Step::Restart => self.restart(),
        }
        self.apply(effects);
    }

    /// What must hold at any time.
    pub fn check(&self) {
        let (reserving, _) = self.group.undecided();
        assert_eq!(self.group.in_flight(), self.held.len() + self.settling.len() + reserving);
        if let Some(floor) = self.group.floor() {
            let oldest =
                self.rows.iter().find(|(_, row)| row.is_new() && self.wanted(row)).map(|(seq, _)| *seq);
            assert!(oldest.is_none_or(|oldest| floor < oldest), "the floor {floor} is above {oldest:?}");
        }
    }

    /// Everything that is under way comes to its end, and all that is held is acked.
    pub fn run_to_rest(&mut self) {
        if self.draining {
            self.restart();
        }
        for _ in 0..10_000 {
            let before = (self.pages.len(), self.held.len(), self.settling.len(), self.on_the_way.len());
            self.step(Step::Dispatch);
            self.step(Step::Tick);
            for _ in 0..self.pages.len() + self.due_pages.len() + self.ordered.pages() {
                self.step(Step::Read(0));
                self.step(Step::Page(1));
            }
            while !self.overdue.is_empty() {
                self.step(Step::Late(0));
            }
            self.count_to_the_end();
            for _ in 0..self.held.len() {
                self.step(Step::Ack(0));
            }
            self.step(Step::Commit);
            self.step(Step::Recorded);
            let idle = self.pages.is_empty()
                && self.due_pages.is_empty()
                && self.ordered.pages() == 0
                && self.held.is_empty()
                && self.settling.is_empty()
                && !self.any_is_to_be_retried();
            if idle && before == (0, 0, 0, 0) && self.group.undecided() == (0, 0) {
                let live: BTreeSet<i64> = self
                    .members
                    .values()
                    .filter(|member| !member.stopped)
                    .map(|member| member.binding)
                    .collect();
                for (seq, row) in self.rows.iter().filter(|(_, row)| row.is_open()) {
                    let wished = self.wishes.iter().find(|wish| live.contains(&wish.id) && wish.wants(row));
                    let waits_rightly = wished.is_none() || self.is_held_back(*seq);
                    assert!(waits_rightly, "event {seq} waits though a consumer of it is ready");
                }
                self.check_count();
                return;
            }
        }
        panic!(
            "it never comes to rest: pages {}, due pages {}, pages in order {}, held {:?}, settling {:?}, to be retried {}, \
             undecided {:?}, silent {:?}, overdue {:?}, members {:?}",
            self.pages.len(),
            self.due_pages.len(),
            self.ordered.pages(),
            self.held,
            self.settling,
            self.any_is_to_be_retried(),
            self.group.undecided(),
            self.silent,
            self.overdue,
            self.members.keys().collect::<Vec<_>>()
        );
    }

    /// With a consumer for each binding, nothing is left that a binding wants.
    pub fn consume_the_rest(&mut self) {
        for id in self.wishes.iter().map(|wish| wish.id).collect::<Vec<_>>() {
            self.join(id, None, 3, 1);
        }
        self.run_to_rest();
        let waits_rightly =
            |(seq, row): (&u64, &Row)| !row.is_open() || !self.wanted(row) || self.is_held_back(*seq);
        assert!(self.rows.iter().all(waits_rightly));
    }

    fn wanted(&self, row: &Row) -> bool {
        self.wishes.iter().any(|wish| wish.wants(row))
    }

    fn bind(&mut self, patterns: usize, orphans: u64) {
        if self.wishes.iter().any(|wish| wish.id == patterns as i64) {
            return;
        }
        let pattern = Pattern::parse(PATTERNS[patterns]).unwrap();
        let start = self.seq.saturating_sub(orphans) + 1;
        // As the store does.
        self.cursor = self.cursor.min(start - 1);
        let binding = Binding::new(pattern.clone(), Pattern::any(), start, 0).within(&self.windows);
        self.group.bind(patterns as i64, binding);
        self.wishes.push(Wish { id: patterns as i64, pattern, start });
    }

    fn join(&mut self, binding: i64, link: Option<usize>, credit: usize, concurrency: usize) {
        self.made += 1;
        let outlet = link.and_then(|link| pick(&self.links, link)).cloned().unwrap_or_else(|| {
            let (outlet, _) = Outlet::new(LinkId(self.made), usize::MAX);
            self.links.push(outlet.clone());
            outlet
        });
        let key = ConsumerKey { link: outlet.id(), sub: self.made as u32 };
        let uid = Uid::parse("WORKER.SPOKE").unwrap();
        self.silent.remove(&key);
        self.members.insert(key, Member { binding, credit, stopped: false });
        let mut effects = Effects::default();
        let consumer = Consumer::new(outlet, uid, binding, credit, usize::MAX, concurrency, LEASE);
        self.group.join(key, consumer, self.now, &mut effects);
        self.apply(effects);
    }

    fn read(&mut self, which: usize) {
        let unread: Vec<_> =
            self.pages.iter().enumerate().filter(|(_, page)| page.read.is_none()).map(|(at, _)| at).collect();
        let Some(at) = pick(&unread, which) else { return };
        let PageWanted { after, mut bytes, .. } = self.pages[*at].wanted;
        let open = || self.rows.range(after + 1..).filter(|(_, row)| row.is_new()).map(|(_, row)| row);
        let rows: Vec<_> = open()
            .take(PAGE)
            .scan(false, |has_one, row| {
                // One fits, whatever it weighs.
                let fits = !std::mem::replace(has_one, true) || bytes >= row.event.weight();
                bytes = bytes.saturating_sub(row.event.weight());
                fits.then_some(row)
            })
            .map(|row| Waiting { attempts: row.attempts, ..Waiting::new(row.event.clone(), row.round) })
            .collect();
        let scanned = rows.last().map_or(after, |last| last.event.seq);
        let more = open().count() > rows.len();
        self.pages[*at].read = Some((rows, scanned, more));
    }

    /// All that is on the way arrives, in order; what comes together is dispatched together.
    fn dispatch(&mut self) {
        while let Some(next) = self.on_the_way.pop_front() {
            let mut effects = Effects::default();
            match next {
                Way::Event(event, npm) => {
                    let mut came = vec![(event, npm)];
                    while let Some(Way::Event(event, npm)) =
                        self.on_the_way.pop_front_if(|way| matches!(way, Way::Event(..)))
                    {
                        came.push((event, npm));
                    }
                    let told = came.iter().filter(|(_, npm)| *npm == Npm::Link);
                    let told = told.map(|(event, _)| (event.seq, vec![self.npm_link.clone()])).collect();
                    let events: Vec<_> = came.into_iter().map(|(event, _)| event).collect();
                    self.group.dispatch(&events, told, self.now, &mut effects);
                }
                Way::Deleted(gone) => self.group.deleted(&[gone], self.now, &mut effects),
            }
            self.apply(effects);
        }
    }

    fn settle(&mut self, which: usize, verdict: Verdict, effects: &mut Effects) {
        let tokens: Vec<_> = self.held.keys().copied().collect();
        let Some(token) = pick(&tokens, which).copied() else { return };
        let (key, seq, _) = self.held[&token];
        self.silent.remove(&key);
        let outlet = self.links.iter().find(|outlet| outlet.id() == key.link).unwrap();
        match verdict {
            Verdict::Extend(lease) => {
                let lease = lease.map_or(LEASE, |lease| lease.max(1_000));
                self.leases.insert(token, self.now.steady + lease);
            }
            Verdict::Release => _ = self.held.remove(&token),
            _ => {
                self.held.remove(&token);
                self.settling.insert(token, (key, seq, true));
            }
        }
        self.group.settle(outlet, 1, token, verdict, self.now, effects);
        assert!(effects.answers.iter().all(|(.., held)| *held), "it is held");
    }

    /// The database takes what waits, or refuses the outcomes.
    fn commit(&mut self, takes: bool) {
        for (finish, seq) in std::mem::take(&mut self.finishes) {
            if takes {
                let row = self.rows.get_mut(&seq).unwrap();
                // Of a deleted one the database says that it isn't there: this ends the claim as an outcome does.
                assert!(row.open || row.deleted, "event {seq} has an outcome already");
                self.unsure |= row.deleted;
                // What an npm spoke has is its own: the ack is refused, and nobody else gets it.
                if row.is_open() {
                    assert_eq!(finish.round, row.round);
                    assert_eq!(finish.retried, row.due.is_some(), "whether event {seq} waited for a retry");
                    row.due = None;
                    row.dead = finish.outcome == Outcome::Dead;
                }
                row.open &= row.npm;
            }
            self.told.push_back((finish.token, !takes));
        }
        self.commit_claims(takes);
        for seq in std::mem::take(&mut self.ended) {
            // One that is refused is not counted; here it never is.
            self.ended_told += 1;
            self.rows.get_mut(&seq).unwrap().attempts += 1;
        }
        self.commit_retries(takes);
    }
}

/// A group whose tokens start after this one: the default one, or one that may keep the order of keys.
fn group(last: Token, head: u64, link_bytes: usize, ordered: &Ordered) -> Group {
    let (tokens, budget) = (Tokens::after(last), Budget::new(link_bytes));
    let name = ordered.is_named.then(|| crate::event::Group::parse("ordered").unwrap());
    let identity = Identity { no: GroupNo::DEFAULT, name, round: 1 };
    let policy = ordered.policy();
    let letters = Letters::new(1_000);
    Group::new(
        identity,
        policy,
        0,
        &Shared { tokens, budget, windows: Windows::default(), letters, seed: 7, head, draining: false },
    )
}

impl Wish {
    /// What waits for another attempt has no start.
    fn wants(&self, row: &Row) -> bool {
        (row.due.is_some() || row.event.seq >= self.start) && self.pattern.matches(&row.event.event.domain)
    }
}

fn pick<T>(all: &[T], which: usize) -> Option<&T> {
    all.get(which.checked_rem(all.len())?)
}

fn gone(event: &Dispatched, open: bool) -> Gone {
    let Event { id, domain, name, .. } = event.event.clone();
    Gone { id, domain, name, seq: Some(event.seq), scheduled: false, open }
}

/// All of one weight.
fn dispatched(seq: u64, domain: usize) -> Arc<Dispatched> {
    event(seq, domain, 0, Npm::No)
}

/// Which process the nth of some events is of.
fn pid_of(domain: usize, nth: usize) -> usize {
    (domain / 2 + nth * (domain / 8 % 3)) % PIDS
}

fn event(seq: u64, domain: usize, pid: usize, npm: Npm) -> Arc<Dispatched> {
    let event = Event {
        id: EventId::parse(format!("e{seq:09}")).unwrap(),
        timestamp: 0,
        domain: Domain::parse(DOMAINS[domain]).unwrap(),
        name: Name::parse("n").unwrap(),
        pid: Pid::parse(format!("p{pid}")).unwrap(),
        rid: None,
        data: Data::parse("{}").unwrap(),
    };
    Arc::new(if npm == Npm::Elsewhere { Dispatched::shared(event, seq) } else { Dispatched::new(event, seq) })
}

fn seq_of(id: &EventId) -> u64 {
    id[1..].parse().unwrap()
}
