//! The life of a segment: open, waiting for the requests that use it once its boundary has come, over, and gone with its last block.
//!
//! The simulator's rows and those of the live layer hold the same byte, and change it here alone.

use crate::units::{SegmentClass, Tier};

/// Where a segment stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Requests may use it.
    Open = 0,
    /// Its boundary has come; it waits for the requests that use it.
    Waiting = 1,
    /// It has ended; its blocks stay until they are reclaimed.
    Kept = 2,
    /// No segment: the row is vacant.
    Gone = 3,
}

/// What becomes of the blocks of a segment that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They return to their lists now.
    Free,
    /// They stay until memory is needed, and are reclaimed then.
    Keep,
}

/// What a boundary does to a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// It ends now.
    Ends,
    /// It ends with the last request that uses it.
    Waits,
    /// Nothing: its boundary had come before.
    Repeated,
}

/// Class, target tier and stage of a segment, in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life(u8);

const CLASS: u8 = 7;
const TIER: u8 = 1 << 3;
const STAGE: u32 = 4;

/// Every class by its number, and one place more, so that three bits always lie within.
const CLASSES_BY_NUMBER: [SegmentClass; CLASS as usize + 1] = {
    let mut classes = [SegmentClass::Lead; CLASS as usize + 1];
    let mut number = 0;
    while number < SegmentClass::ALL.len() {
        classes[number] = SegmentClass::ALL[number];
        number += 1;
    }
    classes
};

impl Life {
    /// A segment opens in the tier that the policy named.
    #[must_use]
    pub const fn open(class: SegmentClass, target: Tier) -> Self {
        Self(class as u8 | if matches!(target, Tier::Hbf) { TIER } else { 0 })
    }

    /// The class.
    #[must_use]
    #[inline]
    pub fn class(self) -> SegmentClass {
        CLASSES_BY_NUMBER[usize::from(self.0 & CLASS)]
    }

    /// The tier that the policy named.
    #[must_use]
    #[inline]
    pub const fn target(self) -> Tier {
        if self.0 & TIER == 0 { Tier::Hbm } else { Tier::Hbf }
    }

    /// The stage.
    #[must_use]
    #[inline]
    pub const fn stage(self) -> Stage {
        match self.0 >> STAGE {
            0 => Stage::Open,
            1 => Stage::Waiting,
            2 => Stage::Kept,
            _ => Stage::Gone,
        }
    }

    fn enter(&mut self, stage: Stage) {
        self.0 = self.0 & ((1 << STAGE) - 1) | (stage as u8) << STAGE;
    }

    /// Whether its boundary has not come: requests may start to use it.
    #[must_use]
    #[inline]
    pub const fn is_open(self) -> bool {
        matches!(self.stage(), Stage::Open)
    }

    /// Whether it has not ended: requests that use it may write to it, while it waits for them as well.
    #[must_use]
    #[inline]
    pub const fn is_live(self) -> bool {
        matches!(self.stage(), Stage::Open | Stage::Waiting)
    }

    /// Whether a segment has the row.
    #[must_use]
    #[inline]
    pub const fn is_there(self) -> bool {
        !matches!(self.stage(), Stage::Gone)
    }

    /// Its boundary comes, with requests that use it or without. One that ends now is ended by `end`.
    pub fn boundary(&mut self, in_use: bool) -> Passage {
        match (self.stage(), in_use) {
            (Stage::Open | Stage::Waiting, false) => Passage::Ends,
            (Stage::Open, true) => {
                self.enter(Stage::Waiting);
                Passage::Waits
            }
            (Stage::Waiting, true) | (Stage::Kept | Stage::Gone, _) => Passage::Repeated,
        }
    }

    /// A request that used it has ended. Whether its boundary waited for that one, so that it ends now.
    #[must_use]
    #[inline]
    pub const fn ends_with_use(self, in_use: bool) -> bool {
        matches!(self.stage(), Stage::Waiting) && !in_use
    }

