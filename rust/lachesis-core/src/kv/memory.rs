//! The KV memory of a node: per GPU one free list a tier and one reclaim list, and the segment table over all of them.
//!
//! Free lists are counts here: which block a segment gets changes no result of a simulation. `BlockPool` is the same
//! discipline with block ids, for an engine that has real blocks.

use crate::error::{Error, Result};
use crate::kv::book::BlockBook;
use crate::kv::extent::{Extent, ExtentSlab};
use crate::kv::life::Fate;
use crate::kv::reclaim::ReclaimList;
use crate::kv::rows::Rows;
use crate::kv::segment::{Segment, SegmentId};
use crate::units::{PerClassTier, PerTier, SegmentClass, Tier};

/// The free lists of one GPU.
#[derive(Debug)]
pub struct GpuMemory {
    /// Blocks that the GPU has.
    pub total: PerTier<u32>,
    /// Blocks on the free lists.
    pub free: PerTier<u32>,
    /// Blocks drawn by running requests and not yet entered in a segment's row.
    pub in_flight: PerTier<u32>,
    pub(super) reclaim: ReclaimList,
}

/// The KV memory of a node.
#[derive(Debug)]
pub struct Memory {
    /// One entry a GPU.
    pub gpus: Vec<GpuMemory>,
    /// Blocks that the node has.
    total: PerTier<u64>,
    /// Blocks on the free lists of all GPUs.
    pub(super) free: PerTier<u64>,
    /// Whether a draw may be served by the other tier.
    pub falls_back: bool,
    /// Draws served by the other tier.
    pub fallbacks: u64,
    /// Blocks reclaimed.
    pub reclaimed: u64,
    /// Blocks entered in segments, by class.
    pub held: PerClassTier<u64>,
    /// Which block ids the segments hold, where somebody asked.
    pub book: Option<Box<BlockBook>>,
    pub(super) block_tokens: u32,
    pub(super) segments: Rows<Segment>,
    pub(super) extents: ExtentSlab,
    /// Runs of the draw at hand.
    drawn: Vec<Extent>,
}

impl Memory {
    /// A memory of `gpus` equal GPUs, all blocks free.
    #[must_use]
    pub fn new(gpus: usize, blocks: PerTier<u32>, block_tokens: u32, falls_back: bool) -> Self {
        Self {
            gpus: (0..gpus)
                .map(|_| GpuMemory {
                    total: blocks,
                    free: blocks,
                    in_flight: PerTier([0, 0]),
                    reclaim: ReclaimList::default(),
                })
                .collect(),
            total: PerTier(blocks.0.map(|count| u64::from(count) * gpus as u64)),
            free: PerTier(blocks.0.map(|count| u64::from(count) * gpus as u64)),
            falls_back,
            fallbacks: 0,
            reclaimed: 0,
            held: PerClassTier::default(),
            book: None,
            block_tokens,
            segments: Rows::default(),
            extents: ExtentSlab::default(),
            drawn: Vec::new(),
        }
    }

    /// Gives every block that is held an id, and from now on every one that is drawn.
    ///
    /// # Errors
    /// `Error::Setting` if a GPU has 2³¹ blocks of flash or more.
    pub fn keep_book(&mut self) -> Result<()> {
        let flash: Vec<u32> = self.gpus.iter().map(|gpu| gpu.total[Tier::Hbf]).collect();
        let mut book = BlockBook::new(&flash, self.block_tokens)?;
        for (row, segment) in self.segments.iter().enumerate().filter(|(_, segment)| segment.held() > 0) {
            let mut runs: Vec<Extent> = self.extents.runs(segment.stack).collect();
            runs.reverse();
            for extent in runs {
                book.found(segment.gpu, SegmentId(crate::units::narrow(row)), extent);
            }
        }
        self.book = Some(Box::new(book));
        Ok(())
    }

    /// A running request begins to append to a segment, for the book.
    pub fn joined(&mut self, slot: u32, id: SegmentId, step: u64) {
        if let Some(book) = &mut self.book {
            let segment = &self.segments[id.index()];
            book.joined(slot, id, (segment.gpu, segment.class()), segment.resident, step);
        }
    }

    /// Tokens in a block.
    #[must_use]
    pub const fn block_tokens(&self) -> u32 {
        self.block_tokens
    }

    /// Enters a segment that holds nothing yet.
    pub fn open(&mut self, gpu: u16, class: SegmentClass, target: Tier) -> SegmentId {
        SegmentId(self.segments.enter(|before| Segment {
            listing: before.map_or(0, |before| before.listing),
            ..Segment::new(gpu, class, target)
        }))
    }

    /// A segment's row.
    #[must_use]
    pub fn segment(&self, id: SegmentId) -> &Segment {
        &self.segments[id.index()]
    }

    /// A segment's row, to change what the layer above owns: tokens, pins, holders, flags.
    pub fn segment_mut(&mut self, id: SegmentId) -> &mut Segment {
        &mut self.segments[id.index()]
    }

