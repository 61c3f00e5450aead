//! All groups of this hub: the default one, which is always there, and those that have a name. Pure, as each
//! [`Group`] is: this finds the groups that an event, a claim, a binding or a link concerns.

mod changes;
mod cursors;
mod ordered;
mod standing;
mod sums;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    binding::{Binding, Page},
    budget::Budget,
    consumer::{Consumer, ConsumerKey},
    effects::{Effects, Verdict},
    group::{Group, Identity, Next},
    letters::Letters,
    policy::Policy,
    retries::RetriesPage,
    tokens::Tokens,
    windows::Windows,
};
use crate::{
    actors::{
        clock::Now,
        dispatched::Dispatched,
        outlet::{LinkId, Outlet},
    },
    event::{Group as Name, Pattern, PatternIndex},
    store::{self, Gone},
    wire::{GroupSettings, Req, Token},
};

/// The number of a group among those of this start of the hub; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupNo(u32);

impl GroupNo {
    /// The default group.
    pub const DEFAULT: Self = Self(0);
}

/// The most named groups of a hub.
pub const MOST_GROUPS: usize = 1_000;
/// So many claims of named groups are found by their numbers before those that ended are looked for.
const FEW_TOKENS: usize = 1_024;

/// What all groups have in common.
#[derive(Debug)]
pub struct Shared {
    /// Gives claims their numbers.
    pub tokens: Tokens,
    /// What links hold.
    pub budget: Budget,
    /// What bindings keep in memory.
    pub windows: Windows,
    /// The last event that was dispatched.
    pub head: u64,
    /// Writes dead letters.
    pub letters: Letters,
    /// Another one with each start: spreads the times of retries.
    pub seed: u64,
    /// Nothing is handed out any more.
    pub draining: bool,
}

/// The groups, and where to find what.
#[derive(Debug)]
pub struct Groups {
    default: Group,
    named: BTreeMap<GroupNo, Group>,
    names: HashMap<Name, GroupNo>,
    /// Which named groups want an event; one for each of its bindings.
    index: PatternIndex<GroupNo>,
    /// Ids of bindings, by group and patterns.
    known: HashMap<(GroupNo, Pattern, Pattern), i64>,
    /// What groups have set themselves.
    own: HashMap<GroupNo, GroupSettings>,
    /// Whose a binding is, of named groups.
    bindings: HashMap<i64, GroupNo>,
    /// In which named groups a link has or had consumers.
    links: HashMap<LinkId, Vec<GroupNo>>,
    /// Whose a claim is, of named groups; those that ended are swept out now and then.
    tokens: HashMap<Token, GroupNo>,
    shared: Shared,
    made: u32,
}

impl Groups {
    /// The default group alone, with what it does with events that fail, and up to where it has come.
    #[must_use]
    pub fn new(shared: Shared, policy: Policy, cursor: u64) -> Self {
        let identity = Identity { no: GroupNo::DEFAULT, name: None, round: 1 };
        Self {
            default: Group::new(identity, policy, cursor, &shared),
            named: BTreeMap::new(),
            names: HashMap::new(),
            index: PatternIndex::default(),
            known: HashMap::new(),
            own: HashMap::new(),
            bindings: HashMap::new(),
            links: HashMap::new(),
            tokens: HashMap::new(),
            shared,
            made: 0,
        }
    }

    /// Adds a named group that isn't there yet.
    pub fn add(&mut self, name: Name, round: u32, policy: Policy, cursor: u64) -> GroupNo {
        self.made += 1;
        let no = GroupNo(self.made);
        let identity = Identity { no, name: Some(name.clone()), round };
        self.named.insert(no, Group::new(identity, policy, cursor, &self.shared));
        self.names.insert(name, no);
        no
    }

    /// How many have a name.
    #[must_use]
    pub fn named(&self) -> usize {
        self.names.len()
    }

