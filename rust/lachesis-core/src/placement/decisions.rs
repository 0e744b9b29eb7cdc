//! What the simulator and the live layer decide alike: which tier a segment gets, what happens to its blocks when it ends, and
//! which lists may serve a draw. Both ask this; neither asks the policy itself. When a segment ends is decided in `kv::Life`.

use crate::kv::{Fate, source};
use crate::policy::{AtBoundary, NodeView, Policy, SegmentFacts, WhenEmpty};
use crate::units::{PerTier, SegmentClass, Tier};

/// A policy, the two of its answers that never change, and what becomes of prompts.
#[derive(Debug)]
pub struct Decisions {
    policy: Box<dyn Policy>,
    keeps: bool,
    falls_back: bool,
    keeps_prompts: bool,
}

impl Decisions {
    /// The decisions of a policy.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let keeps = policy.at_boundary() == AtBoundary::Keep;
        let falls_back = policy.when_empty() == WhenEmpty::FallBack;
        Self { policy, keeps, falls_back, keeps_prompts: false }
    }

    /// The same, where a prompt that ends with its session stays until it is reclaimed.
    #[must_use]
    pub fn keeping_prompts(self, keeps_prompts: bool) -> Self {
        Self { keeps_prompts, ..self }
    }

    /// The policy's name.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// Whether blocks stay cached past their boundary.
    #[must_use]
    pub const fn keeps(&self) -> bool {
        self.keeps
    }

    /// Whether the other tier may serve a draw.
    #[must_use]
    pub const fn falls_back(&self) -> bool {
        self.falls_back
    }

    /// The tier of a segment that opens.
    pub fn open(&mut self, segment: &SegmentFacts, node: &NodeView) -> Tier {
        self.policy.open(segment, node)
    }

    /// A segment has ended with `final_blocks` blocks: the policy hears it.
    pub fn closed(&mut self, segment: &SegmentFacts, target: Tier, final_blocks: u32) -> Fate {
        self.policy.closed(segment, target, final_blocks);
        let is_kept_prompt = self.keeps_prompts && segment.class == SegmentClass::Prompt;
        if self.keeps || is_kept_prompt { Fate::Keep } else { Fate::Free }
    }

    /// What went wrong inside the policy since it was last asked.
    pub fn take_fault(&mut self) -> Option<String> {
        self.policy.take_fault()
    }

    /// How a draw of `blocks` blocks is served from `free` ones: the target's own list first, then, where the policy falls back, the
    /// other's. `None` if they cannot be had.
    #[must_use]
    pub fn split(&self, target: Tier, blocks: u32, mut free: PerTier<u32>) -> Option<PerTier<u32>> {
        let mut served = PerTier([0; 2]);
        let mut left = blocks;
        while left > 0 {
            let tier = source(target, self.falls_back, free)?;
            let run = left.min(free[tier]);
            served[tier] += run;
            free[tier] -= run;
            left -= run;
        }
        Some(served)
    }
}