    /// Blocks that `tokens` more tokens need on top of what the segment holds.
    #[must_use]
    pub fn blocks_for(&self, resident: u32, tokens: u32) -> u32 {
        let total = u64::from(resident) + u64::from(tokens);
        let needed =
            total.div_ceil(u64::from(self.block_tokens)) - u64::from(resident.div_ceil(self.block_tokens));
        u32::try_from(needed).unwrap_or(u32::MAX)
    }

    /// Blocks on the free lists of all GPUs.
    #[must_use]
    pub const fn node_free(&self) -> PerTier<u64> {
        self.free
    }

    /// Blocks in use, over all GPUs.
    #[must_use]
    pub fn node_used(&self) -> PerTier<u64> {
        PerTier([0, 1].map(|tier| self.total.0[tier] - self.free.0[tier]))
    }

    /// Appends `tokens` tokens to a segment's resident ones, drawing what blocks they need; `written` is told the tier of every
    /// run of tokens in order.
    ///
    /// Contract: the caller has made sure with `can_have` that the blocks are there.
    pub fn append(&mut self, id: SegmentId, tokens: u32, mut written: impl FnMut(Tier, u32)) -> Result<()> {
        let block_tokens = self.block_tokens;
        let segment = &self.segments[id.index()];
        let (gpu, class, target) = (segment.gpu, segment.class(), segment.target());
        let mut needed = self.blocks_for(segment.resident, tokens);
        let mut left = tokens;
        if let Some(top) = segment.stack.top() {
            let spare = segment.held() * block_tokens - segment.resident;
            let fill = spare.min(left);
            if fill > 0 {
                written(top.tier, fill);
                left -= fill;
                if let Some(book) = &mut self.book {
                    book.continued(gpu, id, class, self.block_tokens - spare, fill);
                }
            }
        }
        let mut drawn = std::mem::take(&mut self.drawn);
        while needed > 0 {
            // A listed segment may give its own blocks to the next draw, and the book tells what comes and goes in order.
            let one_run = self.book.is_some() || self.segments[id.index()].in_reclaim_list;
            drawn.clear();
            needed = self.draw(gpu, target, needed, one_run, &mut drawn);
            if drawn.is_empty() {
                return Err(self.out_of_blocks(gpu, target, needed));
            }
            let mut entered = PerTier([0; 2]);
            let segment = &mut self.segments[id.index()];
            for &run in &drawn {
                let run_tokens = left.min(run.blocks.saturating_mul(block_tokens));
                written(run.tier, run_tokens);
                left -= run_tokens;
                if let Some(book) = &mut self.book {
                    book.filled(gpu, id, class, run, run_tokens);
                }
                segment.push(&mut self.extents, run);
                entered[run.tier] += run.blocks;
            }
            self.count_entered(id, entered);
        }
        self.drawn = drawn;
        debug_assert_eq!(left, 0, "Invariant: every token lies in a block");
        self.segments[id.index()].resident += tokens;
        Ok(())
    }

    /// The error of a draw that cannot be served.
    fn out_of_blocks(&self, gpu: u16, target: Tier, needed: u32) -> Error {
        let free = self.gpus[usize::from(gpu)].free;
        Error::OutOfBlocks {
            tier: if target == Tier::Hbm { "HBM" } else { "HBF" },
            needed: u64::from(needed),
            free: u64::from(free[target]) + if self.falls_back { u64::from(free[target.other()]) } else { 0 },
        }
    }

    /// Enters in a segment the runs of blocks that a running request drew for it, in order.
    #[inline]
    pub fn enter_in_flight(&mut self, id: SegmentId, runs: impl Iterator<Item = Extent>) {
        let segment = &mut self.segments[id.index()];
        let mut entered = PerTier([0; 2]);
        for run in runs {
            entered[run.tier] += run.blocks;
            segment.push(&mut self.extents, run);
        }
        self.count_in_flight(id, entered);
    }

    /// Enters in a segment of which no runs are kept the blocks that a running request drew for it, the last of `top`.
    #[inline]
    pub fn enter_whole(&mut self, id: SegmentId, entered: PerTier<u32>, top: Tier) {
        let segment = &mut self.segments[id.index()];
        debug_assert!(segment.whole, "Invariant: runs are kept of all other segments");
        segment.push(&mut self.extents, Extent { tier: top, blocks: entered[top] });
        self.count_in_flight(id, entered);
    }

    fn count_in_flight(&mut self, id: SegmentId, entered: PerTier<u32>) {
        let memory = &mut self.gpus[usize::from(self.segments[id.index()].gpu)];
        for tier in Tier::ALL {
            memory.in_flight[tier] -= entered[tier];
        }
        self.count_entered(id, entered);
    }

    /// Blocks have been put on top of a segment's stack.
    fn count_entered(&mut self, id: SegmentId, entered: PerTier<u32>) {
        let segment = &mut self.segments[id.index()];
        for tier in Tier::ALL {
            segment.blocks[tier] += entered[tier];
            self.held[(segment.class(), tier)] += u64::from(entered[tier]);
            if segment.in_reclaim_list {
                self.gpus[usize::from(segment.gpu)].reclaim.blocks[tier] += u64::from(entered[tier]);
            }
        }
    }

