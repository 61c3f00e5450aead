//! A group that keeps the order of keys in the naive world: what it reads besides, and whether it keeps the order.

use std::collections::BTreeSet;

use super::{MAX_ATTEMPTS, PAGE, Row, World, pick};
use crate::{
    actors::deliveries::{
        binding::Waiting,
        effects::Effects,
        groups::GroupNo,
        order::{HeldPage, HeldWanted, LanePage, LaneWanted, MOST_BACK},
        policy::Policy,
    },
    event::Pid,
    store::HeldKey,
};

/// Open events of a process, and up to where was looked.
type LaneRead = (Vec<Waiting>, u64);

/// The order that is asked for, and pages on their way.
#[derive(Default)]
pub(super) struct Ordered {
    /// Otherwise it is the default group, and never keeps it.
    pub(super) is_named: bool,
    /// Whether it is asked for, and whether dead events block.
    order: Option<bool>,
    /// Redriven in the database, and the group wasn't told yet.
    pub(super) untold: BTreeSet<u64>,
    loads: Vec<(HeldWanted, Option<HeldPage>)>,
    lanes: Vec<(LaneWanted, Option<LaneRead>)>,
}

impl Ordered {
    pub(super) fn policy(&self) -> Policy {
        Policy {
            max_attempts: MAX_ATTEMPTS,
            delay: 2_000,
            max_delay: 5_000,
            key_order: self.order.is_some(),
            dead_blocks: self.order == Some(true),
            ..Policy::default()
        }
    }

    pub(super) fn pages(&self) -> usize {
        self.loads.len() + self.lanes.len()
    }

    pub(super) fn wanted(&mut self, loads: Vec<(GroupNo, HeldWanted)>, lanes: Vec<(GroupNo, LaneWanted)>) {
        self.loads.extend(loads.into_iter().map(|(_, wanted)| (wanted, None)));
        self.lanes.extend(lanes.into_iter().map(|(_, wanted)| (wanted, None)));
        assert!(self.pages() < 100, "pages of the order pile up");
    }

    pub(super) fn restart(&mut self) {
        self.untold.clear();
        self.loads.clear();
        self.lanes.clear();
    }
}

impl World {
    /// A world with a named group that keeps the order of keys.
    pub fn ordered(link_events: usize, dead_blocks: bool) -> Self {
        let mut world = Self::new(link_events);
        world.ordered.is_named = true;
        world.ordered.order = Some(dead_blocks);
        world.restart();
        world
    }

    pub(super) fn set_order(&mut self, order: Option<bool>) {
        if self.ordered.is_named {
            self.ordered.order = order;
            self.group.set_policy(self.ordered.policy());
        }
    }

    /// It was handed out: was it its turn?
    pub(super) fn is_in_order(&self, seq: u64) {
        let Some(dead_blocks) = self.ordered.order else { return };
        let pid = |seq: u64| &self.rows[&seq].event.event.pid;
        let of_it = |other: &u64| *other != seq && pid(*other) == pid(seq);
        let in_hands = self.held.values().map(|(_, held, _)| *held);
        let in_hands: Vec<u64> =
            in_hands.chain(self.settling.values().map(|(_, seq, _)| *seq)).filter(of_it).collect();
        assert!(in_hands.is_empty(), "{in_hands:?} of the process of {seq} are in hands");
        let too_many = self.holds_back().count() >= MOST_BACK;
        for (earlier, row) in self.rows.range(..seq).filter(|(earlier, _)| of_it(earlier)) {
            let is_known = !self.ordered.untold.contains(earlier);
            let counts = if row.due.is_some() { is_known } else { self.is_consumed(row) };
            let waits = row.is_open() && counts;
            assert!(!waits || too_many && row.due.is_some(), "event {earlier} comes before {seq}");
            let blocks = dead_blocks && row.dead && !row.deleted && is_known;
            assert!(!blocks || too_many, "event {earlier} is dead, and before {seq}");
        }
    }

    /// Whether an open event waits rightly though somebody consumes it: one before it failed and nobody is there for
    /// that, or it is dead and blocks; or there are so many of these that nothing else is read.
    pub(super) fn is_held_back(&self, seq: u64) -> bool {
        if self.ordered.order.is_none() {
            return false;
        }
        let is_stuck = |(seq, row): &(&u64, &Row)| !self.goes_on(row) || self.is_behind(**seq);
        self.is_behind(seq) || self.holds_back().filter(is_stuck).count() >= MOST_BACK
    }

    /// Whether one before it in its process doesn't go on.
    fn is_behind(&self, seq: u64) -> bool {
        let pid = &self.rows[&seq].event.event.pid;
        let is_before = |earlier: &u64, row: &Row| *earlier < seq && row.event.event.pid == *pid;
        self.holds_back().any(|(earlier, row)| is_before(earlier, row) && !self.goes_on(row))
    }

    /// Whether a consumer is there for one that failed.
    fn goes_on(&self, row: &Row) -> bool {
        row.is_open() && self.is_consumed(row)
    }

