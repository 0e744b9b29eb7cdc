//! Rows of the live layer's two tables.

use crate::placement::live::boundary_kind::BoundaryKinds;
use crate::placement::live::chain::NO_SLOT;
use crate::placement::live::table::{Keyed, NO_ROW};
use crate::policy::SegmentFacts;
use crate::units::{SegmentClass, Tier};

/// Where a row stands in a segment's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Requests may write to it.
    Open,
    /// Its boundary has come; it waits for the requests that run on it.
    Closing,
    /// It has ended; its blocks stay until they are reclaimed.
    Kept,
    /// No segment: the row is vacant.
    Gone,
}

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
    /// Class (3 bits), tier (1 bit), state (2 bits).
    packed: u8,
}

impl<K> SegmentRow<K> {
    pub(super) fn new(key: K, class: SegmentClass, closed_by: BoundaryKinds, score: Option<f64>) -> Self {
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
            packed: class as u8,
        }
    }

    pub(super) fn class(&self) -> SegmentClass {
        SegmentClass::from_number(self.packed & 7).unwrap_or(SegmentClass::Lead)
    }

    pub(super) const fn target(&self) -> Tier {
        if self.packed >> 3 & 1 == 0 { Tier::Hbm } else { Tier::Hbf }
    }

    pub(super) fn set_target(&mut self, tier: Tier) {
        self.packed = self.packed & !(1 << 3) | (tier as u8) << 3;
    }

    pub(super) const fn state(&self) -> State {
        match self.packed >> 4 {
            0 => State::Open,
            1 => State::Closing,
            2 => State::Kept,
            _ => State::Gone,
        }
    }

    pub(super) fn set_state(&mut self, state: State) {
        self.packed = self.packed & 15 | (state as u8) << 4;
    }

    /// Whether its key finds it.
    pub(super) const fn is_live(&self) -> bool {
        matches!(self.state(), State::Open | State::Closing)
    }

    pub(super) fn score(&self) -> Option<f64> {
        (!self.score.is_nan()).then_some(self.score)
    }

    /// What a policy is told.
    pub(super) fn facts(&self, session_number: u64) -> SegmentFacts {
        SegmentFacts {
            class: self.class(),
            gpu: 0,
            draw: session_number,
            segment: self.generation,
            is_shared: false,
            score: self.score(),
        }
    }
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

    #[test]
    fn packed_fields_do_not_touch_each_other() {
        for class in SegmentClass::ALL {
            for tier in Tier::ALL {
                for state in [State::Open, State::Closing, State::Kept, State::Gone] {
                    let mut row = SegmentRow::new(1_u64, class, BoundaryKinds::of(&[]), None);
                    row.set_state(state);
                    row.set_target(tier.other());
                    row.set_target(tier);
                    row.set_state(State::Gone);
                    row.set_state(state);
                    assert_eq!((row.class(), row.target(), row.state()), (class, tier, state));
                }
            }
        }
    }
}