    /// The last event that was dispatched.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.shared.head
    }

    /// The default group.
    #[must_use]
    pub fn default_group(&self) -> &Group {
        &self.default
    }

    /// The default group, for what concerns it alone: npm links.
    pub fn default_mut(&mut self) -> &mut Group {
        &mut self.default
    }

    /// The number of the group of this name; none is the default one.
    #[must_use]
    pub fn find(&self, name: Option<&Name>) -> Option<GroupNo> {
        name.map_or(Some(GroupNo::DEFAULT), |name| self.names.get(name).copied())
    }

    /// The group of this number, if it is still there.
    #[must_use]
    pub fn get(&self, no: GroupNo) -> Option<&Group> {
        if no == GroupNo::DEFAULT { Some(&self.default) } else { self.named.get(&no) }
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, no: GroupNo) -> Option<&mut Group> {
        if no == GroupNo::DEFAULT { Some(&mut self.default) } else { self.named.get_mut(&no) }
    }

    /// All of them, the default one first.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        std::iter::once(&self.default).chain(self.named.values())
    }

    /// The same, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        std::iter::once(&mut self.default).chain(self.named.values_mut())
    }

    /// The binding of this group with these patterns, if there is one.
    #[must_use]
    pub fn binding(&self, no: GroupNo, domain: &Pattern, name: &Pattern) -> Option<i64> {
        self.known.get(&(no, domain.clone(), name.clone())).copied()
    }

    /// What bindings keep in memory, all together.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        &self.shared.windows
    }

    /// How many bindings there are.
    #[must_use]
    pub fn count_bindings(&self) -> usize {
        self.known.len()
    }

    /// Adds a binding of this group that nobody consumes yet; everything of it up to `loaded` is settled.
    pub fn bind(&mut self, no: GroupNo, binding: store::Binding, loaded: u64) -> i64 {
        let store::Binding { id, domain, name, start_seq, starts, .. } = binding;
        let windows = self.shared.windows.clone();
        let Some(group) = self.get_mut(no) else { return id };
        let binding = Binding::new(domain.clone(), name.clone(), start_seq, loaded).with_starts(starts);
        group.bind(id, binding.within(&windows));
        if self.known.insert((no, domain.clone(), name.clone()), id).is_none() && no != GroupNo::DEFAULT {
            self.index.insert(&domain, &name, no);
            self.bindings.insert(id, no);
        }
        id
    }

    /// What a binding wants: domains and names; and whose it is.
    #[must_use]
    pub fn patterns(&self, id: i64) -> Option<(&Group, Pattern, Pattern)> {
        let group = self.get(self.whose(id))?;
        group.patterns(id).map(|(domain, name)| (group, domain, name))
    }

    /// A consumer came, for a binding of this group that is known.
    pub fn join(
        &mut self,
        no: GroupNo,
        key: ConsumerKey,
        consumer: Consumer,
        now: Now,
        effects: &mut Effects,
    ) {
        if no != GroupNo::DEFAULT {
            let groups = self.links.entry(key.link).or_default();
            if !groups.contains(&no) {
                groups.push(no);
            }
        }
        if let Some(group) = self.get_mut(no) {
            group.join(key, consumer, now, effects);
        }
        self.follow(now, effects);
    }

    /// No more events for this consumer; what it holds stays its own.
    pub fn stop(&mut self, key: ConsumerKey, now: Now, effects: &mut Effects) {
        if !self.default.stop(key) {
            self.of_link(key.link, |group| {
                if group.stop(key) {
                    group.run_lanes(now, effects);
                }
            });
        }
        self.follow(now, effects);
    }

    /// Whether the link has a consumer of this number, in any group.
    #[must_use]
    pub fn has_consumer(&self, key: ConsumerKey) -> bool {
        let has = |no: &GroupNo| self.named.get(no).is_some_and(|group| group.has_consumer(key));
        self.default.has_consumer(key)
            || self.links.get(&key.link).is_some_and(|groups| groups.iter().any(has))
    }

    /// Nothing is handed out from here on.
    pub fn drain(&mut self) {
        self.shared.draining = true;
        self.iter_mut().for_each(Group::drain);
    }

    /// Events were committed, in sequence; these npm links are to be told, by sequence number. Each is offered to every
    /// group that wants it. A named group that nobody consumes only counts it.
    pub fn dispatch(
        &mut self,
        events: &[Arc<Dispatched>],
        npm: BTreeMap<u64, Vec<Outlet>>,
        now: Now,
        effects: &mut Effects,
    ) {
        self.default.dispatch(events, npm, now, effects);
        let Some(last) = events.last().map(|last| last.seq) else { return };
        self.shared.head = self.shared.head.max(last);
        if self.named.is_empty() {
            return;
        }
        let mut wanted: BTreeMap<GroupNo, Vec<Arc<Dispatched>>> = BTreeMap::new();
        for event in events {
            self.index.matching(&event.event.domain, &event.event.name, |no| {
                let of_group = wanted.entry(*no).or_default();
                // Several bindings of a group that match are one delivery.
                if of_group.last().is_none_or(|last| last.seq < event.seq) {
                    of_group.push(event.clone());
                }
            });
        }
        for (no, group) in &mut self.named {
            if let Some(events) = wanted.get(no) {
                group.dispatch(events, BTreeMap::new(), now, effects);
            }
            group.passed(last, effects);
        }
        self.follow(now, effects);
    }

    /// A page that [`Effects::pages`] asked for.
    pub fn page(&mut self, id: i64, page: Page, now: Now, effects: &mut Effects) {
        if let Some(group) = self.get_mut(self.whose(id)) {
            group.page(id, page, now, effects);
        }
        self.follow(now, effects);
    }

    /// The page couldn't be read. Ask for it again with [`Self::want_pages`].
    pub fn page_failed(&mut self, id: i64, ticket: u64) {
        if let Some(group) = self.get_mut(self.whose(id)) {
            group.page_failed(id, ticket);
        }
    }

    /// Asks for all pages that are wanted and not under way.
    pub fn want_pages(&mut self, effects: &mut Effects) {
        self.iter_mut().for_each(|group| group.want_pages(effects));
    }

    /// The name of the group that has this claim; none is the default one.
    #[must_use]
    pub fn name_of(&self, token: Token) -> Option<&Name> {
        self.named.get(self.tokens.get(&token)?)?.identity().name.as_ref()
    }

    /// What a consumer says of a claim that its link holds.
    pub fn settle(
        &mut self,
        outlet: &Outlet,
        req: Req,
        token: Token,
        verdict: Verdict,
        now: Now,
        effects: &mut Effects,
    ) {
        // A claim of a group that is no more is as lost as one that nobody knows.
        self.of_token(token).settle(outlet, req, token, verdict, now, effects);
        self.follow(now, effects);
    }

    /// The outcome was recorded, or (`again`) couldn't be: then the claim is its holder's as before. Returns who
    /// waits for the answer.
    pub fn recorded(
        &mut self,
        token: Token,
        again: bool,
        now: Now,
        effects: &mut Effects,
    ) -> Option<(Outlet, Req)> {
        let waits = self.of_token(token).recorded(token, again, now, effects);
        self.follow(now, effects);
        waits
    }

    /// What a claim ended with was refused by what others wrote: its group can't go by it.
    pub fn refused(&mut self, token: Token) {
        self.of_token(token).refused(token);
    }

    /// Attempts of [`Effects::ended`] were recorded, or couldn't be: one of these groups each.
    pub fn attempts_recorded(&mut self, of: &[GroupNo], effects: &mut Effects) {
        for attempts in of.chunk_by(PartialEq::eq) {
            if let Some(group) = attempts.first().and_then(|no| self.get_mut(*no)) {
                group.attempts_recorded(attempts.len(), effects);
            }
        }
    }

    /// The link is gone: what its consumers hold is offered again at once.
    pub fn link_gone(&mut self, link: LinkId, now: Now, effects: &mut Effects) {
        self.default.link_gone(link, now, effects);
        self.of_link(link, |group| group.link_gone(link, now, effects));
        self.links.remove(&link);
        self.follow(now, effects);
    }

    /// Events were deleted: nobody gets them any more.
    pub fn deleted(&mut self, gone: &[Gone], now: Now, effects: &mut Effects) {
        self.iter_mut().for_each(|group| group.deleted(gone, now, effects));
        self.follow(now, effects);
    }

    /// What is to be done by the clock.
    pub fn due(&mut self, now: Now, effects: &mut Effects) {
        self.iter_mut().for_each(|group| group.due(now, effects));
        self.follow(now, effects);
        self.forget_retired();
        if self.tokens.len() > FEW_TOKENS.max(2 * self.in_flight()) {
            let named = &self.named;
            self.tokens.retain(|token, no| named.get(no).is_some_and(|group| group.holds(*token)));
        }
    }

    /// When [`Self::due`] has something to do, as far as is known.
    #[must_use]
    pub fn next(&self) -> Next {
        self.iter().map(Group::next).fold(Next::default(), Next::earlier)
    }

    /// Others have changed what waits for a retry in this group.
    pub fn look_at_retries(&mut self, no: GroupNo, now: Now, effects: &mut Effects) {
        if let Some(group) = self.get_mut(no) {
            group.look_at_retries(now, effects);
        }
        self.follow(now, effects);
    }

    /// A page that [`Effects::due`] asked for.
    pub fn retries_page(&mut self, no: GroupNo, page: RetriesPage, now: Now, effects: &mut Effects) {
        if let Some(group) = self.get_mut(no) {
            group.retries_page(page, now, effects);
        }
        self.follow(now, effects);
    }

    /// It couldn't be read.
    pub fn retries_failed(&mut self, no: GroupNo, ticket: u64, now: Now) {
        if let Some(group) = self.get_mut(no) {
            group.retries_failed(ticket, now);
        }
    }

    /// What follows from what one group did for others: its claims can be found, and consumers of a link that holds
    /// less have their turn.
    fn follow(&mut self, now: Now, effects: &mut Effects) {
        while let Some((link, by)) = effects.unblocked.pop() {
            if by != GroupNo::DEFAULT {
                self.default.turns_of(link, now, effects);
            }
            self.of_link(link, |group| {
                if group.identity().no != by {
                    group.turns_of(link, now, effects);
                }
            });
        }
        self.tokens.extend(effects.named.drain(..));
    }

    /// Each named group that the link has or had consumers of.
    fn of_link(&mut self, link: LinkId, mut change: impl FnMut(&mut Group)) {
        for no in self.links.get(&link).into_iter().flatten() {
            if let Some(group) = self.named.get_mut(no) {
                change(group);
            }
        }
    }

    /// The group that has this claim; of none that is known, the default one.
    fn of_token(&mut self, token: Token) -> &mut Group {
        let no = self.tokens.get(&token);
        no.and_then(|no| self.named.get_mut(no)).unwrap_or(&mut self.default)
    }

    fn whose(&self, id: i64) -> GroupNo {
        self.bindings.get(&id).copied().unwrap_or(GroupNo::DEFAULT)
    }
}
