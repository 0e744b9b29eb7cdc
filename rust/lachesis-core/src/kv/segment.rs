//! One row of the segment table.

use crate::kv::extent::{Extent, ExtentSlab, ExtentStack};
use crate::kv::life::Life;
use crate::units::{PerTier, SegmentClass, Tier};

/// Names a row of the segment table; reused after the segment is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

impl SegmentId {
    /// No segment.
    pub const NONE: Self = Self(u32::MAX);

    /// The row's position in the table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A segment's row: at most 64 bytes.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Tokens whose KV the segment stands for, resident or not.
    pub tokens: u32,
    /// Tokens whose KV lies in its blocks: the first `resident` of `tokens`.
    pub resident: u32,
    /// Blocks held in each tier.
    pub blocks: PerTier<u32>,
    /// Its blocks.
    pub(super) stack: ExtentStack,
    /// Ready or running requests that use it.
    pub pins: u32,
    /// Live sessions that hold it (shared prompts).
    pub holders: u32,
    /// How often the row has entered a reclaim list, over all the segments that it stood for.
    pub(super) listing: u32,
    pub(super) in_reclaim_list: bool,
    /// A shared prompt, kept in the GPU's table of prompts.
    pub shared: bool,
    /// Its blocks return all at once, none of them by reclaiming: their counts and the top run say all there is to know, and no run below is kept.
    pub whole: bool,
    /// Class, target tier and stage.
    pub life: Life,
    /// The GPU whose blocks it holds.
    pub gpu: u16,
}

impl Segment {
    pub(super) fn new(gpu: u16, class: SegmentClass, target: Tier) -> Self {
        Self {
            tokens: 0,
            resident: 0,
            blocks: PerTier([0, 0]),
            stack: ExtentStack::default(),
            pins: 0,
            holders: 0,
            listing: 0,
            in_reclaim_list: false,
            shared: false,
            whole: false,
            life: Life::open(class, target),
            gpu,
        }
    }

    /// The class.
    #[must_use]
    #[inline]
    pub fn class(&self) -> SegmentClass {
        self.life.class()
    }

    /// The tier that the policy named.
    #[must_use]
    #[inline]
    pub const fn target(&self) -> Tier {
        self.life.target()
    }

    /// Puts a run of blocks on top.
    #[inline]
    pub(super) fn push(&mut self, slab: &mut ExtentSlab, run: Extent) {
        if self.whole {
            self.stack.replace(run);
        } else {
            slab.push(&mut self.stack, run);
        }
    }

    /// A run of blocks has been reclaimed from it, and what lay in them must be written again. Returns whether it has none left.
    #[inline]
    pub(super) fn lose(&mut self, run: Extent, block_tokens: u32) -> bool {
        self.blocks[run.tier] -= run.blocks;
        let held = self.held();
        if held == 0 {
            self.resident = 0;
        } else if self.life.is_live() {
            self.resident = self.resident.min(held * block_tokens);
        }
        held == 0
    }

    /// Tokens that must be computed again before the segment can be read.
    #[must_use]
    pub const fn missing(&self) -> u32 {
        self.tokens - self.resident
    }

    /// Whether its blocks may be reclaimed.
    #[must_use]
    pub const fn is_reclaimable(&self) -> bool {
        self.in_reclaim_list
    }

    /// Blocks held, over both tiers.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.blocks.0[0] + self.blocks.0[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stays_small() {
        assert!(size_of::<Segment>() <= 64, "{} bytes", size_of::<Segment>());
    }
}
