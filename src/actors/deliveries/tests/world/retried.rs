//! Leases, retries and redrives in the naive world.

use super::{super::Step, Member, Row, Wish, World, pick};
use crate::{
    actors::deliveries::{
        binding::Waiting,
        consumer::ConsumerKey,
        effects::{Effects, Retry, Verdict},
        retries::{RetriesPage, RetriesWanted},
    },
    wire::Token,
};

/// Rows of a page.
const PAGE: usize = 3;

/// A page of what is due, on its way; read or not.
pub(super) struct DueReading {
    pub(super) wanted: RetriesWanted,
    pub(super) read: Option<(Vec<Waiting>, Option<i64>)>,
}

impl World {
    /// The time of some leases is over: nobody holds those claims any more. Returns how many.
    pub(super) fn end_leases(&mut self) -> u64 {
        let (leases, now) = (&self.leases, self.now.steady);
        let over: Vec<(Token, ConsumerKey)> = self
            .held
            .extract_if(.., |token, _| leases[token] <= now)
            .map(|(token, (key, ..))| (token, key))
            .collect();
        let ended = over.len() as u64;
        self.silent.extend(over.iter().map(|(_, key)| *key));
        // Of a stopped consumer too: it may still speak of it.
        self.overdue.extend(over);
        ended
    }

    /// A claim ended by itself, and what becomes of it is to be recorded.
    pub(super) fn ends_unasked(&mut self, token: Token, seq: u64) {
        assert!(!self.held.contains_key(&token), "a claim ends in its holder's hands");
        let nobody = ConsumerKey { link: self.npm_link.id(), sub: 0 };
        self.settling.entry(token).or_insert((nobody, seq, false));
    }

    pub(super) fn speak_late(&mut self, which: usize, effects: &mut Effects) {
        let tokens: Vec<Token> = self.overdue.keys().copied().collect();
        let Some(token) = pick(&tokens, which) else { return };
        let key = self.overdue.remove(token).unwrap();
        self.silent.remove(&key);
        let outlet = self.links.iter().find(|outlet| outlet.id() == key.link).unwrap();
        let verdict = if which.is_multiple_of(2) { Verdict::Ack } else { Verdict::Extend(None) };
        self.group.settle(outlet, 1, *token, verdict, self.now, effects);
        assert!(matches!(effects.answers[..], [(_, 1, false)]), "the claim is lost");
    }

    /// As the database does; the group hears of it after it heard that the event is dead.
    pub(super) fn redrive(&mut self, which: usize) {
        let now = self.now.wall;
        let mut dead: Vec<_> = self.rows.iter_mut().filter(|(_, row)| row.dead && !row.deleted).collect();
        if let Some(at) = which.checked_rem(dead.len()) {
            let (seq, row) = &mut dead[at];
            (row.open, row.dead, row.due, row.attempts) = (true, false, Some(now), 0);
            row.round += 1;
            self.counted.insert(**seq, 0);
            self.ordered.untold.insert(**seq);
            self.redriven = true;
        }
    }

    pub(super) fn commit_retries(&mut self, takes: bool) {
        for Retry { token, seq, attempt, due, .. } in std::mem::take(&mut self.retries) {
            let row = self.rows.get_mut(&seq).unwrap();
            // Of what is deleted, or an npm spoke's, nothing is written: this ends the claim all the same.
            if takes && row.is_open() {
                assert_eq!(attempt.number, self.counted.get(&seq).unwrap_or(&0) + 1);
                (row.due, row.attempts) = (Some(due), attempt.number);
                self.counted.insert(seq, attempt.number);
            }
            self.unsure |= row.deleted;
            self.told.push_back((token, !takes));
        }
    }

