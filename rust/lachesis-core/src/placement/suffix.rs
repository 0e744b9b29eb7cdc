//! Writing a suffix: what of a segment is missing, then what is new.

use crate::error::Result;
use crate::kv::SegmentId;
use crate::placement::{Placement, WriteKind};
use crate::units::{PerTier, Tier};

/// Blocks that a suffix needs, by the tier that its segments target.
pub type Need = PerTier<u64>;

impl Placement {
    /// Adds to `need` the blocks for a segment's missing tokens and `written` new ones.
    pub fn add_need(&self, id: SegmentId, written: u32, need: &mut Need) {
        let segment = self.memory.segment(id);
        let tokens = segment.missing() + written;
        need[segment.target()] += u64::from(self.memory.blocks_for(segment.resident, tokens));
    }

    /// Writes a segment's missing tokens (re-materialised) and `written` new ones (materialised); `landed_in_flash` is told how
    /// many of them went to HBF.
    ///
    /// Contract: the blocks can be had.
    ///
    /// # Errors
    /// `Error::OutOfBlocks` if the caller did not make sure of that.
    pub fn write_suffix(&mut self, id: SegmentId, written: u32) -> Result<u32> {
        let segment = self.memory.segment_mut(id);
        let missing = segment.missing();
        segment.tokens += written;
        self.write(id, missing, written)
    }

    /// Writes what a GPU's copy of a shared prompt lacks: the first time as materialised, then as re-materialised.
    ///
    /// # Errors
    /// As `write_suffix`.
    pub fn write_prompt(&mut self, id: SegmentId, key: u32) -> Result<u32> {
        let segment = self.memory.segment(id);
        let (gpu, missing) = (segment.gpu, segment.missing());
        if missing == 0 {
            return Ok(0);
        }
        if self.first_write_of_prompt(gpu, key) {
            self.write(id, 0, missing)
        } else {
            self.write(id, missing, 0)
        }
    }

    fn write(&mut self, id: SegmentId, missing: u32, new: u32) -> Result<u32> {
        if missing + new == 0 {
            return Ok(0);
        }
        let class = self.memory.segment(id).class();
        let mut left = missing;
        // By tier: tokens written again, and for the first time.
        let (mut again, mut first) = (PerTier([0; 2]), PerTier([0; 2]));
        self.memory.append(id, missing + new, |tier, tokens| {
            let rematerialised = left.min(tokens);
            left -= rematerialised;
            again[tier] += rematerialised;
            first[tier] += tokens - rematerialised;
        })?;
        for tier in Tier::ALL {
            self.ledger.write(class, tier, WriteKind::Rematerialised, again[tier]);
            self.ledger.write(class, tier, WriteKind::Materialised, first[tier]);
        }
        Ok(again[Tier::Hbf] + first[Tier::Hbf])
    }
}
