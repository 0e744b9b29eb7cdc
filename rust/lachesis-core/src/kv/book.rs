//! Which block ids a node's segments hold, kept beside the counts for somebody who listens: every write of flash with its address, and
//! a trim for every block that is freed.
//!
//! The counts decide; the book follows them, and changes no result. Ids are drawn from a `BlockPool` a GPU, flash only: of HBM it keeps
//! the counts, to know what lies on top of a segment's stack.

use crate::kv::extent::Extent;
use crate::kv::pool::{BlockPool, BlockRange};
use crate::kv::segment::SegmentId;
use crate::units::{SegmentClass, Tier, index};

/// What is done to flash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashOp {
    /// Tokens are written.
    Write,
    /// Whole blocks hold nothing of worth any more.
    Trim,
}

/// One operation on the flash of a GPU. Addresses count tokens: block id × tokens a block + offset in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlashRecord {
    /// What is done.
    pub op: FlashOp,
    /// Class of the segment.
    pub class: SegmentClass,
    /// The GPU.
    pub gpu: u16,
    /// Address of the first token.
    pub address: u64,
    /// How many tokens.
    pub tokens: u64,
}

/// A run of a segment's blocks; in HBM `start` says nothing.
#[derive(Debug, Clone, Copy)]
struct Run {
    tier: Tier,
    start: u32,
    blocks: u32,
}

/// The block that a running request appends to: from which offset, since which step.
#[derive(Debug, Clone, Copy)]
struct Current {
    tier: Tier,
    block: u32,
    offset: u32,
    step: u64,
}

/// A running request.
#[derive(Debug, Clone, Copy)]
struct Appending {
    segment: SegmentId,
    class: SegmentClass,
    gpu: u16,
    current: Option<Current>,
}

/// The book of a node.
#[derive(Debug)]
pub struct BlockBook {
    block_tokens: u32,
    pools: Vec<BlockPool>,
    /// By segment row, bottom first.
    stacks: Vec<Vec<Run>>,
    /// By slot.
    appending: Vec<Option<Appending>>,
    records: Vec<FlashRecord>,
    drawn: Vec<BlockRange>,
    freed: Vec<u32>,
}

impl BlockBook {
    /// An empty book for GPUs of `flash_blocks` blocks each.
    ///
    /// # Errors
    /// `Error::Setting` if there are 2³¹ blocks or more.
    pub(super) fn new(flash_blocks: &[u32], block_tokens: u32) -> crate::error::Result<Self> {
        let pools = flash_blocks.iter().map(|&blocks| BlockPool::new(0, blocks));
        Ok(Self {
            block_tokens,
            pools: pools.collect::<crate::error::Result<_>>()?,
            stacks: Vec::new(),
            appending: Vec::new(),
            records: Vec::new(),
            drawn: Vec::new(),
            freed: Vec::new(),
        })
    }