    fn holds_back(&self) -> impl Iterator<Item = (&u64, &Row)> {
        let dead_blocks = self.ordered.order == Some(true);
        self.rows.iter().filter(move |(_, row)| {
            !row.deleted && (row.is_open() && row.due.is_some() || dead_blocks && row.dead)
        })
    }

    fn is_consumed(&self, row: &Row) -> bool {
        self.members
            .values()
            .filter(|member| !member.stopped)
            .any(|member| self.wishes.iter().any(|wish| wish.id == member.binding && wish.wants(row)))
    }

    pub(super) fn read_ordered(&mut self, which: usize) {
        let unread: Vec<usize> =
            (0..self.ordered.loads.len()).filter(|at| self.ordered.loads[*at].1.is_none()).collect();
        if let Some(at) = pick(&unread, which).copied() {
            let page = self.load(&self.ordered.loads[at].0);
            self.ordered.loads[at].1 = Some(page);
        }
        let unread: Vec<usize> =
            (0..self.ordered.lanes.len()).filter(|at| self.ordered.lanes[*at].1.is_none()).collect();
        let Some(at) = pick(&unread, which).copied() else { return };
        let LaneWanted { pid, after, upto, limit, .. } = &self.ordered.lanes[at].0;
        let of_it = |(_, row): &(&u64, &Row)| row.is_new() && row.event.event.pid.as_str() == pid;
        let mut open = self.rows.range(after + 1..=*upto).filter(of_it).map(|(_, row)| row);
        let rows: Vec<Waiting> = open
            .by_ref()
            .take(PAGE.min(*limit))
            .map(|row| Waiting { attempts: row.attempts, ..Waiting::new(row.event.clone(), row.round) })
            .collect();
        let last = rows.last().map_or(*after, |last| last.event.seq);
        let scanned = if open.next().is_some() { last } else { *upto };
        self.ordered.lanes[at].1 = Some((rows, scanned));
    }

    /// As the database stands now: those that wait by pid and number, then the dead by number.
    fn load(&self, wanted: &HeldWanted) -> HeldPage {
        let rows = self.rows.iter().filter(|(_, row)| !row.deleted);
        let mut retrying: Vec<(Pid, u64)> = rows
            .clone()
            .filter(|(_, row)| row.is_open() && row.due.is_some())
            .map(|(seq, row)| (row.event.event.pid.clone(), *seq))
            .collect();
        retrying.sort_unstable();
        let dead = rows.filter(|(_, row)| row.dead && wanted.with_dead);
        let dead = dead.map(|(seq, row)| (row.event.event.pid.clone(), *seq));
        let retrying =
            retrying.into_iter().map(|(pid, seq)| (HeldKey::Retrying(pid.clone(), seq), (pid, seq)));
        let all = retrying.chain(dead.map(|(pid, seq)| (HeldKey::Dead(seq), (pid, seq))));
        let behind = |key: &HeldKey| match (&wanted.after, key) {
            (None, _) | (Some(HeldKey::Retrying(..)), HeldKey::Dead(_)) => true,
            (Some(HeldKey::Retrying(pid, seq)), HeldKey::Retrying(of, this)) => (of, this) > (pid, seq),
            (Some(HeldKey::Dead(seq)), HeldKey::Dead(this)) => this > seq,
            (Some(HeldKey::Dead(_)), HeldKey::Retrying(..)) => false,
        };
        let page: Vec<_> = all.filter(|(key, _)| behind(key)).take(wanted.limit).collect();
        let next = page.last().filter(|_| page.len() >= wanted.limit).map(|(key, _)| key.clone());
        (page.into_iter().map(|(_, row)| row).collect(), next)
    }

    pub(super) fn ordered_page(&mut self, which: usize, effects: &mut Effects) {
        let read = |at: &usize| self.ordered.loads[*at].1.is_some();
        let ready: Vec<usize> = (0..self.ordered.loads.len()).filter(read).collect();
        if let Some(at) = pick(&ready, which) {
            let (wanted, page) = self.ordered.loads.remove(*at);
            self.group.held_back(wanted.ticket, page, self.now, effects);
        }
        let read = |at: &usize| self.ordered.lanes[*at].1.is_some();
        let ready: Vec<usize> = (0..self.ordered.lanes.len()).filter(read).collect();
        if let Some((wanted, Some((rows, scanned)))) =
            pick(&ready, which).map(|at| self.ordered.lanes.remove(*at))
        {
            self.group.lane_page(LanePage { ticket: wanted.ticket, rows, scanned }, self.now, effects);
        }
    }

    pub(super) fn ordered_page_fails(&mut self, which: usize) {
        let mut effects = Effects::default();
        if !self.ordered.loads.is_empty() {
            let (wanted, _) = self.ordered.loads.remove(which % self.ordered.loads.len());
            self.group.held_back(wanted.ticket, None, self.now, &mut effects);
        }
        if !self.ordered.lanes.is_empty() {
            let (wanted, _) = self.ordered.lanes.remove(which % self.ordered.lanes.len());
            self.group.lane_failed(wanted.ticket);
        }
        self.apply(effects);
    }
}
