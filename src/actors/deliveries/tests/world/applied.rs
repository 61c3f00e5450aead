//! What the group decided, done in the naive world, and whether it was right.

use super::{DueReading, LEASE, MAX_ATTEMPTS, Reading, Way, Wish, World, group, seq_of};
use crate::{
    actors::deliveries::{binding::Binding, consumer::ConsumerKey, effects::Effects},
    event::{Outcome, Pattern},
    wire::Token,
};

impl World {
    pub(super) fn apply(&mut self, effects: Effects) {
        for ended in effects.ended {
            let seq = seq_of(&ended.event_id);
            *self.counted.entry(seq).or_default() += 1;
            self.ended.push(seq);
        }
        for finish in effects.finishes {
            let seq = seq_of(&finish.event_id);
            self.ends_unasked(finish.token, seq);
            if let Some(attempt) = finish.attempt.as_ref() {
                let is_last = attempt.number >= MAX_ATTEMPTS || attempt.reason == "given up";
                assert!(is_last && finish.outcome == Outcome::Dead, "event {seq} is dead too early");
            }
            self.finishes.push((finish, seq));
        }
        for retry in effects.retries {
            self.ends_unasked(retry.token, retry.seq);
            assert!(retry.attempt.number < MAX_ATTEMPTS, "event {} is dead", retry.seq);
            assert_eq!(retry.attempt.round, self.rows[&retry.seq].round);
            self.retries.push(retry);
        }
        self.reserve(effects.reserves);
        for (event, _) in effects.npm {
            self.rows.get_mut(&event.seq).unwrap().told = true;
        }
        for (link, (_, claims)) in effects.claims {
            for claim in claims {
                let key = ConsumerKey { link, sub: claim.sub };
                self.taken(key, claim.token, claim.event.seq, claim.attempt);
            }
        }
        for (_, wanted) in effects.due {
            self.due_pages.push(DueReading { wanted, read: None });
            // A change of the order begins anew, whatever is under way.
            assert!(self.due_pages.len() == 1 || self.ordered.is_named, "one page at a time");
        }
        self.ordered.wanted(effects.held_back, effects.lanes);
        for (binding, wanted) in effects.pages {
            let reads = self.pages.iter().filter(|page| page.binding == binding).count();
            assert!(reads < 50, "pages of one binding pile up");
            self.pages.push(Reading { binding, wanted, read: None });
        }
    }

    /// A claim was handed out: was it right?
    pub(super) fn taken(&mut self, key: ConsumerKey, token: Token, seq: u64, attempt: u32) {
        assert!(!self.draining, "nothing is handed out in a drain");
        let member = self.members.get(&key).expect("the consumer is there");
        assert!(!member.stopped, "it was stopped");
        let row = &self.rows[&seq];
        let untold = |way: &Way| matches!(way, Way::Deleted(gone) if gone.seq == Some(seq));
        let is_there = row.open || row.deleted && self.on_the_way.iter().any(untold);
        assert!(is_there, "event {seq} has its outcome, or is deleted");
        assert!(row.ours || !row.told || row.told_before, "event {seq} is handed out unclaimed");
        assert!(!row.ours || !row.npm, "event {seq} has two claims");
        let wish = self.wishes.iter().find(|wish| wish.id == member.binding).unwrap();
        assert!(wish.wants(row), "event {seq} is not what the consumer wants");
        assert!(self.held.values().all(|(_, held, _)| *held != seq), "event {seq} has two holders");
        assert!(
            self.settling.values().all(|(_, settling, _)| *settling != seq),
            "event {seq} is being settled"
        );
        assert!(row.due.is_none_or(|due| due <= self.now.wall), "event {seq} isn't due");
        let coming = |way: &Way| matches!(way, Way::Event(event, _) if event.seq == seq);
        assert!(!self.on_the_way.iter().any(coming), "event {seq} isn't dispatched yet");
        self.is_in_order(seq);
        let overdue = self.overdue.values().filter(|holder| **holder == key).count();
        let holds = overdue + self.held.values().filter(|(holder, ..)| *holder == key).count();
        // One that the database was asked for took its place then; a refused ack may have brought back another since.
        assert!(holds < member.credit || row.ours, "the credit is used up");
        assert!(!self.silent.contains(&key) || row.ours, "event {seq} goes to a consumer that hangs");
        let on_link = self.held.values().filter(|(holder, ..)| holder.link == key.link);
        let bytes: usize = on_link.map(|(_, seq, _)| self.rows[seq].event.weight()).sum();
        assert!(holds == 0 || bytes < self.link_bytes || row.ours, "the bytes of the link are used up");
        assert_eq!(attempt, self.counted.get(&seq).unwrap_or(&0) + 1, "the attempts of event {seq}");
        assert!(self.held.insert(token, (key, seq, attempt)).is_none(), "a token is used twice");
        self.leases.insert(token, self.now.steady + LEASE);
    }

    /// A new group from what the database holds; all else is gone.
    pub(super) fn restart(&mut self) {
        self.epoch += 1;
        self.group = group(self.epoch << 32, self.seq, self.link_bytes, &self.ordered);
        self.ordered.restart();
        for Wish { id, pattern, start } in &self.wishes {
            let binding = Binding::new(pattern.clone(), Pattern::any(), *start, self.cursor);
            self.group.bind(*id, binding.within(&self.windows));
        }
        self.on_the_way.clear();
        self.reserves.clear();
        self.reserved.clear();
        self.rows.values_mut().for_each(|row| row.told_before = row.told);
        self.links.clear();
        self.members.clear();
        self.held.clear();
        self.overdue.clear();
        self.retries.clear();
        self.due_pages.clear();
        self.redriven = false;
        self.finishes.clear();
        self.told.clear();
        self.settling.clear();
        self.ended.clear();
        self.ended_told = 0;
        self.counted = self.rows.iter().map(|(seq, row)| (*seq, row.attempts)).collect();
        self.pages.clear();
        self.marks = None;
        self.draining = false;
    }
}
