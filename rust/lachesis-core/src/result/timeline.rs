//! A run over time: one row a window of simulated time.

use crate::units::{PerClassTier, PerTier, Picos};

/// The state at one instant, and counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineRow {
    /// Simulated time.
    pub time: Picos,
    /// Steps of the node since the start.
    pub steps: u64,
    /// Requests ended since the start.
    pub requests: u64,
    /// Live sessions.
    pub sessions: u32,
    /// Running requests.
    pub running: u32,
    /// Requests whose prefill is done and that wait for a slot or for blocks.
    pub waiting: u32,
    /// Blocks in use.
    pub used_blocks: PerTier<u64>,
    /// Blocks entered in segments, by class; what running requests have drawn since their admission is not in them yet.
    pub held_blocks: PerClassTier<u64>,
    /// Tokens written since the start, again or for the first time.
    pub written: PerClassTier<u64>,
}

/// Rows taken every so often.
#[derive(Debug)]
pub struct Timeline {
    interval: Picos,
    next: Picos,
    rows: Vec<TimelineRow>,
}

impl Timeline {
    /// A timeline with a row every `interval`, which is above 0.
    #[must_use]
    pub const fn new(interval: Picos) -> Self {
        Self { interval, next: 0, rows: Vec::new() }
    }

    /// Whether a row is due.
    #[must_use]
    pub const fn is_due(&self, now: Picos) -> bool {
        now >= self.next
    }

    /// Adds a row; the next is due at the first multiple of the interval after it.
    pub fn add(&mut self, row: TimelineRow) {
        self.next = (row.time / self.interval + 1).saturating_mul(self.interval);
        self.rows.push(row);
    }

    /// All rows.
    #[must_use]
    pub fn into_rows(self) -> Vec<TimelineRow> {
        self.rows
    }
}
