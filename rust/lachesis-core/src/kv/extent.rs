//! Extents: runs of blocks of one tier. A segment's blocks are a stack of extents, the top one in the segment's row and those below in nodes
//! of one shared slab, so that drawing or reclaiming a run of any length is one operation, nothing is allocated per segment, and
//! a segment's neighbouring runs share a cache line.

use std::collections::VecDeque;

use crate::units::{PerTier, Tier, index, narrow};

/// No node.
const NO_NODE: u32 = u32::MAX;

/// The most blocks that one extent can count: 31 bits, the 32nd being the tier.
const MOST: u32 = u32::MAX >> 1;

/// Runs in a node.
const RUNS: usize = 14;

/// A run of blocks of one tier in 4 bytes; no run has no blocks.
#[derive(Debug, Clone, Copy, Default)]
struct Packed(u32);

impl Packed {
    fn new(extent: Extent) -> Self {
        debug_assert!(extent.blocks <= MOST, "Invariant: an extent counts at most 2^31 - 1 blocks");
        let flag = if extent.tier == Tier::Hbf { MOST + 1 } else { 0 };
        Self(flag | extent.blocks)
    }

    const fn extent(self) -> Extent {
        let tier = if self.0 > MOST { Tier::Hbf } else { Tier::Hbm };
        Extent { tier, blocks: self.0 & MOST }
    }
}

/// Runs of one stack, the lowest first: a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Node {
    below: u32,
    count: u32,
    runs: [Packed; RUNS],
}

/// A run of blocks of one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The tier that the blocks came from.
    pub tier: Tier,
    /// How many blocks.
    pub blocks: u32,
}

impl Extent {
    /// All blocks of two tiers in runs of at most `run` blocks, mixed: the j-th of h HBM runs among n takes place ⌊(j + u)·n/h⌋, u uniform. So every stretch of
    /// the mix has HBM's share, up to one run.
    #[must_use]
    pub fn interleaved(blocks: PerTier<u32>, run: u32, mut uniform: impl FnMut(u64) -> f64) -> Vec<Self> {
        let runs = blocks.0.map(|count| count.div_ceil(run));
        let (all, of_hbm) = (f64::from(runs[0]) + f64::from(runs[1]), f64::from(runs[0]));
        let mut left = blocks;
        let mut next_hbm = 0_u32;
        let mut mixed = Vec::with_capacity(index(runs[0]) + index(runs[1]));
        let mut take = |tier: Tier, mixed: &mut Vec<Self>| {
            let count = left[tier].min(run);
            left[tier] -= count;
            mixed.push(Self { tier, blocks: count });
        };
        for place in 0..runs[0] + runs[1] {
            let due = (f64::from(next_hbm) + uniform(u64::from(next_hbm))) * all / of_hbm;
            let hbf_is_out = place - next_hbm >= runs[1];
            if next_hbm < runs[0] && (due < f64::from(place) + 1.0 || hbf_is_out) {
                next_hbm += 1;
                take(Tier::Hbm, &mut mixed);
            } else {
                take(Tier::Hbf, &mut mixed);
            }
        }
        mixed
    }
}

/// A segment's stack: its top run, and the node that holds the runs below it; most segments need no node at all.
#[derive(Debug, Clone, Copy)]
pub struct ExtentStack {
    top: Packed,
    node: u32,
}

impl Default for ExtentStack {
    fn default() -> Self {
        Self { top: Packed::default(), node: NO_NODE }
    }
}

impl ExtentStack {
    /// The run on top.
    #[must_use]
    #[inline]
    pub const fn top(self) -> Option<Extent> {
        let extent = self.top.extent();
        if extent.blocks == 0 { None } else { Some(extent) }
    }

    /// Makes a run the only one, if it has blocks: for segments of which no run below the top is kept.
    pub(super) fn replace(&mut self, extent: Extent) {
        if extent.blocks > 0 {
            self.top = Packed::new(extent);
        }
    }
}

/// The slab that all stacks share.
#[derive(Debug)]
pub struct ExtentSlab {
    nodes: Vec<Node>,
    /// The free node that is used next; further ones lie below it.
    next: u32,
    /// Chains of free nodes after that one's, linked as they were in their stacks, so that a stack is freed without a walk along it. First
    /// freed, first used: reclaiming follows the order of writing, so neighbours stay neighbours.
    free: VecDeque<u32>,
}

impl Default for ExtentSlab {
    fn default() -> Self {
        Self { nodes: Vec::new(), next: NO_NODE, free: VecDeque::new() }
    }
}

impl ExtentSlab {
    /// Puts a run of blocks on top; a run of the tier that is on top already makes that longer.
    #[inline]
    pub fn push(&mut self, stack: &mut ExtentStack, extent: Extent) {
        if extent.blocks == 0 {
            return;
        }
        if let Some(present) = stack.top() {
            if present.tier == extent.tier && present.blocks <= MOST - extent.blocks {
                stack.top.0 += extent.blocks;
                return;
            }
            self.store(stack);
        }
        stack.top = Packed::new(extent);
    }

    /// Puts the top run in a node.
    #[inline]
    fn store(&mut self, stack: &mut ExtentStack) {
        if stack.node != NO_NODE {
            let node = &mut self.nodes[index(stack.node)];
            if let Some(run) = node.runs.get_mut(index(node.count)) {
                *run = stack.top;
                node.count += 1;
                return;
            }
        }
        let mut node = Node { below: stack.node, count: 1, runs: [Packed::default(); RUNS] };
        node.runs[0] = stack.top;
        stack.node = self.take_node(node);
    }

