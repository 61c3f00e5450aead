//! What npm links that subscribe are told of the past: events that nobody claimed and no binding wants, oldest first,
//! a hundred at a time.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::Arc,
};

use crate::{
    actors::outlet::{LinkId, Outlet},
    event::{EventId, Pattern},
};

/// Events that a link is told of at once.
pub const HUNDRED: usize = 100;
/// The next hundred comes when these are claimed, or after so many milliseconds.
const PAUSE: i64 = 10_000;
/// Looks into the database at once, over all links.
const MOST_LOOKS: usize = 4;

/// One subscription's way through the past.
#[derive(Debug)]
struct Feed {
    outlet: Outlet,
    domain: Pattern,
    name: Pattern,
    /// Up to here it was told.
    after: u64,
    /// What came later was live.
    upto: u64,
    /// What it was told of at once.
    given: Arc<HashSet<u64>>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Wants a page.
    Ready,
    /// Somebody looks for it.
    Looking,
    /// Was told of these, and waits until they are claimed or the time is over.
    Told { ids: Vec<EventId>, until: i64 },
}

/// Something to look up in the database. The answer comes with the ticket.
#[derive(Debug)]
pub struct Look {
    /// Give it back with the answer.
    pub ticket: Ticket,
    /// What to look for.
    pub what: What,
}

/// What to look for.
#[derive(Debug)]
pub enum What {
    /// Open events of this domain and name above this number.
    Page {
        /// Above this number.
        after: u64,
        /// The domain.
        domain: Pattern,
        /// The name.
        name: Pattern,
    },
    /// Whether any of these isn't claimed yet.
    Unclaimed(Vec<EventId>),
}

/// Tells an answer that is still wanted from one that isn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    link: LinkId,
    number: u64,
}

/// Where a page of a feed goes.
#[derive(Debug)]
pub struct Telling {
    /// The link.
    pub outlet: Outlet,
    /// What came later was live.
    pub upto: u64,
    /// What it was told of at once.
    pub given: Arc<HashSet<u64>>,
}

/// All feeds: one of each link at a time.
#[derive(Debug, Default)]
pub struct Feeds {
    links: BTreeMap<LinkId, VecDeque<(u64, Feed)>>,
    /// Looks that are under way.
    looking: usize,
    made: u64,
}

impl Feeds {
    /// A subscription begins: it is told of what stands between these numbers, but for what it was given already.
    pub fn begin(
        &mut self,
        outlet: Outlet,
        (domain, name): (Pattern, Pattern),
        (after, upto): (u64, u64),
        given: HashSet<u64>,
    ) {
        self.made += 1;
        let link = outlet.id();
        let feed = Feed { outlet, domain, name, after, upto, given: Arc::new(given), state: State::Ready };
        self.links.entry(link).or_default().push_back((self.made, feed));
    }

    /// The subscription ended.
    pub fn end(&mut self, link: LinkId, domain: &Pattern, name: &Pattern) {
        if let Some(feeds) = self.links.get_mut(&link) {
            feeds.retain(|(_, feed)| feed.domain != *domain || feed.name != *name);
            self.clear(link);
        }
    }

    /// The link is gone.
    pub fn link_gone(&mut self, link: LinkId) {
        self.links.remove(&link);
    }

    /// What to look up now. Asked again only after an answer.
    pub fn looks(&mut self, now: i64) -> Vec<Look> {
        let mut looks = Vec::new();
        for (link, feeds) in &mut self.links {
            if self.looking >= MOST_LOOKS {
                break;
            }
            let Some((number, feed)) = feeds.front_mut() else { continue };
            let what = match &mut feed.state {
                State::Looking => continue,
                State::Told { ids, until } if *until > now && !ids.is_empty() => What::Unclaimed(ids.clone()),
                State::Told { until, .. } if *until > now => continue,
                State::Ready | State::Told { .. } => {
                    feed.state = State::Looking;
                    What::Page { after: feed.after, domain: feed.domain.clone(), name: feed.name.clone() }
                }
            };
            self.looking += 1;
            looks.push(Look { ticket: Ticket { link: *link, number: *number }, what });
        }
        looks
    }

    /// Where the feed goes, if a page of it is still wanted.
    #[must_use]
    pub fn page(&mut self, ticket: Ticket) -> Option<Telling> {
        self.looking = self.looking.saturating_sub(1);
        let Feed { outlet, upto, given, .. } = self.front(ticket)?;
        Some(Telling { outlet: outlet.clone(), upto: *upto, given: given.clone() })
    }

