//! Blocks come to a segment: planned, committed, adopted; and single ones leave it.

use crate::kv::BlockRange;
use crate::placement::live::chain::NO_SLOT;
use crate::placement::live::close::{Released, push_block};
use crate::placement::live::error::{PlacementError, Result};
use crate::placement::live::{Key, Live, Named};
use crate::units::{PerTier, Tier};

/// Where the next blocks of a segment go: `first` ones in `target`, the rest in the other tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The tier that the policy named.
    pub target: Tier,
    /// Blocks of each tier.
    pub blocks: PerTier<u32>,
}

impl Plan {
    /// Runs in the order in which the blocks are to be drawn.
    pub fn runs(self) -> impl Iterator<Item = (Tier, u32)> {
        [self.target, self.target.other()]
            .into_iter()
            .map(move |tier| (tier, self.blocks[tier]))
            .filter(|&(_, blocks)| blocks > 0)
    }
}

impl<K: Key> Live<K> {
    /// Says in which tiers the next `blocks` blocks of a segment go. Changes nothing.
    ///
    /// # Errors
    /// `UnknownSegment`, `SegmentClosed`, `OutOfBlocks`.
    pub fn plan(&self, named: Named<'_, K>, blocks: u32) -> Result<Plan> {
        self.plan_within(named, blocks, None)
    }

    /// As `plan`, where the engine has only so many free blocks: it may have handed others to somebody else.
    ///
    /// # Errors
    /// As `plan`.
    pub fn plan_within(
        &self,
        named: Named<'_, K>,
        blocks: u32,
        engine_free: Option<PerTier<u32>>,
    ) -> Result<Plan> {
        let target = self.segments.row(self.writable(named)?).life.target();
        let mut free = self.blocks.free;
        if let Some(engine_free) = engine_free {
            for tier in Tier::ALL {
                free[tier] = free[tier].min(engine_free[tier]);
            }
        }
        match self.decisions.split(target, blocks, free) {
            Some(blocks) => Ok(Plan { target, blocks }),
            None => Err(self.out_of_blocks(target, blocks, free)),
        }
    }

    fn out_of_blocks(&self, tier: Tier, needed: u32, free: PerTier<u32>) -> PlacementError {
        let of = |count: PerTier<u32>| {
            let other = if self.decisions.falls_back() { u64::from(count[tier.other()]) } else { 0 };
            u64::from(count[tier]) + other
        };
        PlacementError::OutOfBlocks { tier, needed, free: of(free), reclaimable: of(self.kept_blocks) }
    }

    /// Enters blocks that the engine drew for a segment, in their order.
    ///
    /// # Errors
    /// `UnknownSegment`, `SegmentClosed`; `UnknownBlock`; `BlockHeld` for one that a segment holds or that is named twice; `WrongTier`
    /// where the policy forbids the tier.
    pub fn commit(&mut self, named: Named<'_, K>, blocks: &[u32], event: Option<&K>) -> Result<()> {
        if self.is_repeated(event) {
            return Ok(());
        }
        let place = self.writable(named)?;
        let target = self.segments.row(place).life.target();
        let falls_back = self.decisions.falls_back();
        self.blocks.mark_all(
            blocks,
            |table, block| {
                if table.holders(block) > 0 {
                    return Err(PlacementError::BlockHeld {
                        block,
                        why: "a block is written by one segment only; adopt it to share it",
                    });
                }
                if !falls_back && table.tier_of(block) != target {
                    let segment = named.segment.to_string();
                    return Err(PlacementError::WrongTier { block, segment, tier: target });
                }
                Ok(())
            },
            |block| PlacementError::BlockHeld { block, why: "it is named twice in one call" },
        )?;
        let row = self.segments.row_mut(place);
        let class = row.life.class();
        for &block in blocks {
            let tier = self.blocks.tier_of(block);
            self.blocks.take(block);
            self.chains.push_written(&mut row.top, block, &mut self.blocks);
            self.written[(class, tier)] += 1;
            self.counters.fallbacks += u64::from(tier != target);
        }
        row.held += crate::units::narrow(blocks.len());
        row.touched = self.now;
        self.remember(event);
        Ok(())
    }

