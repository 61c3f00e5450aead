//! The queue in a naive world: a database that knows everything, reads and runs that take their time, a clock that is
//! set.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const LIMITS: QueueLimits = QueueLimits { most: 8, page: 4, batch: 3, bytes: 10 };
/// What is read ahead, in milliseconds.
const AHEAD: i64 = 3_000;
/// Events of so many bytes can't be run.
const BAD: usize = 9;

#[derive(Debug, Clone)]
enum Step {
    /// By this hub, or by somebody else.
    Schedule {
        after: i64,
        bytes: usize,
        told: bool,
    },
    Cancel(usize),
    Clock(i64),
    Poll,
    EndRead {
        failed: bool,
    },
    EndRun {
        refused: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    // In tenths of seconds, so that many share a moment.
    let after = (-20..80_i64).prop_map(|tenths| tenths * 100);
    prop_oneof![
        6 => (after, 1..12_usize, prop::bool::weighted(0.7))
            .prop_map(|(after, bytes, told)| Step::Schedule { after, bytes, told }),
        1 => any::<usize>().prop_map(Step::Cancel),
        4 => (0..20_i64).prop_map(|tenths| Step::Clock(tenths * 100)),
        1 => (-90..90_i64).prop_map(|tenths| Step::Clock(tenths * 100)),
        2 => Just(Step::Poll),
        4 => prop::bool::weighted(0.1).prop_map(|failed| Step::EndRead { failed }),
        6 => prop::bool::weighted(0.1).prop_map(|refused| Step::EndRun { refused }),
    ]
}

struct Row {
    due: i64,
    bytes: usize,
    open: bool,
    ran: u32,
    /// The queue was told of it, or has read it.
    known: bool,
}

struct Read {
    until: i64,
    page: Vec<Due>,
    more: bool,
    rows: usize,
}

struct World {
    queue: DueQueue,
    now: i64,
    rows: BTreeMap<String, Row>,
    read: Option<Read>,
    run: Option<Vec<Due>>,
    until: i64,
}

impl World {
    fn new() -> Self {
        let queue = DueQueue::new(LIMITS);
        let (now, until) = (1_000_000, i64::MIN);
        let mut world = Self { queue, now, rows: BTreeMap::new(), read: None, run: None, until };
        world.begin_read();
        world
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Schedule { after, bytes, told } => {
                let (due, id) = (self.now + after, format!("e{:04}", self.rows.len()));
                self.rows.insert(id.clone(), Row { due, bytes, open: true, ran: 0, known: told });
                if told {
                    self.queue.told(Due { due, id: EventId::from_stored(id), bytes });
                }
            }
            Step::Cancel(which) => {
                let open: Vec<_> = self.rows.values_mut().filter(|row| row.open).collect();
                let count = open.len().max(1);
                if let Some(row) = open.into_iter().nth(which % count) {
                    row.open = false;
                }
            }
            Step::Clock(by) => self.now += by,
            Step::Poll => self.begin_read(),
            Step::EndRead { failed } => self.end_read(failed),
            Step::EndRun { refused } => self.end_run(refused),
        }
        self.pump();
    }

    /// What the actor does after each message.
    fn pump(&mut self) {
        let due = self.queue.take(self.now);
        if !due.is_empty() {
            assert!(self.run.is_none(), "one run at a time");
            assert!(due.iter().all(|due| due.due <= self.now), "never early");
            assert!(due.is_sorted_by_key(|due| due.due) && due.len() <= LIMITS.batch);
            assert!(due.len() == 1 || due.iter().map(|due| due.bytes).sum::<usize>() <= LIMITS.bytes);
            self.run = Some(due);
        }
        if self.queue.wants_page() {
            self.begin_read();
        }
        assert!(self.queue.near.len() <= LIMITS.most, "bounded");
        if self.run.is_none() && self.read.is_none() {
            let until = self.until.min(self.now);
            let late = self
                .rows
                .iter()
                .find(|(_, row)| row.open && row.known && row.due <= until && row.bytes != BAD);
            assert!(late.is_none(), "idle, though {:?} is due", late.map(|(id, _)| id));
        }
    }

