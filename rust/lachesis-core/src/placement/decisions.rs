//! What the simulator and the live layer decide alike: which tier a segment gets, what happens to its blocks when it ends, and
//! which lists may serve a draw. Both ask this; neither asks the policy itself.

use crate::policy::{AtBoundary, NodeView, Policy, SegmentFacts, WhenEmpty};
use crate::units::{PerTier, Tier};

/// What becomes of the blocks of a segment that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They return to their lists now.
    Free,
    /// They stay until memory is needed, and are reclaimed then.
    Keep,
}

/// A policy and the two of its answers that never change.
#[derive(Debug)]
pub struct Decisions {
    policy: Box<dyn Policy>,
    keeps: bool,
    falls_back: bool,
}

impl Decisions {
    /// The decisions of a policy.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let keeps = policy.at_boundary() == AtBoundary::Keep;
        let falls_back = policy.when_empty() == WhenEmpty::FallBack;
        Self { policy, keeps, falls_back }
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
        if self.keeps { Fate::Keep } else { Fate::Free }
    }

    /// What went wrong inside the policy since it was last asked.
    pub fn take_fault(&mut self) -> Option<String> {
        self.policy.take_fault()
    }

    /// What becomes of a prompt that nobody holds any more: it stays for the next session that begins with it.
    #[must_use]
    pub const fn unheld_prompt() -> Fate {
        Fate::Keep
    }

    /// How a draw of `blocks` blocks is served from `free` ones: the target's own list first, then, where the policy falls back, the
    /// other's. `None` if they cannot be had.
    #[must_use]
    pub fn split(&self, target: Tier, blocks: u32, free: PerTier<u32>) -> Option<PerTier<u32>> {
        let own = blocks.min(free[target]);
        let other = blocks - own;
        if other > 0 && (!self.falls_back || other > free[target.other()]) {
            return None;
        }
        let mut served = PerTier([0; 2]);
        served[target] = own;
        served[target.other()] = other;
        Some(served)
    }
}
