//! The placement layer: segment table, free lists and policy in one place, and no I/O. The simulator drives it, and an
//! engine can. It decides where blocks go and when they return; it knows nothing of time or cost.

mod append;
mod cohort;
mod decisions;
mod draw;
mod drawn;
mod exception;
mod ledger;
pub mod live;
mod stretch;
mod suffix;

pub use append::{Appends, Starved};
pub use decisions::Decisions;
pub use ledger::{Ledger, WriteKind};
pub use stretch::Waits;
pub use suffix::Need;

use crate::kv::{Fate, Memory, Passage, Segment, SegmentId};
use crate::policy::{NodeView, Policy, SegmentFacts};
use crate::units::{PerTier, SegmentClass};

/// Placement for one node.
#[derive(Debug)]
pub struct Placement {
    /// Free lists and the segment table.
    pub memory: Memory,
    /// Tokens written, by class, tier and kind.
    pub ledger: Ledger,
    /// Requests that append a token a step.
    pub appends: Appends,
    decisions: Decisions,
    prompts: Vec<Prompt>,
    prompt_keys: usize,
}

/// A GPU's copy of a shared prompt.
#[derive(Debug, Clone, Copy)]
struct Prompt {
    segment: SegmentId,
    written_before: bool,
}

impl Placement {
    /// Placement over `gpus` equal GPUs for prompts of `prompt_keys` different keys.
    #[must_use]
    pub fn new(
        gpus: usize,
        blocks: PerTier<u32>,
        block_tokens: u32,
        policy: Box<dyn Policy>,
        prompt_keys: usize,
    ) -> Self {
        let decisions = Decisions::new(policy);
        Self {
            memory: Memory::new(gpus, blocks, block_tokens, decisions.falls_back()),
            ledger: Ledger::default(),
            appends: Appends::new(gpus, block_tokens, decisions.keeps()),
            decisions,
            prompts: vec![Prompt { segment: SegmentId::NONE, written_before: false }; gpus * prompt_keys],
            prompt_keys,
        }
    }

