//! A two-tier pool of real block ids: one free list a tier, every call validated before anything changes.

use crate::error::{Error, Result};
use crate::units::{PerTier, Tier, index};

/// A run of neighbouring block ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRange {
    /// The first id.
    pub start: u32,
    /// How many.
    pub blocks: u32,
}

/// Who a block belongs to: nobody, somebody unnamed, or a segment.
const FREE: u32 = u32::MAX;
const UNNAMED: u32 = u32::MAX - 1;

/// Refuses the two numbers that mark a block as free or as held by nobody by name.
fn check_segment(segment: Option<u32>) -> Result<()> {
    match segment {
        Some(segment) if segment >= UNNAMED => Err(Error::Setting {
            name: "segment",
            value: segment.to_string(),
            rule: "must be below 4294967294",
        }),
        _ => Ok(()),
    }
}

/// Blocks 0.. `hbm` are of HBM, the following `hbf` of HBF.
///
/// Contract: `free + held = total` in each tier after every call; a call that fails changes nothing; a block returns to the list that it
/// came from.
#[derive(Debug, Clone)]
pub struct BlockPool {
    total: PerTier<u32>,
    free: PerTier<u32>,
    /// Free ids, as runs; the last is drawn from first.
    lists: PerTier<Vec<BlockRange>>,
    owner: Vec<u32>,
    marks: Vec<u32>,
    fallbacks: u64,
}

impl BlockPool {
    /// A pool with all blocks free.
    ///
    /// # Errors
    /// `Error::Setting` if there are 2³¹ blocks or more.
    pub fn new(hbm_blocks: u32, hbf_blocks: u32) -> Result<Self> {
        let total = u64::from(hbm_blocks) + u64::from(hbf_blocks);
        if total >= 1 << 31 {
            return Err(Error::Setting {
                name: "blocks",
                value: total.to_string(),
                rule: "must be fewer than 2147483648",
            });
        }
        let list = |start, blocks| if blocks == 0 { Vec::new() } else { vec![BlockRange { start, blocks }] };
        Ok(Self {
            total: PerTier([hbm_blocks, hbf_blocks]),
            free: PerTier([hbm_blocks, hbf_blocks]),
            lists: PerTier([list(0, hbm_blocks), list(hbm_blocks, hbf_blocks)]),
            owner: vec![FREE; index(hbm_blocks) + index(hbf_blocks)],
            marks: Vec::new(),
            fallbacks: 0,
        })
    }

    /// The tier of a block.
    ///
    /// # Errors
    /// `Error::UnknownBlock`.
    pub fn tier_of(&self, block: u32) -> Result<Tier> {
        if index(block) >= self.owner.len() {
            return Err(Error::UnknownBlock(block));
        }
        Ok(if block < self.total[Tier::Hbm] { Tier::Hbm } else { Tier::Hbf })
    }

    /// Blocks on the free list of a tier.
    #[must_use]
    pub fn free_blocks(&self, tier: Tier) -> u32 {
        self.free[tier]
    }

    /// Blocks that a tier has.
    #[must_use]
    pub fn total_blocks(&self, tier: Tier) -> u32 {
        self.total[tier]
    }

    /// Blocks drawn from the other tier because the one asked for was empty.
    #[must_use]
    pub const fn fallbacks(&self) -> u64 {
        self.fallbacks
    }

    /// Draws `blocks` blocks from a tier's list, and where `falls_back` from the other's when that is empty, for `segment` or for nobody by name;
    /// appends the runs drawn to `drawn`.
    ///
    /// # Errors
    /// `Error::OutOfBlocks`; nothing was drawn.
    pub fn alloc(
        &mut self,
        tier: Tier,
        blocks: u32,
        falls_back: bool,
        segment: Option<u32>,
        drawn: &mut Vec<BlockRange>,
    ) -> Result<()> {
        check_segment(segment)?;
        let own = blocks.min(self.free[tier]);
        let other = blocks - own;
        let spare = if falls_back { self.free[tier.other()] } else { 0 };
        if other > spare {
            return Err(Error::OutOfBlocks {
                tier: if tier == Tier::Hbm { "HBM" } else { "HBF" },
                needed: u64::from(blocks),
                free: u64::from(self.free[tier]) + u64::from(spare),
            });
        }
        let owner = segment.unwrap_or(UNNAMED);
        self.draw(tier, own, owner, drawn);
        self.draw(tier.other(), other, owner, drawn);
        self.fallbacks += u64::from(other);
        Ok(())
    }

