//! Counting what waits, while everything else goes on.

use super::{PAGE, World};
use crate::store::OpenMark;

impl World {
    pub(super) fn want_marks(&mut self) {
        if let Some(wanted) = self.group.want_marks() {
            assert!(self.marks.is_none(), "one count at a time");
            self.marks = Some((wanted, None));
        }
    }

    /// As the database stands now.
    pub(super) fn read_marks(&mut self) {
        if let Some((wanted, read @ None)) = &mut self.marks {
            let rows = self.rows.range(wanted.after + 1..=wanted.until).filter(|(_, row)| row.is_open());
            let mark = |(seq, row): (&u64, &super::Row)| {
                let event = &row.event.event;
                OpenMark { seq: *seq, domain: event.domain.clone(), name: event.name.clone() }
            };
            *read = Some(rows.map(mark).take(PAGE).collect());
        }
    }

    pub(super) fn count_marks(&mut self) {
        if let Some((_, Some(marks))) = self.marks.take_if(|(_, read)| read.is_some()) {
            let next =
                self.group.marks(&marks, marks.last().filter(|_| marks.len() >= PAGE).map(|last| last.seq));
            self.marks = next.map(|wanted| (wanted, None));
        }
    }

    pub(super) fn count_to_the_end(&mut self) {
        while self.marks.is_some() {
            self.read_marks();
            self.count_marks();
        }
    }

    /// Nothing is under way: the count is true, unless something happened that it can't know of.
    pub(super) fn check_count(&mut self) {
        if self.unsure || self.rows.values().any(|row| row.npm) {
            self.unsure = false;
            self.group.be_unsure();
            self.group.recount();
        }
        self.want_marks();
        self.count_to_the_end();
        let waiting = self.rows.values().filter(|row| row.is_open() && self.wanted(row)).count();
        assert_eq!(self.group.pending(), Some(waiting as u64));
    }
}