    /// The policy's name.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.decisions.policy_name()
    }

    /// Whether blocks stay cached past their boundary.
    #[must_use]
    pub const fn keeps_past_boundaries(&self) -> bool {
        self.decisions.keeps()
    }

    /// Enters a segment in the table; the policy names its tier.
    pub fn open(&mut self, facts: &SegmentFacts) -> SegmentId {
        let gpu = &self.memory.gpus[usize::from(facts.gpu)];
        let view = NodeView {
            gpu_free: gpu.free,
            gpu_total: gpu.total,
            node_free: self.memory.node_free(),
            gpus: self.memory.gpus.len(),
        };
        let target = self.decisions.open(facts, &view);
        let id = self.memory.open(facts.gpu, facts.class, target);
        // Without blocks that outlive their boundary, only prompts that nobody holds are reclaimed.
        self.memory.segment_mut(id).whole = !self.decisions.keeps() && !facts.is_shared;
        id
    }

    /// A session begins to hold the GPU's copy of a shared prompt of `tokens` tokens.
    pub fn hold_prompt(&mut self, facts: &SegmentFacts, key: u32, tokens: u32) -> SegmentId {
        let place = usize::from(facts.gpu) * self.prompt_keys + crate::units::index(key);
        if self.prompts[place].segment == SegmentId::NONE {
            let id = self.open(facts);
            let segment = self.memory.segment_mut(id);
            segment.shared = true;
            segment.tokens = tokens;
            self.prompts[place].segment = id;
        }
        let id = self.prompts[place].segment;
        self.memory.segment_mut(id).holders += 1;
        if !self.decisions.keeps() {
            self.memory.unlist(id);
        }
        id
    }

    /// A session lets go of a shared prompt; without holders it may be reclaimed.
    pub fn release_prompt(&mut self, id: SegmentId) {
        let segment = self.memory.segment_mut(id);
        segment.holders -= 1;
        if segment.holders == 0 && !self.decisions.keeps() {
            self.memory.list(id);
        }
    }

    /// Whether writing this prompt now writes it for the first time on its GPU; notes that it has been written.
    fn first_write_of_prompt(&mut self, gpu: u16, key: u32) -> bool {
        let place = usize::from(gpu) * self.prompt_keys + crate::units::index(key);
        !std::mem::replace(&mut self.prompts[place].written_before, true)
    }

    /// A ready request starts to use a segment: it cannot be reclaimed now.
    #[inline]
    pub fn pin(&mut self, id: SegmentId) -> &Segment {
        if self.decisions.keeps() {
            self.memory.unlist(id);
        }
        let segment = self.memory.segment_mut(id);
        debug_assert!(segment.life.is_live(), "Invariant: a segment that has ended is used by nobody");
        segment.pins += 1;
        segment
    }

    /// A request is done with a segment. Where nothing is freed at boundaries the last one makes it reclaimable, as the most recent.
    #[inline]
    pub fn unpin(&mut self, id: SegmentId) {
        let segment = self.memory.segment_mut(id);
        segment.pins -= 1;
        if segment.pins == 0 && self.decisions.keeps() {
            self.memory.list(id);
        }
    }

    /// The context boundary of a segment comes, with requests that still use it or without. One that ends now is ended by `close`.
    pub fn boundary(&mut self, id: SegmentId, in_use: bool) -> Passage {
        self.memory.segment_mut(id).life.boundary(in_use)
    }

    /// Whether a segment's boundary has waited for the last request that uses it, which has ended.
    #[must_use]
    pub fn ends_with_last_use(&self, id: SegmentId) -> bool {
        self.memory.segment(id).life.ends_with_use(false)
    }

    /// A segment ends: nobody reads it again.
    pub fn close(&mut self, id: SegmentId, facts: &SegmentFacts) {
        let segment = self.memory.segment(id);
        debug_assert_eq!(segment.pins, 0, "Invariant: a boundary waits for the readers");
        let fate = self.decisions.closed(facts, segment.target(), segment.held());
        self.memory.end(id, fate);
    }

    /// Counts every block and compares it with what the GPUs have.
    ///
    /// # Errors
    /// `Error::Census` with the difference.
    pub fn check(&self) -> crate::error::Result<()> {
        self.memory.check()
    }

    /// A segment's class.
    #[must_use]
    pub fn class(&self, id: SegmentId) -> SegmentClass {
        self.memory.segment(id).class()
    }
}

impl Placement {
    /// Fills the memory with blocks that nobody will read again, of random age: what a memory looks like that has been in use
    /// under a policy which frees nothing at boundaries.
    ///
    /// # Errors
    /// Never in practice: every block is free before.
    pub fn age(&mut self, seed: u64) -> crate::error::Result<()> {
        /// Blocks of one dead segment: small against the memory, large against the work of making them.
        const RUN: u32 = 64;
        /// Neighbours of one tier are one segment of at most so many: in what order blocks are reclaimed stays the same.
        const MOST: u32 = 256 * RUN;
        for gpu in 0..self.memory.gpus.len() {
            let mut tiers = crate::kv::Extent::interleaved(self.memory.gpus[gpu].free, RUN, |run| {
                crate::rng::uniform(seed, crate::rng::Stream::AgedMemory, [gpu as u64, run, 0])
            });
            tiers.dedup_by(|next, first| {
                let joins = next.tier == first.tier && first.blocks + next.blocks <= MOST;
                first.blocks += if joins { next.blocks } else { 0 };
                joins
            });
            let gpu = u16::try_from(gpu).unwrap_or(u16::MAX);
            for extent in tiers {
                let id = self.memory.open(gpu, SegmentClass::Lead, extent.tier);
                let tokens = extent.blocks.saturating_mul(self.memory.block_tokens());
                self.memory.segment_mut(id).tokens = tokens;
                self.memory.append(id, tokens, |_, _| {})?;
                self.memory.list(id);
                self.memory.end(id, Fate::Keep);
            }
        }
        Ok(())
    }
}