    /// It goes on although its boundary has come, as long as it waits; its tier stays. Returns whether it does.
    pub fn reopen(&mut self) -> bool {
        let waits = self.stage() == Stage::Waiting;
        if waits {
            self.enter(Stage::Open);
        }
        waits
    }

    /// It ends. Returns what becomes of its blocks and row: without blocks there is nothing to keep.
    pub fn end(&mut self, fate: Fate, holds_blocks: bool) -> Fate {
        debug_assert!(self.is_live(), "Invariant: a segment ends once");
        if fate == Fate::Keep && holds_blocks {
            self.enter(Stage::Kept);
            Fate::Keep
        } else {
            self.enter(Stage::Gone);
            Fate::Free
        }
    }

    /// Its last block was reclaimed. Returns whether its row goes with it; a live segment stays.
    pub fn emptied(&mut self) -> bool {
        let was_kept = self.stage() == Stage::Kept;
        if was_kept {
            self.enter(Stage::Gone);
        }
        was_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 4] = [Stage::Open, Stage::Waiting, Stage::Kept, Stage::Gone];

    fn at(stage: Stage) -> Life {
        let mut life = Life::open(SegmentClass::Worker, Tier::Hbf);
        life.enter(stage);
        life
    }

    #[test]
    fn class_tier_and_stage_do_not_touch_each_other() {
        for class in SegmentClass::ALL {
            for tier in Tier::ALL {
                for stage in STAGES {
                    let mut life = Life::open(class, tier);
                    assert_eq!((life.class(), life.target(), life.stage()), (class, tier, Stage::Open));
                    life.enter(Stage::Gone);
                    life.enter(stage);
                    assert_eq!((life.class(), life.target(), life.stage()), (class, tier, stage));
                }
            }
        }
    }

    /// Every stage, and where each event leads from it.
    #[test]
    fn every_transition() {
        use Passage::{Ends, Repeated, Waits};
        use Stage::{Gone, Kept, Open, Waiting};
        for (stage, boundary_in_use, boundary, after_boundary) in [
            (Open, false, Ends, Open),
            (Open, true, Waits, Waiting),
            (Waiting, false, Ends, Waiting),
            (Waiting, true, Repeated, Waiting),
            (Kept, false, Repeated, Kept),
            (Kept, true, Repeated, Kept),
            (Gone, false, Repeated, Gone),
            (Gone, true, Repeated, Gone),
        ] {
            let mut life = at(stage);
            assert_eq!((life.boundary(boundary_in_use), life), (boundary, at(after_boundary)), "{stage:?}");
        }
        for (stage, is_open, is_live, is_there) in [
            (Open, true, true, true),
            (Waiting, false, true, true),
            (Kept, false, false, true),
            (Gone, false, false, false),
        ] {
            let life = at(stage);
            assert_eq!((life.is_open(), life.is_live(), life.is_there()), (is_open, is_live, is_there));
        }
        for stage in STAGES {
            assert_eq!(at(stage).ends_with_use(false), stage == Waiting);
            assert!(!at(stage).ends_with_use(true), "others use it");
            let mut life = at(stage);
            let reopened = life.reopen();
            assert_eq!(
                (reopened, life.stage()),
                if stage == Waiting { (true, Open) } else { (false, stage) }
            );
            let mut life = at(stage);
            let goes = life.emptied();
            assert_eq!((goes, life.stage()), if stage == Kept { (true, Gone) } else { (false, stage) });
        }
        for stage in [Open, Waiting] {
            for (fate, holds_blocks, left) in [
                (Fate::Free, true, (Fate::Free, Gone)),
                (Fate::Free, false, (Fate::Free, Gone)),
                (Fate::Keep, true, (Fate::Keep, Kept)),
                (Fate::Keep, false, (Fate::Free, Gone)),
            ] {
                let mut life = at(stage);
                assert_eq!((life.end(fate, holds_blocks), life.stage()), left);
            }
        }
    }
}