    /// Reads ahead where the next run of a segment will be put.
    pub fn fetch_top(&self, id: SegmentId) {
        self.extents.fetch_top(self.segments[id.index()].stack);
    }

    /// The tier of a segment's top block.
    #[must_use]
    pub fn top_tier(&self, id: SegmentId) -> Option<Tier> {
        self.segments[id.index()].stack.top().map(|extent| extent.tier)
    }

    /// Resident tokens by the tier of their block; the part-filled block is the top one.
    #[must_use]
    pub fn tokens_by_tier(&self, id: SegmentId) -> [u64; 2] {
        let segment = &self.segments[id.index()];
        let mut tokens = segment.blocks.0.map(|blocks| u64::from(blocks) * u64::from(self.block_tokens));
        if let Some(top) = segment.stack.top() {
            tokens[top.tier as usize] -= u64::from(segment.held() * self.block_tokens - segment.resident);
        }
        tokens
    }

    /// Returns all of a segment's blocks to the lists they came from; its tokens stay known. Returns how many blocks.
    pub fn evict(&mut self, id: SegmentId) -> u32 {
        self.unlist(id);
        let segment = &mut self.segments[id.index()];
        if let Some(book) = &mut self.book {
            book.emptied(segment.gpu, id, segment.class());
        }
        let memory = &mut self.gpus[usize::from(segment.gpu)];
        for tier in Tier::ALL {
            memory.free[tier] += segment.blocks[tier];
            self.free[tier] += u64::from(segment.blocks[tier]);
            self.held[(segment.class(), tier)] -= u64::from(segment.blocks[tier]);
        }
        let held = segment.held();
        segment.blocks = PerTier([0, 0]);
        segment.resident = 0;
        self.extents.clear(&mut segment.stack);
        held
    }

    /// Ends a segment, which nobody reads again: its blocks return to their lists and its row goes, or they stay until they are reclaimed.
    pub fn end(&mut self, id: SegmentId, fate: Fate) {
        let segment = &mut self.segments[id.index()];
        let holds_blocks = segment.held() > 0;
        if segment.life.end(fate, holds_blocks) == Fate::Free {
            self.evict(id);
            self.segments.vacate(id.0);
        }
    }

    /// Appends a segment to the reclaim list of its GPU as the most recent, if it has blocks.
    pub fn list(&mut self, id: SegmentId) {
        let segment = &self.segments[id.index()];
        if segment.held() > 0 && !segment.in_reclaim_list {
            self.gpus[usize::from(segment.gpu)].reclaim.append(&mut self.segments, id);
        }
    }

    /// Takes a segment out of the reclaim list, if it is there.
    pub fn unlist(&mut self, id: SegmentId) {
        let segment = &self.segments[id.index()];
        if segment.in_reclaim_list {
            self.gpus[usize::from(segment.gpu)].reclaim.remove(&mut self.segments, id);
        }
    }

    /// Rows in use.
    #[must_use]
    pub fn live_segments(&self) -> usize {
        self.segments.in_use()
    }

    /// Nodes of the slab of extents in use.
    #[must_use]
    pub fn live_nodes(&self) -> usize {
        self.extents.live()
    }

    /// Counts every block: free + held + in flight must be the total, in every tier of every GPU, and every segment's extents must add up to its row.
    ///
    /// # Errors
    /// `Error::Census` with the difference.
    pub fn check(&self) -> Result<()> {
        let mut held = vec![PerTier([0_u64; 2]); self.gpus.len()];
        for segment in self.segments.iter().filter(|segment| segment.life.is_there()) {
            let held = &mut held[usize::from(segment.gpu)];
            if segment.whole {
                for tier in Tier::ALL {
                    held[tier] += u64::from(segment.blocks[tier]);
                }
            } else {
                for extent in self.extents.runs(segment.stack) {
                    held[extent.tier] += u64::from(extent.blocks);
                }
            }
        }
        debug_assert!(
            Tier::ALL.iter().all(|&tier| {
                self.gpus.iter().map(|gpu| u64::from(gpu.free[tier])).sum::<u64>() == self.free[tier]
            }),
            "Invariant: the node's free blocks are those of its GPUs"
        );
        for (gpu, memory) in self.gpus.iter().enumerate() {
            if let Some(book) = &self.book {
                book.check(gpu, memory.free[Tier::Hbf])?;
            }
            for tier in Tier::ALL {
                let free = u64::from(memory.free[tier]);
                let held = held[gpu][tier] + u64::from(memory.in_flight[tier]);
                let total = u64::from(memory.total[tier]);
                if free + held != total {
                    let tier = if tier == Tier::Hbm { "HBM" } else { "HBF" };
                    return Err(Error::Census { gpu, tier, free, held, sum: free + held, total });
                }
            }
        }
        Ok(())
    }
}