    pub(super) fn read_due(&mut self, which: usize) {
        let unread: Vec<usize> =
            (0..self.due_pages.len()).filter(|at| self.due_pages[*at].read.is_none()).collect();
        let Some(at) = pick(&unread, which).copied() else { return };
        let RetriesWanted { after, until, limit, .. } = self.due_pages[at].wanted;
        let mut waiting: Vec<(i64, u64, &Row)> = self
            .rows
            .iter()
            .filter(|(_, row)| row.is_open())
            .filter_map(|(seq, row)| Some((row.due?, *seq, row)))
            .filter(|(due, seq, _)| (*due, *seq) > after)
            .collect();
        waiting.sort_unstable_by_key(|(due, seq, _)| (*due, *seq));
        let due = waiting.iter().take(PAGE.min(limit)).take_while(|(due, ..)| *due <= until);
        let rows: Vec<Waiting> = due
            .map(|(due, _, row)| Waiting {
                event: row.event.clone(),
                attempts: row.attempts,
                round: row.round,
                due: Some(*due),
            })
            .collect();
        let next = waiting.get(rows.len()).map(|(due, ..)| *due);
        self.due_pages[at].read = Some((rows, next));
    }

    pub(super) fn due_page(&mut self, which: usize, effects: &mut Effects) {
        let ready: Vec<usize> =
            (0..self.due_pages.len()).filter(|at| self.due_pages[*at].read.is_some()).collect();
        if let Some(DueReading { wanted, read: Some((rows, next)) }) =
            pick(&ready, which).map(|at| self.due_pages.remove(*at))
        {
            let page = RetriesPage { ticket: wanted.ticket, rows, next };
            self.group.retries_page(page, self.now, effects);
        }
    }

    pub(super) fn due_page_fails(&mut self, which: usize) {
        if !self.due_pages.is_empty() {
            let page = self.due_pages.remove(which % self.due_pages.len());
            self.group.retries_failed(page.wanted.ticket, self.now);
        }
    }

    /// While those who hold something do nothing, what is due goes to whoever wants it and has credit.
    pub fn stall(&mut self) {
        // A page that couldn't be read is asked for again after a moment.
        self.step(Step::Tick);
        for _ in 0..1_000 {
            self.step(Step::Dispatch);
            self.step(Step::Commit);
            self.step(Step::Recorded);
            let mut effects = Effects::default();
            self.group.due(self.now, &mut effects);
            self.apply(effects);
            self.step(Step::Read(0));
            self.step(Step::Page(0));
            if self.due_pages.is_empty() && self.settling.is_empty() && self.reserves.is_empty() {
                let waits = |(seq, row): &(&u64, &Row)| {
                    let is_held = || self.held.values().any(|(_, held, _)| held == *seq);
                    let is_due = row.due.is_some_and(|due| due <= self.now.wall);
                    row.is_open() && is_due && !row.told && !is_held() && self.is_wanted_now(row)
                };
                let waits = self.rows.iter().find(waits).map(|(seq, _)| *seq);
                assert_eq!(waits, None, "it is due, and somebody is ready for it");
                return;
            }
        }
        panic!("what is due is read without an end");
    }

    /// Whether there is a consumer for it that has credit.
    fn is_wanted_now(&self, row: &Row) -> bool {
        let is_free = |(key, member): (&ConsumerKey, &Member)| {
            let overdue = self.overdue.values().filter(|holder| *holder == key).count();
            let holds = overdue + self.held.values().filter(|(holder, ..)| holder == key).count();
            let wants = |wish: &Wish| wish.id == member.binding && wish.wants(row);
            let is_ready = !member.stopped && holds < member.credit && !self.silent.contains(key);
            is_ready && self.wishes.iter().any(wants)
        };
        self.members.iter().any(is_free)
    }

    /// Something that a consumer is there for waits for its time.
    pub(super) fn any_is_to_be_retried(&self) -> bool {
        let live = |row: &Row| {
            self.members
                .values()
                .filter(|member| !member.stopped)
                .any(|member| self.wishes.iter().any(|wish| wish.id == member.binding && wish.wants(row)))
        };
        let waits = |(seq, row): (&u64, &Row)| {
            row.is_open() && row.due.is_some() && live(row) && !self.is_held_back(*seq)
        };
        self.rows.iter().any(waits)
    }
}