    fn draw(&mut self, tier: Tier, blocks: u32, owner: u32, drawn: &mut Vec<BlockRange>) {
        self.free[tier] -= blocks;
        let mut left = blocks;
        while left > 0 {
            let Some(run) = self.lists[tier].last_mut() else { break };
            let taken = run.blocks.min(left);
            let start = run.start;
            if taken == run.blocks {
                self.lists[tier].pop();
            } else {
                run.start += taken;
                run.blocks -= taken;
            }
            self.owner[index(start)..index(start + taken)].fill(owner);
            drawn.push(BlockRange { start, blocks: taken });
            left -= taken;
        }
        debug_assert_eq!(left, 0, "Invariant: the free list is as long as its count");
    }

    /// Frees blocks that belong to nobody by name: all of them, or none if one cannot be freed.
    ///
    /// # Errors
    /// `Error::UnknownBlock`, `Error::DoubleFree` (also for an id given twice), `Error::BlockHeld` for a block of a live segment.
    pub fn free(&mut self, blocks: &[u32]) -> Result<()> {
        self.give_back(blocks, UNNAMED)
    }

    /// Frees blocks of a segment that has closed.
    ///
    /// # Errors
    /// As `free`; `Error::BlockHeld` for a block of another segment.
    pub fn free_of(&mut self, segment: u32, blocks: &[u32]) -> Result<()> {
        check_segment(Some(segment))?;
        self.give_back(blocks, segment)
    }

    fn give_back(&mut self, blocks: &[u32], owner: u32) -> Result<()> {
        self.marks.clear();
        let mut fault = None;
        for &block in blocks {
            fault = match self.owner.get(index(block)).copied() {
                None => Some(Error::UnknownBlock(block)),
                Some(FREE) => Some(Error::DoubleFree(block)),
                Some(UNNAMED) if owner != UNNAMED => Some(Error::NotOfSegment { block, segment: owner }),
                Some(present) if present != owner => Some(Error::BlockHeld { block, segment: present }),
                Some(_) => None,
            };
            if fault.is_some() {
                break;
            }
            // Marking as free at once finds an id given twice; a fault takes the marks back.
            self.owner[index(block)] = FREE;
            self.marks.push(block);
        }
        if let Some(fault) = fault {
            for &block in &self.marks {
                self.owner[index(block)] = owner;
            }
            return Err(fault);
        }
        for &block in blocks {
            let tier = if block < self.total[Tier::Hbm] { Tier::Hbm } else { Tier::Hbf };
            self.free[tier] += 1;
            match self.lists[tier].last_mut() {
                Some(run) if run.start + run.blocks == block => run.blocks += 1,
                Some(run) if block + 1 == run.start => {
                    run.start = block;
                    run.blocks += 1;
                }
                _ => self.lists[tier].push(BlockRange { start: block, blocks: 1 }),
            }
        }
        Ok(())
    }

    /// Counts every block: each is free or held, and the free lists hold each free block once.
    ///
    /// # Errors
    /// `Error::Census` with the difference.
    pub fn check(&self) -> Result<()> {
        for tier in Tier::ALL {
            let (from, to) = match tier {
                Tier::Hbm => (0, self.total[Tier::Hbm]),
                Tier::Hbf => (self.total[Tier::Hbm], self.total[Tier::Hbm] + self.total[Tier::Hbf]),
            };
            let held =
                self.owner[index(from)..index(to)].iter().filter(|&&owner| owner != FREE).count() as u64;
            let listed = self.lists[tier].iter().map(|run| u64::from(run.blocks)).sum::<u64>();
            let total = u64::from(self.total[tier]);
            let all_free = self.lists[tier].iter().all(|run| {
                self.owner[index(run.start)..index(run.start + run.blocks)].iter().all(|&owner| owner == FREE)
            });
            if listed + held != total || listed != u64::from(self.free[tier]) || !all_free {
                let tier = if tier == Tier::Hbm { "HBM" } else { "HBF" };
                return Err(Error::Census { gpu: 0, tier, free: listed, held, sum: listed + held, total });
            }
        }
        Ok(())
    }
}