    /// The link was told of these. `after`: where to go on, and not before `until`; none: all was told.
    pub fn told(&mut self, ticket: Ticket, ids: Vec<EventId>, next: Option<(u64, i64)>) {
        let Some(feed) = self.front(ticket) else { return };
        match next {
            Some((after, until)) => {
                feed.after = after;
                feed.state =
                    if ids.is_empty() && until == 0 { State::Ready } else { State::Told { ids, until } };
            }
            None => {
                if let Some(feeds) = self.links.get_mut(&ticket.link) {
                    feeds.pop_front();
                }
                self.clear(ticket.link);
            }
        }
    }

    /// How long a link has for a hundred that it was told of now.
    #[must_use]
    pub fn until(now: i64) -> i64 {
        now + PAUSE
    }

    /// Whether any of what it was told of isn't claimed yet, if that could be found out.
    pub fn looked(&mut self, ticket: Ticket, unclaimed: Option<bool>) {
        self.looking = self.looking.saturating_sub(1);
        if let Some(feed) = self.front(ticket)
            && unclaimed == Some(false)
        {
            feed.state = State::Ready;
        }
    }

    fn front(&mut self, ticket: Ticket) -> Option<&mut Feed> {
        let (number, feed) = self.links.get_mut(&ticket.link)?.front_mut()?;
        (*number == ticket.number).then_some(feed)
    }

    fn clear(&mut self, link: LinkId) {
        if self.links.get(&link).is_some_and(VecDeque::is_empty) {
            self.links.remove(&link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::exact(text.to_owned())
    }

    fn begin(feeds: &mut Feeds, link: u64, name: &str) {
        let (outlet, _) = Outlet::new(LinkId(link), 1_000);
        feeds.begin(outlet, (pattern("d"), pattern(name)), (10, 99), HashSet::new());
    }

    fn ids(number: usize) -> Vec<EventId> {
        (0..number).map(|n| EventId::parse(format!("e{n}")).unwrap()).collect()
    }

    #[test]
    fn a_hundred_at_a_time_and_the_next_when_they_are_claimed_or_after_a_pause() {
        let mut feeds = Feeds::default();
        begin(&mut feeds, 1, "a");
        begin(&mut feeds, 1, "b");
        let look = feeds.looks(0).pop().unwrap();
        assert!(matches!(look.what, What::Page { after: 10, .. }));
        assert!(feeds.looks(0).is_empty(), "one of a link at a time");
        assert_eq!(feeds.page(look.ticket).unwrap().upto, 99);
        feeds.told(look.ticket, ids(2), Some((50, Feeds::until(0))));

        let look = feeds.looks(1_000).pop().unwrap();
        assert!(matches!(&look.what, What::Unclaimed(ids) if ids.len() == 2));
        feeds.looked(look.ticket, Some(true));
        let look = feeds.looks(2_000).pop().unwrap();
        feeds.looked(look.ticket, Some(false));
        let look = feeds.looks(3_000).pop().unwrap();
        assert!(matches!(look.what, What::Page { after: 50, .. }), "they are claimed");
        assert!(feeds.page(look.ticket).is_some());
        feeds.told(look.ticket, ids(2), Some((60, Feeds::until(3_000))));
        let look = feeds.looks(3_000 + PAUSE).pop().unwrap();
        assert!(matches!(look.what, What::Page { after: 60, .. }), "the pause is over");
        assert!(feeds.page(look.ticket).is_some());
        feeds.told(look.ticket, Vec::new(), None);
        let next = feeds.looks(0).pop().unwrap();
        assert!(matches!(next.what, What::Page { name, .. } if name == pattern("b")));
    }

    #[test]
    fn an_answer_for_what_ended_is_no_ones_and_looks_are_bounded() {
        let mut feeds = Feeds::default();
        for link in 0..9 {
            begin(&mut feeds, link, "a");
        }
        let looks = feeds.looks(0);
        assert_eq!(looks.len(), MOST_LOOKS);
        feeds.end(LinkId(0), &pattern("d"), &pattern("a"));
        feeds.link_gone(LinkId(1));
        assert!(feeds.page(looks[0].ticket).is_none() && feeds.page(looks[1].ticket).is_none());
        assert_eq!(feeds.looks(0).len(), 2);
    }
}