    fn take_node(&mut self, node: Node) -> u32 {
        let place = self.next;
        if place == NO_NODE {
            self.nodes.push(node);
            return narrow(self.nodes.len() - 1);
        }
        let below = std::mem::replace(&mut self.nodes[index(place)], node).below;
        self.next = if below == NO_NODE { self.free.pop_front().unwrap_or(NO_NODE) } else { below };
        place
    }

    /// Frees a chain of nodes.
    #[inline]
    fn release(&mut self, top: u32) {
        if self.next == NO_NODE {
            self.next = top;
        } else {
            self.free.push_back(top);
        }
    }

    /// Takes up to `most` blocks off `top`, the stack's top run.
    #[inline]
    pub(super) fn take(&mut self, stack: &mut ExtentStack, top: Extent, most: u32) -> Extent {
        if top.blocks > most {
            stack.top.0 -= most;
            return Extent { tier: top.tier, blocks: most };
        }
        if stack.node == NO_NODE {
            stack.top = Packed::default();
            return top;
        }
        let node = &mut self.nodes[index(stack.node)];
        node.count -= 1;
        stack.top = node.runs[index(node.count)];
        if node.count == 0 {
            // A chain of one.
            let below = std::mem::replace(&mut node.below, NO_NODE);
            let emptied = std::mem::replace(&mut stack.node, below);
            self.release(emptied);
            self.fetch_top(*stack);
        }
        top
    }

    /// Reads ahead the node below a stack's top run.
    #[inline]
    pub(super) fn fetch_top(&self, stack: ExtentStack) {
        std::hint::black_box(self.nodes.get(index(stack.node)).map(|node| node.count));
    }

    /// Empties a stack, however many runs it has.
    #[inline]
    pub fn clear(&mut self, stack: &mut ExtentStack) {
        let node = std::mem::take(stack).node;
        if node != NO_NODE {
            self.release(node);
        }
    }

    /// The runs of a stack, top first.
    pub fn runs(&self, stack: ExtentStack) -> impl Iterator<Item = Extent> + '_ {
        let below = self.chain(stack.node).flat_map(|node| {
            let node = &self.nodes[index(node)];
            node.runs[..index(node.count)].iter().rev().map(|run| run.extent())
        });
        stack.top().into_iter().chain(below)
    }

    /// A node and those below it.
    fn chain(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let present = |node: u32| Some(node).filter(|&node| node != NO_NODE);
        std::iter::successors(present(node), move |&node| present(self.nodes[index(node)].below))
    }

    /// Nodes in use, over all stacks; counted by a walk over the free ones.
    #[must_use]
    pub fn live(&self) -> usize {
        let free = [self.next].into_iter().chain(self.free.iter().copied());
        self.nodes.len() - free.map(|node| self.chain(node).count()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Interleaving loses no block, and every prefix has HBM's share to within two runs.
        #[test]
        fn interleaving_keeps_every_block(hbm in 0_u32..3_000, hbf in 0_u32..3_000, seed in any::<u64>()) {
            let mixed = Extent::interleaved(PerTier([hbm, hbf]), 16, |run| {
                crate::rng::uniform(seed, crate::rng::Stream::AgedMemory, [0, run, 0])
            });
            let total = |tier| mixed.iter().filter(|run| run.tier == tier).map(|run| run.blocks).sum::<u32>();
            prop_assert_eq!((total(Tier::Hbm), total(Tier::Hbf)), (hbm, hbf));
            prop_assert!(mixed.iter().all(|run| run.blocks > 0));
            let all = mixed.len().max(1);
            let of_hbm = mixed.iter().filter(|run| run.tier == Tier::Hbm).count();
            let mut seen = 0;
            for (place, run) in mixed.iter().enumerate() {
                seen += usize::from(run.tier == Tier::Hbm);
                let expected = (place + 1) * of_hbm / all;
                prop_assert!(seen.abs_diff(expected) <= 2, "{} HBM runs of {}, expected {}", seen, place + 1, expected);
            }
        }

        /// A stack of extents behaves as a plain vector of one tier a block.
        #[test]
        fn agrees_with_a_vector_of_blocks(
            script in prop::collection::vec((any::<bool>(), 0_u8..20, 0_u32..6), 1..400),
        ) {
            let mut slab = ExtentSlab::default();
            let mut stacks = [ExtentStack::default(); 2];
            let mut plain: [Vec<Tier>; 2] = [vec![], vec![]];
            for (which, action, blocks) in script {
                let stack = usize::from(which);
                if action == 0 {
                    slab.clear(&mut stacks[stack]);
                    plain[stack].clear();
                } else if action < 14 {
                    let tier = if blocks % 2 == 0 { Tier::Hbm } else { Tier::Hbf };
                    slab.push(&mut stacks[stack], Extent { tier, blocks });
                    plain[stack].extend((0..blocks).map(|_| tier));
                } else if let Some(top) = stacks[stack].top() {
                    let extent = slab.take(&mut stacks[stack], top, blocks.max(1));
                    for _ in 0..extent.blocks {
                        prop_assert_eq!(plain[stack].pop(), Some(extent.tier));
                    }
                } else {
                    prop_assert!(plain[stack].is_empty());
                }
                for (stack, blocks) in stacks.iter().zip(&plain) {
                    let mut flat: Vec<Tier> = slab
                        .runs(*stack)
                        .flat_map(|run| (0..run.blocks).map(move |_| run.tier))
                        .collect();
                    flat.reverse();
                    prop_assert_eq!(&flat, blocks);
                }
                let runs_below = |stack: &ExtentStack| slab.runs(*stack).count().saturating_sub(1);
                let nodes = |stack| runs_below(stack).div_ceil(RUNS);
                prop_assert_eq!(slab.live(), stacks.iter().map(nodes).sum::<usize>());
            }
        }
    }
}
