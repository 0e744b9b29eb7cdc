//! The blocks of a segment: a chain of runs in one slab, 8 bytes a run.
//!
//! A run of blocks that the segment wrote is one slot with its *last* block: its length is read off the blocks' `joined` marks, as
//! only one segment writes a block. Adopted blocks are marked by their writer, so an adopted run needs its length
//! beside it: a second slot, unless it is a single block.

use crate::kv::BlockRange;
use crate::placement::live::blocks::Blocks;
use crate::units::{index, narrow};

/// Nothing lies below.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// In `block`: the run was adopted.
const ADOPTED: u32 = 1 << 31;
/// In `below`: the slot there holds the length of this adopted run in `block`, and what lies below it.
const COUNTED: u32 = 1 << 31;

#[derive(Debug, Clone, Copy)]
struct Slot {
    block: u32,
    below: u32,
}

/// The slab that all chains share; slots freed are chained through `below`.
#[derive(Debug)]
pub(super) struct Chains {
    slots: Vec<Slot>,
    vacant: u32,
    live: u32,
}

impl Default for Chains {
    fn default() -> Self {
        Self { slots: Vec::new(), vacant: NO_SLOT, live: 0 }
    }
}

/// A run, taken off a chain or looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) range: BlockRange,
    pub(super) is_adopted: bool,
}

impl Chains {
    fn slot(&mut self, slot: Slot) -> u32 {
        self.live += 1;
        if self.vacant != NO_SLOT {
            let place = self.vacant;
            self.vacant = self.slots[index(place)].below;
            self.slots[index(place)] = slot;
            return place;
        }
        crate::kv::reserve_sparingly(&mut self.slots, 64);
        self.slots.push(slot);
        narrow(self.slots.len() - 1)
    }

    fn vacate(&mut self, place: u32) {
        self.live -= 1;
        self.slots[index(place)].below = self.vacant;
        self.vacant = place;
    }

    /// Puts a block that the segment just wrote on top.
    #[inline]
    pub(super) fn push_written(&mut self, top: &mut u32, block: u32, blocks: &mut Blocks) {
        if *top != NO_SLOT {
            let slot = &mut self.slots[index(*top)];
            if slot.block + 1 == block && blocks.tier_of(slot.block) == blocks.tier_of(block) {
                slot.block = block;
                blocks.join(block, true);
                return;
            }
        }
        blocks.join(block, false);
        *top = self.slot(Slot { block, below: *top });
    }

    /// Puts an adopted run on top.
    pub(super) fn push_adopted(&mut self, top: &mut u32, range: BlockRange) {
        let mut below = *top;
        if range.blocks > 1 {
            below = self.slot(Slot { block: range.blocks, below }) | COUNTED;
        }
        *top = self.slot(Slot { block: range.start | ADOPTED, below });
    }

    /// Slot of a length, if this run has one, and what lies below the run.
    fn parts(&self, slot: Slot) -> (Option<u32>, u32) {
        if slot.block & ADOPTED != 0 && slot.below != NO_SLOT && slot.below & COUNTED != 0 {
            let counted = slot.below & !COUNTED;
            (Some(counted), self.slots[index(counted)].below)
        } else {
            (None, slot.below)
        }
    }

    fn run(&self, slot: Slot, blocks: &Blocks) -> Run {
        if slot.block & ADOPTED != 0 {
            let count = self.parts(slot).0.map_or(1, |place| self.slots[index(place)].block);
            let start = slot.block & !ADOPTED;
            return Run { range: BlockRange { start, blocks: count }, is_adopted: true };
        }
        let mut start = slot.block;
        while blocks.is_joined(start) {
            start -= 1;
        }
        Run { range: BlockRange { start, blocks: slot.block - start + 1 }, is_adopted: false }
    }

    /// The runs of a chain, top first.
    pub(super) fn runs<'a>(&'a self, top: u32, blocks: &'a Blocks) -> impl Iterator<Item = Run> + 'a {
        let mut next = top;
        std::iter::from_fn(move || {
            if next == NO_SLOT {
                return None;
            }
            let slot = self.slots[index(next)];
            next = self.parts(slot).1;
            Some(self.run(slot, blocks))
        })
    }

    /// Takes the top slot off; for a written run `take` is given its blocks from the last to the first, for an adopted one
    /// likewise.
    #[inline]
    pub(super) fn pop_run(
        &mut self,
        top: &mut u32,
        blocks: &mut Blocks,
        mut take: impl FnMut(&mut Blocks, u32),
    ) {
        let slot = self.slots[index(*top)];
        let (counted, below) = self.parts(slot);
        if slot.block & ADOPTED != 0 {
            let start = slot.block & !ADOPTED;
            let count = counted.map_or(1, |place| self.slots[index(place)].block);
            for block in (start..start + count).rev() {
                take(blocks, block);
            }
        } else {
            let mut block = slot.block;
            loop {
                let joined = blocks.is_joined(block);
                if joined {
                    blocks.join(block, false);
                }
                take(blocks, block);
                if !joined {
                    break;
                }
                block -= 1;
            }
        }
        if let Some(place) = counted {
            self.vacate(place);
        }
        self.vacate(*top);
        *top = below;
    }

    /// Takes the last block off; the chain is not empty.
    pub(super) fn pop_block(&mut self, top: &mut u32, blocks: &mut Blocks) -> u32 {
        let slot = self.slots[index(*top)];
        let (counted, below) = self.parts(slot);
        if slot.block & ADOPTED != 0 {
            let start = slot.block & !ADOPTED;
            let Some(place) = counted else {
                self.vacate(*top);
                *top = below;
                return start;
            };
            let count = self.slots[index(place)].block;
            self.slots[index(place)].block = count - 1;
            if count == 2 {
                self.vacate(place);
                self.slots[index(*top)].below = below;
            }
            return start + count - 1;
        }
        if blocks.is_joined(slot.block) {
            blocks.join(slot.block, false);
            self.slots[index(*top)].block = slot.block - 1;
        } else {
            self.vacate(*top);
            *top = below;
        }
        slot.block
    }

    /// Slots in use.
    pub(super) const fn live(&self) -> u32 {
        self.live
    }

    /// Bytes that the slab takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_takes_eight_bytes() {
        assert_eq!(size_of::<Slot>(), 8);
    }
}
