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
    decoded: PerClassTier<u64>,
    counted_to_step: PerClassTier<u64>,
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
    pub fn change_rate(&mut self, class: SegmentClass, tier: Tier, steps_started: u64, change: i32) {
        let place = (class, tier);
        self.decoded[place] += u64::from(self.rate[place]) * (steps_started - self.counted_to_step[place]);
        self.counted_to_step[place] = steps_started;
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
                total[place] += self.decoded[place]
                    + u64::from(self.rate[place]) * (steps_started - self.counted_to_step[place]);
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