    /// A segment begins to hold blocks that are written already: of other segments, and with `cached` also free ones that the engine
    /// has taken off its list because it still has their content. They are freed with their last holder.
    ///
    /// # Errors
    /// `UnknownSegment`, `SegmentClosed`; `UnknownBlock`; `EmptyBlock` for one that was never written; `UnheldBlock` for a free one without `cached`; `BlockHeld` for one that the
    /// segment holds, or that is named twice; `TooShared`.
    pub fn adopt(
        &mut self,
        named: Named<'_, K>,
        blocks: &[u32],
        cached: bool,
        event: Option<&K>,
    ) -> Result<()> {
        if self.is_repeated(event) {
            return Ok(());
        }
        let place = self.writable(named)?;
        self.blocks.mark_all(
            blocks,
            |table, block| match () {
                () if !table.was_written(block) => Err(PlacementError::EmptyBlock(block)),
                () if !cached && table.holders(block) == 0 => Err(PlacementError::UnheldBlock(block)),
                () if table.is_full(block) => Err(PlacementError::TooShared(block)),
                () => Ok(()),
            },
            |block| PlacementError::BlockHeld { block, why: "it is named twice in one call" },
        )?;
        let top = self.segments.row(place).top;
        let held_already = self
            .chains
            .runs(top, &self.blocks)
            .flat_map(|run| run.range.start..run.range.start + run.range.blocks)
            .find(|&block| self.blocks.is_marked(block));
        self.blocks.unmark_all(blocks);
        if let Some(block) = held_already {
            return Err(PlacementError::BlockHeld { block, why: "the segment holds it already" });
        }
        for &block in blocks {
            self.blocks.hold(block);
        }
        let row = self.segments.row_mut(place);
        for range in ranges(blocks) {
            self.chains.push_adopted(&mut row.top, range);
        }
        row.held += crate::units::narrow(blocks.len());
        row.touched = self.now;
        self.counters.adopted += blocks.len() as u64;
        self.remember(event);
        Ok(())
    }

    /// A live segment gives up some of its blocks: the engine dropped them (a preemption, a window that moved on, tokens that were rejected).
    ///
    /// # Errors
    /// `UnknownSegment`, `SegmentClosed`; `UnknownBlock`; `DoubleFree` for one that is free or named twice; `BlockHeld` for one that
    /// only others hold.
    pub fn free(&mut self, named: Named<'_, K>, blocks: &[u32]) -> Result<Released<K>> {
        let place = self.writable(named)?;
        self.blocks.mark_all(
            blocks,
            |table, block| {
                if table.holders(block) == 0 { Err(PlacementError::DoubleFree(block)) } else { Ok(()) }
            },
            PlacementError::DoubleFree,
        )?;
        let mut top = self.segments.row(place).top;
        let runs: Vec<_> = self.chains.runs(top, &self.blocks).collect();
        let ids = |range: BlockRange| range.start..range.start + range.blocks;
        let own: usize =
            runs.iter().map(|run| ids(run.range).filter(|&block| self.blocks.is_marked(block)).count()).sum();
        if own < blocks.len() {
            let mut own: Vec<u32> = runs.iter().flat_map(|run| ids(run.range)).collect();
            own.sort_unstable();
            self.blocks.unmark_all(blocks);
            let foreign = blocks.iter().copied().find(|block| own.binary_search(block).is_err());
            return Err(PlacementError::BlockHeld {
                block: foreign.unwrap_or_default(),
                why: "by other segments, not by the one named",
            });
        }
        while top != NO_SLOT {
            self.chains.pop_run(&mut top, &mut self.blocks, |_, _| {});
        }
        for run in runs.iter().rev() {
            let kept: Vec<u32> = ids(run.range).filter(|&block| !self.blocks.is_marked(block)).collect();
            if run.is_adopted {
                for range in ranges(&kept) {
                    self.chains.push_adopted(&mut top, range);
                }
            } else {
                for block in kept {
                    self.chains.push_written(&mut top, block, &mut self.blocks);
                }
            }
        }
        let mut released = Released::default();
        self.blocks.unmark_all(blocks);
        for &block in blocks {
            let freed = self.blocks.let_go(block);
            push_block(if freed { &mut released.freed } else { &mut released.shared }, block);
        }
        let row = self.segments.row_mut(place);
        row.top = top;
        row.held -= crate::units::narrow(blocks.len());
        row.touched = self.now;
        Ok(released)
    }

    /// The blocks of a live segment, in the order in which they came.
    ///
    /// # Errors
    /// `UnknownSegment`, `SegmentClosed`.
    pub fn blocks_of(&self, named: Named<'_, K>) -> Result<Vec<BlockRange>> {
        let top = self.segments.row(self.writable(named)?).top;
        let mut runs: Vec<BlockRange> = self.chains.runs(top, &self.blocks).map(|run| run.range).collect();
        runs.reverse();
        Ok(runs)
    }

    /// The tier of a block.
    ///
    /// # Errors
    /// `UnknownBlock`.
    pub fn tier_of(&self, block: u32) -> Result<Tier> {
        let last = self.blocks.last();
        if i64::from(block) > last {
            return Err(PlacementError::UnknownBlock { block, last });
        }
        Ok(self.blocks.tier_of(block))
    }
}

/// Runs of neighbouring ids, of one tier or not: a run is a name for blocks, no more.
fn ranges(blocks: &[u32]) -> Vec<BlockRange> {
    let mut ranges: Vec<BlockRange> = Vec::new();
    for &block in blocks {
        match ranges.last_mut() {
            Some(last) if last.start + last.blocks == block => last.blocks += 1,
            _ => ranges.push(BlockRange { start: block, blocks: 1 }),
        }
    }
    ranges
}
