//! Placement policies: one file each behind one trait. A policy names tiers; it never touches a block.

mod class_map;
mod hbm_first;
mod lachesis;
mod rank;
mod single_tier;

pub use class_map::ClassMap;
pub use hbm_first::HbmFirst;
pub use lachesis::{Capacity, Lachesis, Options as LachesisOptions, RankedAgainst, Reserve};
pub use rank::RankList;
pub use single_tier::{HbfOnly, HbmOnly};

use crate::units::{PerTier, SegmentClass, Tier};

/// What is known of a segment when its first block is about to be written.
#[derive(Debug, Clone, Copy)]
pub struct SegmentFacts {
    /// The class, fixed by the harness.
    pub class: SegmentClass,
    /// The GPU that its session lives on.
    pub gpu: u16,
    /// Draw number of its session.
    pub draw: u64,
    /// Its number in the session.
    pub segment: u32,
    /// Whether it is a prompt that sessions share.
    pub is_shared: bool,
    /// The predicted lifetime's rank key (lower lives shorter), for workers with a spawn record.
    pub score: Option<f64>,
}

/// What a policy may look at: the free blocks of the segment's GPU, and of the node.
#[derive(Debug, Clone, Copy)]
pub struct NodeView {
    /// Free blocks on the GPU at hand.
    pub gpu_free: PerTier<u32>,
    /// Blocks that the GPU at hand has.
    pub gpu_total: PerTier<u32>,
    /// Free blocks of all GPUs together.
    pub node_free: PerTier<u64>,
    /// GPUs of the node.
    pub gpus: usize,
}

/// What to do with a segment's blocks at its context boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtBoundary {
    /// Free them: the policy is told of boundaries and acts on them.
    Free,
    /// Keep them cached until memory is needed: the policy knows no boundary.
    Keep,
}

/// What to do when the tier that a draw targets is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenEmpty {
    /// Draw from the other tier, and count it.
    FallBack,
    /// Wait, or preempt: the other tier is forbidden.
    Refuse,
}

/// A placement policy.
///
/// Contract, for every implementation:
/// - `open` is called once a segment, before its first block is drawn; the tier that it returns holds for every block of the
///   segment until the segment closes.
/// - The calls of one run come in a total order that does not depend on threads; an answer depends on the calls before it
///   and on nothing else.
/// - A call does O(√live segments) work or less: it runs once a segment, never once a token.
pub trait Policy: Send + std::fmt::Debug {
    /// The name used in results.
    fn name(&self) -> &str;

    /// Names the tier for a segment's blocks.
    fn open(&mut self, segment: &SegmentFacts, node: &NodeView) -> Tier;

    /// Hears that a segment has ended: the tier that `open` named, and the blocks that it held at the end. Called once for every opened segment that
    /// is no shared prompt.
    fn closed(&mut self, _segment: &SegmentFacts, _target: Tier, _final_blocks: u32) {}

    /// What went wrong inside a policy that can fail (one that is written outside of the core), since it was last asked.
    fn take_fault(&mut self) -> Option<String> {
        None
    }

    /// What happens at boundaries. Contract: constant over a run.
    fn at_boundary(&self) -> AtBoundary {
        AtBoundary::Free
    }

    /// What happens when a tier is empty. Contract: constant over a run.
    fn when_empty(&self) -> WhenEmpty {
        WhenEmpty::FallBack
    }
}
