//! What npm links that subscribe are told of the past: events that nobody claimed and no binding wants, oldest first,
//! a hundred at a time.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::Arc,
};

use crate::{
    actors::{
        outlet::{LinkId, Outlet},
        round::round,
    },
    event::{EventId, Pattern},
};

/// Events that a link is told of at once.
pub const HUNDRED: usize = 100;
/// The next hundred comes when these are claimed, or after so many milliseconds.
const PAUSE: i64 = 10_000;
/// Pages that are read at once, over all links.
const MOST_LOOKS: usize = 4;
/// Links whose claims are asked for at once.
const MOST_ASKED: usize = 64;

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

/// A page to read from the database: open events of this domain and name above this number. The answer comes with the
/// ticket.
#[derive(Debug)]
pub struct Look {
    /// Give it back with the answer.
    pub ticket: Ticket,
    /// Above this number.
    pub after: u64,
    /// The domain.
    pub domain: Pattern,
    /// The name.
    pub name: Pattern,
}

/// Events, and whose answer it is whether any of them isn't claimed yet.
pub type Question = (Ticket, Vec<EventId>);

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
    /// Pages that are being read.
    looking: usize,
    /// The link that had the last of them.
    last_look: Option<LinkId>,
    /// Claims are being looked at.
    asking: bool,
    /// The last link whose claims were asked for.
    last_asked: Option<LinkId>,
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

    /// Which pages to read now: the links have their turns.
    pub fn looks(&mut self, now: i64) -> Vec<Look> {
        let free = MOST_LOOKS.saturating_sub(self.looking);
        let wants = |link: &&LinkId| {
            self.first(**link).is_some_and(|(_, feed)| match &feed.state {
                State::Looking => false,
                State::Told { until, .. } => *until <= now,
                State::Ready => true,
            })
        };
        let links: Vec<_> =
            round(&self.links, self.last_look.as_ref()).filter(wants).take(free).copied().collect();
        let mut looks = Vec::new();
        for link in links {
            let Some((number, feed)) = self.links.get_mut(&link).and_then(VecDeque::front_mut) else {
                continue;
            };
            feed.state = State::Looking;
            let (after, domain, name) = (feed.after, feed.domain.clone(), feed.name.clone());
            looks.push(Look { ticket: Ticket { link, number: *number }, after, domain, name });
            self.looking += 1;
            self.last_look = Some(link);
        }
        looks
    }

    /// Whose claims to look at now, beside the pages; none while others are looked at. Here too the links have their
    /// turns; who waits for its turn has its pause all the same.
    pub fn questions(&mut self, now: i64) -> Vec<Question> {
        if self.asking {
            return Vec::new();
        }
        let question = |link: &LinkId| {
            let (number, feed) = self.first(*link)?;
            match &feed.state {
                State::Told { ids, until } if *until > now && !ids.is_empty() => {
                    Some((Ticket { link: *link, number: *number }, ids.clone()))
                }
                _ => None,
            }
        };
        let questions: Vec<_> =
            round(&self.links, self.last_asked.as_ref()).filter_map(question).take(MOST_ASKED).collect();
        if let Some((last, _)) = questions.last() {
            self.asking = true;
            self.last_asked = Some(last.link);
        }
        questions
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

    /// All that these links were told of is claimed: they want what is next.
    pub fn claimed(&mut self, all: Vec<Ticket>) {
        self.asking = false;
        for ticket in all {
            if let Some(feed) = self.front(ticket)
                && let State::Told { .. } = feed.state
            {
                feed.state = State::Ready;
            }
        }
    }

    fn first(&self, link: LinkId) -> Option<&(u64, Feed)> {
        self.links.get(&link)?.front()
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
        assert_eq!(look.after, 10);
        assert!(feeds.looks(0).is_empty(), "one of a link at a time");
        assert_eq!(feeds.page(look.ticket).unwrap().upto, 99);
        feeds.told(look.ticket, ids(2), Some((50, Feeds::until(0))));

        let (ticket, asked) = feeds.questions(1_000).pop().unwrap();
        assert_eq!(asked.len(), 2);
        assert!(feeds.questions(1_000).is_empty(), "it is asked already");
        feeds.claimed(Vec::new());
        assert!(feeds.looks(2_000).is_empty());
        assert_eq!(feeds.questions(2_000).pop().unwrap().0, ticket);
        feeds.claimed(vec![ticket]);
        let look = feeds.looks(3_000).pop().unwrap();
        assert_eq!(look.after, 50, "they are claimed");
        assert!(feeds.page(look.ticket).is_some());
        feeds.told(look.ticket, ids(2), Some((60, Feeds::until(3_000))));
        let look = feeds.looks(3_000 + PAUSE).pop().unwrap();
        assert_eq!(look.after, 60, "the pause is over");
        assert!(feeds.page(look.ticket).is_some());
        feeds.told(look.ticket, Vec::new(), None);
        let next = feeds.looks(0).pop().unwrap();
        assert_eq!(next.name, pattern("b"));
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

    #[test]
    fn links_that_never_claim_keep_nothing_from_others() {
        const LINKS: u64 = 200;
        let mut feeds = Feeds::default();
        for link in 0..LINKS {
            begin(&mut feeds, link, "a");
        }
        let (mut pages, mut asked) = (BTreeMap::<LinkId, u64>::new(), BTreeMap::<LinkId, u64>::new());
        for second in 0..60 {
            let now = second * 1_000;
            loop {
                let looks = feeds.looks(now);
                if looks.is_empty() {
                    break;
                }
                for Look { ticket, after, .. } in looks {
                    feeds.page(ticket).unwrap();
                    feeds.told(ticket, ids(1), Some((after + 1, Feeds::until(now))));
                    *pages.entry(ticket.link).or_default() += 1;
                }
            }
            feeds.questions(now).iter().for_each(|(ticket, _)| *asked.entry(ticket.link).or_default() += 1);
            feeds.claimed(Vec::new());
        }
        assert_eq!(pages.len() as u64, LINKS);
        assert!(pages.values().all(|pages| *pages == 6), "each as its pauses allow: {pages:?}");
        assert!(asked.len() as u64 == LINKS && asked.values().all(|times| *times >= 15), "{asked:?}");
    }

    #[test]
    fn many_links_have_their_turns_though_a_page_takes_its_time() {
        let mut feeds = Feeds::default();
        for link in 1..=6 {
            begin(&mut feeds, link, "a");
        }
        let mut pages = BTreeMap::<LinkId, u64>::new();
        for now in (0..60).map(|turn| turn * PAUSE) {
            for Look { ticket, .. } in feeds.looks(now) {
                feeds.page(ticket).unwrap();
                feeds.told(ticket, ids(1), Some((20, Feeds::until(now))));
                *pages.entry(ticket.link).or_default() += 1;
            }
        }
        assert_eq!(pages.into_values().collect::<Vec<_>>(), [40; 6]);
    }
}
