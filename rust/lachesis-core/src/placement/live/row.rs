//! Rows of the live layer's two tables.

use crate::boundary::BoundaryKinds;
use crate::kv::Life;
use crate::placement::live::chain::NO_SLOT;
use crate::placement::live::table::{Keyed, NO_ROW};
use crate::policy::SegmentFacts;
use crate::units::SegmentClass;

/// One segment: at most 48 bytes where keys take 8.
#[derive(Debug, Clone)]
pub(super) struct SegmentRow<K> {
    pub(super) key: K,
    /// The predicted lifetime's rank key; NaN without one.
    score: f64,
    /// Counts every opening, so that an event of an earlier one can be told.
    pub(super) generation: u32,
    /// When it was last heard of, in ticks.
    pub(super) touched: u32,
    /// Row of its session.
    pub(super) session: u32,
    /// Neighbours among the session's segments, or among the kept ones.
    pub(super) next: u32,
    pub(super) previous: u32,
    /// Its blocks.
    pub(super) top: u32,
    /// How many.
    pub(super) held: u32,
    /// Requests that run on it.
    pub(super) running: u16,
    pub(super) closed_by: BoundaryKinds,
    pub(super) life: Life,
}

impl<K> SegmentRow<K> {
    pub(super) fn new(key: K, life: Life, closed_by: BoundaryKinds, score: Option<f64>) -> Self {
        Self {
            key,
            score: score.unwrap_or(f64::NAN),
            generation: 0,
            touched: 0,
            session: NO_ROW,
            next: NO_ROW,
            previous: NO_ROW,
            top: NO_SLOT,
            held: 0,
            running: 0,
            closed_by,
            life,
        }
    }

    /// Whether requests run on it.
    pub(super) const fn in_use(&self) -> bool {
        self.running > 0
    }

    pub(super) fn score(&self) -> Option<f64> {
        (!self.score.is_nan()).then_some(self.score)
    }

    /// What a policy is told at its end.
    pub(super) fn facts(&self, session_number: u64) -> SegmentFacts {
        facts(self.life.class(), self.generation, session_number, self.score())
    }
}

/// What a policy is told of a segment, from its opening on.
pub(super) const fn facts(
    class: SegmentClass,
    generation: u32,
    session_number: u64,
    score: Option<f64>,
) -> SegmentFacts {
    SegmentFacts { class, gpu: 0, draw: session_number, segment: generation, is_shared: false, score }
}

impl<K: std::hash::Hash + Eq> Keyed for SegmentRow<K> {
    type Key = K;
    fn key(&self) -> &K {
        &self.key
    }
}

/// One session with live segments.
#[derive(Debug, Clone)]
pub(super) struct SessionRow<K> {
    pub(super) key: K,
    /// Counts every session.
    pub(super) number: u64,
    /// First of its live segments.
    pub(super) first: u32,
    /// How many.
    pub(super) live: u32,
    /// Sub-agents spawned so far.
    pub(super) spawns: u32,
}

impl<K: std::hash::Hash + Eq> Keyed for SessionRow<K> {
    type Key = K;
    fn key(&self) -> &K {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_takes_48_bytes() {
        assert_eq!(size_of::<SegmentRow<u64>>(), 48);
    }
}
