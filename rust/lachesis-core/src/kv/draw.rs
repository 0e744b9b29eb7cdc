//! Draws: from the free list of the target, else from the other, else by reclaiming from the least recent segment.

use crate::kv::extent::{Extent, ExtentSlab};
use crate::kv::memory::{GpuMemory, Memory};
use crate::kv::reclaim::ReclaimList;
use crate::kv::rows::Rows;
use crate::kv::segment::{Segment, SegmentId};
use crate::kv::source::source;
use crate::units::{PerTier, Tier};

/// The last block of a listed segment has been taken.
#[inline]
fn emptied(list: &mut ReclaimList, segments: &mut Rows<Segment>, extents: &ExtentSlab, id: SegmentId) {
    list.fetch(segments, extents);
    list.remove(segments, id);
    if segments[id.index()].life.emptied() {
        segments.vacate(id.0);
    }
}

impl Memory {
    /// Takes free blocks for running requests.
    #[inline]
    pub fn take_in_flight(&mut self, gpu: u16, tier: Tier, blocks: u32) {
        let memory = &mut self.gpus[usize::from(gpu)];
        memory.free[tier] -= blocks;
        memory.in_flight[tier] += blocks;
        self.free[tier] -= u64::from(blocks);
    }

    /// Takes blocks for running requests off the run that is reclaimed next, if it has so many; returns their tier.
    #[inline]
    pub fn reclaim_in_flight(&mut self, gpu: u16, blocks: u32) -> Option<Tier> {
        let Self { gpus, segments, extents, book, held, .. } = self;
        let GpuMemory { reclaim: list, in_flight, .. } = &mut gpus[usize::from(gpu)];
        let id = list.head(segments)?;
        let segment = &mut segments[id.index()];
        let top = segment.stack.top().filter(|top| top.blocks >= blocks)?;
        let run = extents.take(&mut segment.stack, top, blocks);
        if let Some(book) = book {
            book.popped(gpu, id, segment.class(), run);
        }
        held[(segment.class(), run.tier)] -= u64::from(run.blocks);
        in_flight[run.tier] += run.blocks;
        list.blocks[run.tier] -= u64::from(run.blocks);
        self.reclaimed += u64::from(run.blocks);
        if segment.lose(run, self.block_tokens) {
            emptied(list, segments, extents, id);
        }
        Some(run.tier)
    }

    /// The run that is reclaimed next.
    pub fn next_reclaimed(&mut self, gpu: u16) -> Option<Extent> {
        let id = self.gpus[usize::from(gpu)].reclaim.head(&self.segments)?;
        self.segments[id.index()].stack.top()
    }

    /// Whether `needed` blocks, by target tier, can be had on a GPU: free ones, else reclaimed ones.
    #[must_use]
    pub fn can_have(&self, gpu: u16, needed: PerTier<u64>) -> bool {
        let memory = &self.gpus[usize::from(gpu)];
        let available = |tier: Tier| u64::from(memory.free[tier]) + memory.reclaim.blocks[tier];
        if self.falls_back {
            needed[Tier::Hbm] + needed[Tier::Hbf] <= available(Tier::Hbm) + available(Tier::Hbf)
        } else {
            Tier::ALL.iter().all(|&tier| needed[tier] <= available(tier))
        }
    }

    /// Draws `needed` blocks for running requests; their runs are appended to `drawn`. Returns how many could not be had.
    pub fn draw_in_flight(
        &mut self,
        gpu: u16,
        target: Tier,
        mut needed: u32,
        drawn: &mut Vec<Extent>,
    ) -> u32 {
        let before = drawn.len();
        needed = self.draw(gpu, target, needed, false, drawn);
        let in_flight = &mut self.gpus[usize::from(gpu)].in_flight;
        for run in &drawn[before..] {
            in_flight[run.tier] += run.blocks;
        }
        needed
    }

    /// Draws `needed` blocks for target tier `target`: from its own list, else from the other's (where the policy falls back), else by
    /// reclaiming from the least recent segments. Their runs are appended to `drawn` in order, the first alone if `one_run`.
    /// Returns how many blocks were not drawn.
    ///
    /// Contract: the tiers are the same, in the same order, as of drawing block by block.
    pub(super) fn draw(
        &mut self,
        gpu: u16,
        target: Tier,
        mut needed: u32,
        one_run: bool,
        drawn: &mut Vec<Extent>,
    ) -> u32 {
        let Self { gpus, segments, extents, book, held, falls_back, block_tokens, .. } = self;
        let GpuMemory { free, reclaim: list, .. } = &mut gpus[usize::from(gpu)];
        if free.0 != [0, 0] {
            while let Some(tier) = source(target, *falls_back, *free).filter(|_| needed > 0) {
                let blocks = needed.min(free[tier]);
                free[tier] -= blocks;
                self.free[tier] -= u64::from(blocks);
                self.fallbacks += if tier == target { 0 } else { u64::from(blocks) };
                drawn.push(Extent { tier, blocks });
                needed -= blocks;
                if one_run {
                    return needed;
                }
            }
        }
        // A reclaimed block returns to its list and is drawn from there at once.
        let mut serves = true;
        while needed > 0 && serves {
            let Some(id) = list.head(segments) else { break };
            let segment = &mut segments[id.index()];
            debug_assert!(!segment.whole, "Invariant: what returns all at once is never listed");
            let mut stack = segment.stack;
            let mut taken = PerTier([0; 2]);
            let mut is_empty = false;
            while needed > 0 && serves {
                let Some(top) = stack.top() else { break };
                serves = *falls_back || top.tier == target;
                if serves {
                    let run = extents.take(&mut stack, top, needed);
                    taken[run.tier] += run.blocks;
                    needed -= run.blocks;
                    is_empty = segment.lose(run, *block_tokens);
                    if let Some(book) = book {
                        book.popped(gpu, id, segment.class(), run);
                    }
                    drawn.push(run);
                    serves = !one_run;
                }
            }
            segment.stack = stack;
            for tier in Tier::ALL {
                let blocks = u64::from(taken[tier]);
                held[(segment.class(), tier)] -= blocks;
                list.blocks[tier] -= blocks;
            }
            self.reclaimed += u64::from(taken[target]) + u64::from(taken[target.other()]);
            self.fallbacks += u64::from(taken[target.other()]);
            if is_empty {
                emptied(list, segments, extents, id);
            }
        }
        needed
    }
}