    fn begin_read(&mut self) {
        if self.read.is_some() {
            return;
        }
        let until = self.now + AHEAD;
        let limit = self.queue.read_begins(until);
        let mut open: Vec<Due> = self
            .rows
            .iter()
            .filter(|(_, row)| row.open && row.due <= until)
            .map(|(id, row)| Due { due: row.due, id: EventId::from_stored(id.clone()), bytes: row.bytes })
            .collect();
        open.sort_by_key(|due| (due.due, due.id.clone()));
        let more = open.len() > limit;
        open.truncate(limit);
        self.read = Some(Read { until, page: open, more, rows: self.rows.len() });
    }

    fn end_read(&mut self, failed: bool) {
        let Some(Read { until, page, more, rows }) = self.read.take() else { return };
        if failed {
            self.queue.read_failed();
            // What was ignored until now is found by the next.
            self.begin_read();
            return;
        }
        self.until = until;
        for row in self.rows.values_mut().take(rows) {
            row.known = true;
        }
        self.queue.read_ends(page, more);
    }

    fn end_run(&mut self, refused: bool) {
        let Some(run) = self.run.take() else { return };
        if refused {
            assert_eq!(self.queue.failed(Trouble::Passing), None);
            return;
        }
        if run.iter().any(|due| due.bytes == BAD) {
            let given_up = self.queue.failed(Trouble::Lasting);
            assert_eq!(given_up.is_some(), run.len() == 1, "only one that stands alone");
            return;
        }
        let mut published = 0;
        for due in run {
            let row = self.rows.get_mut(due.id.as_str()).unwrap();
            // The guard of the row.
            if row.open && row.due <= self.now {
                row.open = false;
                row.ran += 1;
                published += 1;
            }
        }
        self.queue.ran(published);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn each_schedule_runs_once_in_its_time_whatever_happens(steps in prop::collection::vec(step(), 0..120)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
        }
        world.now = world.rows.values().map(|row| row.due).max().unwrap_or(0).max(world.now);
        for _ in 0..20 + 10 * world.rows.len() {
            world.take(&Step::EndRun { refused: false });
            world.take(&Step::EndRead { failed: false });
            if world.run.is_none() && world.read.is_none() {
                world.take(&Step::Poll);
            }
        }
        for (id, row) in &world.rows {
            assert!(row.ran <= 1, "{id} ran twice");
            assert!(!row.open || row.bytes == BAD, "{id} never ran");
        }
    }
}

#[test]
fn far_more_than_fits_runs_in_order_and_in_pages() {
    let mut world = World::new();
    for n in 0..1_000 {
        let row = Row { due: n * 7 % 5_000, bytes: 1, open: true, ran: 0, known: false };
        world.rows.insert(format!("e{n:04}"), row);
    }
    let mut order = Vec::new();
    world.take(&Step::EndRead { failed: true });
    while world.rows.values().any(|row| row.open) {
        world.take(&Step::EndRead { failed: false });
        order.extend(world.run.iter().flatten().map(|due| due.due));
        world.take(&Step::EndRun { refused: false });
    }
    assert!(order.is_sorted() && order.len() == 1_000, "{order:?}");
    assert!(world.rows.values().all(|row| row.ran == 1));
}

#[test]
fn a_clock_that_is_set_back_delays_and_one_that_is_set_forward_runs() {
    let mut queue = DueQueue::new(LIMITS);
    queue.read_begins(10_000);
    queue.read_ends(Vec::new(), false);
    queue.told(Due { due: 5_000, id: EventId::from_stored("e"), bytes: 1 });
    assert_eq!(queue.next(), Some(5_000));
    for back in [4_999, 1_000, -7] {
        assert!(queue.take(back).is_empty());
    }
    assert_eq!(queue.take(900_000).len(), 1);
    assert_eq!(queue.next(), None, "its end is waited for");
}
