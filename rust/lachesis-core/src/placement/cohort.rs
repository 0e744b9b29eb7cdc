//! Cohorts: running requests of a GPU whose next draw falls on the same step and targets the same tier.
//!
//! All draws of a cohort are one operation on the free list as long as one tier serves them all. The cohort's *regime* is that tier, and the
//! log of its roster says since which round. A member that got a block of another tier in some round is *exceptional* until the
//! next round, and keeps that block as an exception.

use crate::units::{CLASSES, Tier};

/// What a round touches of a cohort where one tier serves it: 32 bytes. The two targets of a GPU lie side by side, and then those
/// of the next GPU, because that is how a step comes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cohort {
    /// Rounds drawn so far.
    pub(super) round: u64,
    /// Of them, those with flash as the regime.
    pub(super) flash_rounds: u64,
    /// How many members.
    pub(super) size: u32,
    /// It draws in steps with this remainder by the number of cohorts of its target.
    phase: u32,
    target: Tier,
    pub(super) regime: Tier,
    /// Members that are exceptional.
    pub(super) has_exceptional: bool,
    /// As counted in its GPU's `irregular_cohorts`.
    pub(super) counts_as_irregular: bool,
}

/// Who the members of a cohort are.
#[derive(Debug)]
pub(super) struct Roster {
    /// Slots in admission order.
    pub(super) members: Vec<u32>,
    pub(super) exceptional: Vec<u32>,
    /// From which round on which tier was the regime; ascending, never empty. Kept only where runs are.
    pub(super) log: Vec<(u64, Tier)>,
    /// Members that are not exceptional, by class.
    pub(super) regular: [u32; CLASSES],
}

impl Cohort {
    pub(super) const fn new(phase: u32, target: Tier) -> Self {
        Self {
            round: 0,
            flash_rounds: 0,
            size: 0,
            phase,
            target,
            regime: target,
            has_exceptional: false,
            counts_as_irregular: false,
        }
    }

    /// Whether a member's current block is not of the target.
    pub(super) fn is_irregular(&self) -> bool {
        self.size > 0 && (self.has_exceptional || self.regime != self.target)
    }

    /// Whether every member's current block is of `tier`.
    #[inline]
    pub(super) fn is_all(&self, tier: Tier) -> bool {
        self.regime == tier && !self.has_exceptional
    }

    /// Steps from one with remainder `now` to the next that it draws in.
    #[inline]
    pub(super) const fn ahead(&self, now: u32, phases: u32) -> u32 {
        if self.phase >= now { self.phase - now } else { self.phase + phases - now }
    }

    /// So many rounds have been drawn under the regime at hand.
    #[inline]
    pub(super) fn end_rounds(&mut self, rounds: u64) {
        self.round += rounds;
        if self.regime == Tier::Hbf {
            self.flash_rounds += rounds;
        }
    }
}

impl Roster {
    pub(super) fn new(target: Tier) -> Self {
        Self { members: Vec::new(), exceptional: Vec::new(), log: vec![(0, target)], regular: [0; CLASSES] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_targets_share_a_cache_line() {
        assert_eq!(size_of::<Cohort>(), 32);
    }
}
