//! The database's clock, which decides what is due, as seen from ours.

/// How far the database's clock is from ours.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatabaseClock {
    /// In milliseconds; negative: it is behind.
    ahead: i64,
}

impl DatabaseClock {
    /// The database said `database` at a moment between `before` and `after` of ours. Within that they agree, as far as
    /// anyone can tell.
    pub fn look(&mut self, before: i64, database: i64, after: i64) {
        self.ahead = if database < before {
            database.saturating_sub(before)
        } else {
            database.saturating_sub(after).max(0)
        };
    }

    /// How far it is ahead of ours, in milliseconds; negative: behind.
    #[must_use]
    pub fn ahead(&self) -> i64 {
        self.ahead
    }

    /// What it shows when ours shows `wall`.
    #[must_use]
    pub fn now(&self, wall: i64) -> i64 {
        wall.saturating_add(self.ahead)
    }

    /// What ours shows when it shows `database`.
    #[must_use]
    pub fn wall(&self, database: i64) -> i64 {
        database.saturating_sub(self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_believed_where_it_surely_differs() {
        let mut clock = DatabaseClock::default();
        for (database, ahead) in [(100, 0), (105, 0), (110, 0), (90, -10), (130, 20)] {
            clock.look(100, database, 110);
            assert_eq!(clock.now(1_000), 1_000 + ahead, "{database}");
            assert_eq!(clock.wall(clock.now(1_000)), 1_000);
        }
    }
}
