//! One entry a block: how many segments hold it, and whether it continues the run of the block before it.

use crate::placement::live::error::{PlacementError, Result};
use crate::units::{PerTier, Tier, index};

/// The block before this one belongs to the same run of the segment that wrote both.
const JOINED: u32 = 1 << 31;
/// Set and taken back within one call.
const MARKED: u32 = 1 << 30;
/// Something was written to the block once.
const WRITTEN: u32 = 1 << 29;
/// The rest counts holders.
const HOLDERS: u32 = WRITTEN - 1;

/// All blocks: ids 0.. are of HBM, the following of HBF.
#[derive(Debug)]
pub(super) struct Blocks {
    entries: Vec<u32>,
    pub(super) total: PerTier<u32>,
    pub(super) free: PerTier<u32>,
    /// Blocks that two segments or more hold.
    pub(super) shared: u32,
}

impl Blocks {
    pub(super) fn new(total: PerTier<u32>) -> Result<Self> {
        let all = u64::from(total[Tier::Hbm]) + u64::from(total[Tier::Hbf]);
        if all >= 1 << 31 {
            return Err(PlacementError::Value {
                name: "blocks",
                value: all.to_string(),
                rule: "must be fewer than 2147483648",
            });
        }
        let entries = vec![0; index(total[Tier::Hbm]) + index(total[Tier::Hbf])];
        Ok(Self { entries, total, free: total, shared: 0 })
    }

    /// The largest id; −1 without blocks.
    pub(super) fn last(&self) -> i64 {
        i64::from(self.total[Tier::Hbm]) + i64::from(self.total[Tier::Hbf]) - 1
    }

    pub(super) const fn tier_of(&self, block: u32) -> Tier {
        if block < self.total.0[0] { Tier::Hbm } else { Tier::Hbf }
    }

    pub(super) fn holders(&self, block: u32) -> u32 {
        self.entries[index(block)] & HOLDERS
    }

    pub(super) fn is_joined(&self, block: u32) -> bool {
        self.entries[index(block)] & JOINED != 0
    }

    pub(super) fn join(&mut self, block: u32, joined: bool) {
        let entry = &mut self.entries[index(block)];
        *entry = if joined { *entry | JOINED } else { *entry & !JOINED };
    }

    /// Marks blocks one by one as long as `rule` accepts them and none comes twice; on a refusal no mark stays.
    pub(super) fn mark_all(
        &mut self,
        blocks: &[u32],
        rule: impl Fn(&Self, u32) -> Result<()>,
        twice: fn(u32) -> PlacementError,
    ) -> Result<()> {
        for (place, &block) in blocks.iter().enumerate() {
            let verdict = match self.entries.get(index(block)) {
                None => Err(PlacementError::UnknownBlock { block, last: self.last() }),
                Some(entry) if entry & MARKED != 0 => Err(twice(block)),
                Some(_) => rule(self, block),
            };
            if let Err(fault) = verdict {
                self.unmark_all(&blocks[..place]);
                return Err(fault);
            }
            self.entries[index(block)] |= MARKED;
        }
        Ok(())
    }

    pub(super) fn unmark_all(&mut self, blocks: &[u32]) {
        for &block in blocks {
            self.entries[index(block)] &= !MARKED;
        }
    }

    pub(super) fn is_marked(&self, block: u32) -> bool {
        self.entries[index(block)] & MARKED != 0
    }

    pub(super) fn was_written(&self, block: u32) -> bool {
        self.entries[index(block)] & WRITTEN != 0
    }

    pub(super) fn is_full(&self, block: u32) -> bool {
        self.holders(block) == HOLDERS
    }

    /// A free block is written by a segment, which holds it alone.
    pub(super) fn take(&mut self, block: u32) {
        self.entries[index(block)] = WRITTEN | 1;
        let tier = self.tier_of(block);
        self.free[tier] -= 1;
    }

    /// One segment more holds a block.
    pub(super) fn hold(&mut self, block: u32) {
        let tier = self.tier_of(block);
        let entry = &mut self.entries[index(block)];
        *entry += 1;
        match *entry & HOLDERS {
            1 => self.free[tier] -= 1,
            2 => self.shared += 1,
            _ => {}
        }
    }

    /// One segment less holds a block; returns whether it is free now.
    #[inline]
    pub(super) fn let_go(&mut self, block: u32) -> bool {
        let tier = self.tier_of(block);
        let entry = &mut self.entries[index(block)];
        debug_assert!(*entry & HOLDERS > 0, "Invariant: only held blocks are let go");
        *entry -= 1;
        match *entry & HOLDERS {
            0 => {
                self.free[tier] += 1;
                true
            }
            1 => {
                self.shared -= 1;
                false
            }
            _ => false,
        }
    }

    /// Holders of every block, for the census.
    pub(super) fn all_holders(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|entry| entry & HOLDERS)
    }

    /// Whether a call left marks behind.
    pub(super) fn has_marks(&self) -> bool {
        self.entries.iter().any(|entry| entry & MARKED != 0)
    }
}