    /// What was written and trimmed since the last call, in order.
    pub fn take_records(&mut self) -> std::vec::Drain<'_, FlashRecord> {
        self.records.drain(..)
    }

    fn address(&self, block: u32, offset: u32) -> u64 {
        u64::from(block) * u64::from(self.block_tokens) + u64::from(offset)
    }

    fn stack(&mut self, id: SegmentId) -> &mut Vec<Run> {
        if self.stacks.len() <= id.index() {
            self.stacks.resize_with(id.index() + 1, Vec::new);
        }
        &mut self.stacks[id.index()]
    }

    /// Blocks come to a segment; returns the runs of ids where they lie in flash.
    fn push(&mut self, gpu: u16, id: SegmentId, extent: Extent) -> Vec<BlockRange> {
        let Extent { tier, blocks } = extent;
        let mut drawn = std::mem::take(&mut self.drawn);
        drawn.clear();
        if tier == Tier::Hbf {
            self.pools[usize::from(gpu)]
                .alloc(Tier::Hbf, blocks, false, Some(id.0), &mut drawn)
                .expect("Invariant: the counts have found the blocks free");
        } else {
            drawn.push(BlockRange { start: 0, blocks });
        }
        let stack = self.stack(id);
        for run in &drawn {
            match stack.last_mut() {
                Some(top)
                    if top.tier == tier && (tier == Tier::Hbm || top.start + top.blocks == run.start) =>
                {
                    top.blocks += run.blocks;
                }
                _ => stack.push(Run { tier, start: run.start, blocks: run.blocks }),
            }
        }
        drawn
    }

    /// Blocks that a segment holds before anybody listened: they are written and trimmed, but their write is not told.
    pub(super) fn found(&mut self, gpu: u16, id: SegmentId, extent: Extent) {
        self.drawn = self.push(gpu, id, extent);
    }

    /// Blocks come to a segment with `tokens` tokens of a suffix in them, the last part-filled.
    #[cold]
    pub(super) fn filled(
        &mut self,
        gpu: u16,
        id: SegmentId,
        class: SegmentClass,
        extent: Extent,
        tokens: u32,
    ) {
        let drawn = self.push(gpu, id, extent);
        if extent.tier == Tier::Hbf {
            let mut left = u64::from(tokens);
            for run in &drawn {
                let tokens = left.min(u64::from(run.blocks) * u64::from(self.block_tokens));
                left -= tokens;
                let address = self.address(run.start, 0);
                self.record(FlashRecord { op: FlashOp::Write, class, gpu, address, tokens });
            }
        }
        self.drawn = drawn;
    }

    /// Tokens of a suffix go to the part-filled block on top of a segment.
    #[cold]
    pub(super) fn continued(
        &mut self,
        gpu: u16,
        id: SegmentId,
        class: SegmentClass,
        offset: u32,
        tokens: u32,
    ) {
        let top = self.stack(id).last().copied().expect("Invariant: a part-filled block is held");
        if top.tier == Tier::Hbf {
            let address = self.address(top.start + top.blocks - 1, offset);
            let tokens = u64::from(tokens);
            self.record(FlashRecord { op: FlashOp::Write, class, gpu, address, tokens });
        }
    }

    /// Appends a record; one that goes on where the last ended makes that longer.
    fn record(&mut self, record: FlashRecord) {
        if let Some(last) = self.records.last_mut()
            && (last.op, last.class, last.gpu) == (record.op, record.class, record.gpu)
            && last.address + last.tokens == record.address
        {
            last.tokens += record.tokens;
        } else if record.tokens > 0 {
            self.records.push(record);
        }
    }

    /// Blocks leave the top of a segment.
    #[cold]
    pub(super) fn popped(&mut self, gpu: u16, id: SegmentId, class: SegmentClass, extent: Extent) {
        let mut left = extent.blocks;
        while left > 0 {
            let stack = self.stack(id);
            let top = stack.last_mut().expect("Invariant: a segment gives only what it holds");
            debug_assert_eq!(top.tier, extent.tier, "Invariant: the book follows the counts");
            let blocks = left.min(top.blocks);
            top.blocks -= blocks;
            let (tier, start) = (top.tier, top.start + top.blocks);
            if top.blocks == 0 {
                stack.pop();
            }
            left -= blocks;
            if tier == Tier::Hbf {
                self.trim(gpu, id, class, BlockRange { start, blocks });
            }
        }
    }

    /// All blocks of a segment are freed.
    #[cold]
    pub(super) fn emptied(&mut self, gpu: u16, id: SegmentId, class: SegmentClass) {
        let mut stack = std::mem::take(self.stack(id));
        for run in stack.drain(..).filter(|run| run.tier == Tier::Hbf) {
            self.trim(gpu, id, class, BlockRange { start: run.start, blocks: run.blocks });
        }
        *self.stack(id) = stack;
    }

    fn trim(&mut self, gpu: u16, id: SegmentId, class: SegmentClass, range: BlockRange) {
        let mut freed = std::mem::take(&mut self.freed);
        freed.clear();
        freed.extend(range.start..range.start + range.blocks);
        self.pools[usize::from(gpu)]
            .free_of(id.0, &freed)
            .expect("Invariant: a segment frees what it holds, once");
        self.freed = freed;
        let tokens = u64::from(range.blocks) * u64::from(self.block_tokens);
        let address = self.address(range.start, 0);
        self.record(FlashRecord { op: FlashOp::Trim, class, gpu, address, tokens });
    }

    /// A running request begins to append behind `resident` tokens.
    #[cold]
    pub(super) fn joined(
        &mut self,
        slot: u32,
        id: SegmentId,
        facts: (u16, SegmentClass),
        resident: u32,
        step: u64,
    ) {
        let offset = resident % self.block_tokens;
        let top = self.stack(id).last().copied();
        let current = top.filter(|_| offset > 0).map(|top| Current {
            tier: top.tier,
            block: top.start + top.blocks - 1,
            offset,
            step,
        });
        if self.appending.len() <= index(slot) {
            self.appending.resize(index(slot) + 1, None);
        }
        let (gpu, class) = facts;
        self.appending[index(slot)] = Some(Appending { segment: id, class, gpu, current });
    }

    /// A running request draws a block for `step`: what it appended to its last one is written by then.
    pub fn drew(&mut self, slot: u32, tier: Tier, step: u64) {
        self.write_current(slot, step);
        let Some(mut appending) = self.appending[index(slot)] else { return };
        let drawn = self.push(appending.gpu, appending.segment, Extent { tier, blocks: 1 });
        let block = drawn.first().map_or(0, |run| run.start);
        self.drawn = drawn;
        appending.current = Some(Current { tier, block, offset: 0, step });
        self.appending[index(slot)] = Some(appending);
    }

    /// A running request stops appending after `step` steps of the node.
    #[cold]
    pub fn left(&mut self, slot: u32, step: u64) {
        self.write_current(slot, step);
        self.appending[index(slot)] = None;
    }

    /// What all running requests have appended up to `step` is written.
    pub fn write_all(&mut self, step: u64) {
        for slot in 0..self.appending.len() {
            let slot = crate::units::narrow(slot);
            self.write_current(slot, step);
        }
    }

    /// Records what a running request appended to its block since it was last told.
    fn write_current(&mut self, slot: u32, step: u64) {
        let Some(appending) = &mut self.appending[index(slot)] else { return };
        let Some(current) = &mut appending.current else { return };
        let tokens = step - current.step;
        let from = current.offset;
        current.offset += u32::try_from(tokens).unwrap_or(u32::MAX);
        current.step = step;
        debug_assert!(current.offset <= self.block_tokens, "Invariant: a token lies in a block");
        if current.tier == Tier::Hbf {
            let (class, gpu, block) = (appending.class, appending.gpu, current.block);
            let address = self.address(block, from);
            self.record(FlashRecord { op: FlashOp::Write, class, gpu, address, tokens });
        }
    }

    /// Compares the book with the flash blocks that the counts of a GPU have free.
    ///
    /// # Errors
    /// `Error::Census` with the difference.
    pub(super) fn check(&self, gpu: usize, free: u32) -> crate::error::Result<()> {
        let pool = &self.pools[gpu];
        let (kept, total) = (pool.free_blocks(Tier::Hbf), pool.total_blocks(Tier::Hbf));
        if kept == free {
            return pool.check();
        }
        let (free, held) = (u64::from(free), u64::from(total - kept));
        Err(crate::error::Error::Census {
            gpu,
            tier: "HBF",
            free,
            held,
            sum: free + held,
            total: u64::from(total),
        })
    }
}
