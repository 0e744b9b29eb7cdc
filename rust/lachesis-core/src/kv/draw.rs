//! Draws: from the free list of the target, else from the other, else by reclaiming from the least recent segment.

use crate::kv::extent::Extent;
use crate::kv::memory::Memory;
use crate::kv::segment::SegmentId;
use crate::kv::source::source;
use crate::units::{PerTier, Tier};

impl Memory {
    /// Takes free blocks for running requests.
    #[inline]
    pub fn take_in_flight(&mut self, gpu: u16, tier: Tier, blocks: u32) {
        let memory = &mut self.gpus[usize::from(gpu)];
        memory.free[tier] -= blocks;
        memory.in_flight[tier] += blocks;
        self.free[tier] -= u64::from(blocks);
    }

    /// Takes blocks for running requests off the run that is reclaimed next.
    ///
    /// Contract: there are so many, see `next_reclaimed`.
    ///
    /// # Panics
    /// If there is nothing to reclaim: a fault of ours.
    pub fn reclaim_in_flight(&mut self, gpu: u16, blocks: u32) {
        let next = self.next_reclaimed(gpu).expect("Invariant: the caller has seen the run");
        let run = self.reclaim_run(gpu, next.tier, blocks).expect("Invariant: a run was found");
        debug_assert_eq!(run.blocks, blocks, "Invariant: one run serves a stretch");
        self.gpus[usize::from(gpu)].in_flight[run.tier] += run.blocks;
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

    /// Takes a run of at most `most` blocks off a free list for target tier `target`: its own list, else the other's (where
    /// the policy falls back), else by reclaiming from the least recent segment. `None` if nothing can be had.
    ///
    /// Contract: as many calls as it takes give the same tiers, in the same order, as drawing block by block.
    #[inline]
    pub fn draw_run(&mut self, gpu: u16, target: Tier, most: u32) -> Option<Extent> {
        let memory = &mut self.gpus[usize::from(gpu)];
        if let Some(tier) = source(target, self.falls_back, memory.free) {
            let blocks = most.min(memory.free[tier]);
            memory.free[tier] -= blocks;
            self.free[tier] -= u64::from(blocks);
            if tier != target {
                self.fallbacks += u64::from(blocks);
            }
            return Some(Extent { tier, blocks });
        }
        let extent = self.reclaim_run(gpu, target, most)?;
        // A reclaimed block returns to its list and is drawn from there at once.
        if extent.tier != target {
            self.fallbacks += u64::from(extent.blocks);
        }
        Some(extent)
    }

    /// Takes up to `most` blocks off the top of the least recent segment of the reclaim list.
    #[inline]
    fn reclaim_run(&mut self, gpu: u16, target: Tier, most: u32) -> Option<Extent> {
        let list = &mut self.gpus[usize::from(gpu)].reclaim;
        let id = list.head(&self.segments)?;
        let segment = &mut self.segments[id.index()];
        debug_assert!(!segment.whole, "Invariant: what returns all at once is never listed");
        if !self.falls_back && segment.stack.top().is_none_or(|top| top.tier != target) {
            return None;
        }
        let extent = self.extents.pop(&mut segment.stack, most)?;
        if let Some(book) = &mut self.book {
            book.popped(gpu, id, segment.class(), extent);
        }
        segment.blocks[extent.tier] -= extent.blocks;
        self.held[(segment.class(), extent.tier)] -= u64::from(extent.blocks);
        list.blocks[extent.tier] -= u64::from(extent.blocks);
        self.reclaimed += u64::from(extent.blocks);
        let held = segment.held();
        if held == 0 {
            segment.resident = 0;
            self.emptied(gpu, id);
        } else if segment.life.is_live() {
            segment.resident = segment.resident.min(held * self.block_tokens);
        }
        Some(extent)
    }

    /// The last block of a listed segment has been taken.
    fn emptied(&mut self, gpu: u16, id: SegmentId) {
        self.gpus[usize::from(gpu)].reclaim.remove(&mut self.segments, id);
        if self.segments[id.index()].life.emptied() {
            self.segments.vacate(id.0);
        }
    }
}
