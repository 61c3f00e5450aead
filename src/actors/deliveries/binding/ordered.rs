//! What a binding does besides in a group that keeps the order of keys.

use super::{Again, Binding, Mode, Waiting};

impl Binding {
    /// Up to where it was considered, if somebody consumes it and the database holds more; none: it holds back nobody.
    #[must_use]
    pub fn behind(&self) -> Option<u64> {
        (self.consumers > 0 && !self.is_live()).then_some(self.loaded)
    }

    /// What is dispatched from now on is left to the database, until pages have caught up.
    pub fn lag(&mut self) {
        if self.is_live() {
            self.mode = Mode::Lagging(None);
        }
    }

    /// Whether the event waits here.
    #[must_use]
    pub fn keeps(&self, seq: u64) -> bool {
        self.waiting.contains_key(&seq)
    }

    /// What waits here, by number.
    pub fn kept(&self) -> impl Iterator<Item = u64> + '_ {
        self.waiting.keys().copied()
    }

    /// Takes this one out, wherever it stands.
    pub fn take_out(&mut self, seq: u64) -> Option<Waiting> {
        self.again.remove(seq);
        let waiting = self.waiting.remove(&seq)?;
        self.bytes -= waiting.event.weight();
        Some(waiting)
    }

    /// Gives up what waits in memory; everything above `floor` that was here is read again.
    pub fn give_up(&mut self, floor: Option<u64>) {
        let behind = !self.is_live() || !self.waiting.is_empty() || floor.is_some();
        self.loaded = floor.map_or(self.floor(), |floor| floor.min(self.floor()));
        self.waiting.clear();
        self.again = Again::default();
        self.bytes.clear();
        self.mode = match self.mode {
            Mode::Idle { behind: was } => Mode::Idle { behind: was || floor.is_some() },
            _ if behind => Mode::Lagging(None),
            _ => Mode::Live,
        };
    }
}
