//! What was written: tokens by class, tier and kind. Decoded tokens are counted by rates, so that a step costs nothing here.

use crate::units::{PerClassTier, SegmentClass, Tier};

/// Why tokens are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// For the first time.
    Materialised,
    /// Again, after their block was reclaimed or lost.
    Rematerialised,
}

/// Tokens written so far.
#[derive(Debug, Default)]
pub struct Ledger {
    suffix: PerClassTier<u64>,
    rematerialised: PerClassTier<u64>,
    /// Running requests that append a token a step, by the class of the segment and the tier of its current block.
    rate: PerClassTier<u32>,
    /// Σ change × step over all changes of the rate: up to step s, rate·s less this was decoded. Modulo 2⁶⁴, as the difference is small.
    rate_changes: PerClassTier<u64>,
}

impl Ledger {
    /// Enters tokens of a suffix or of a carried write.
    pub fn write(&mut self, class: SegmentClass, tier: Tier, kind: WriteKind, tokens: u32) {
        let column = match kind {
            WriteKind::Materialised => &mut self.suffix,
            WriteKind::Rematerialised => &mut self.rematerialised,
        };
        column[(class, tier)] += u64::from(tokens);
    }

    /// Changes how many requests append a token a step; steps before `steps_started` are counted at the old rate.
    ///
    /// # Panics
    /// If more leave than joined: a fault of ours.
    #[inline]
    pub fn change_rate(&mut self, class: SegmentClass, tier: Tier, steps_started: u64, change: i32) {
        let place = (class, tier);
        let weight = i64::from(change).cast_unsigned().wrapping_mul(steps_started);
        self.rate_changes[place] = self.rate_changes[place].wrapping_add(weight);
        self.rate[place] = self.rate[place]
            .checked_add_signed(change)
            .expect("Invariant: as many requests leave a rate as joined it");
    }

    /// Tokens written for the first time, up to the steps started.
    #[must_use]
    pub fn materialised(&self, steps_started: u64) -> PerClassTier<u64> {
        let mut total = self.suffix;
        for class in SegmentClass::ALL {
            for tier in Tier::ALL {
                let place = (class, tier);
                let at_this_rate = u64::from(self.rate[place]).wrapping_mul(steps_started);
                total[place] += at_this_rate.wrapping_sub(self.rate_changes[place]);
            }
        }
        total
    }

    /// Tokens written again.
    #[must_use]
    pub const fn rematerialised(&self) -> &PerClassTier<u64> {
        &self.rematerialised
    }
}
