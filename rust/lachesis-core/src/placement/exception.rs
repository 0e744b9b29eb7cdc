//! Exceptions: members of a cohort that got a block of another tier than the rest in a round.

use crate::placement::Placement;
use crate::placement::append::{Appends, Exception, NO_EXCEPTION};
use crate::units::{CLASSES, SegmentClass, Tier, index, narrow};

impl Appends {
    /// A member's block of the round at hand is of `tier`, which is not the regime. Returns its class.
    pub(super) fn make_exception(&mut self, slot: u32, tier: Tier) -> SegmentClass {
        let append = self.slots[index(slot)].as_mut().expect("Invariant: cohorts name running requests only");
        let (cohort, roster) =
            (&mut self.cohorts[index(append.cohort)], &mut self.rosters[index(append.cohort)]);
        let exception = Exception { round: cohort.round, next: NO_EXCEPTION, tier };
        let place = if let Some(place) = self.vacant_exceptions.pop() {
            self.exceptions[index(place)] = exception;
            place
        } else {
            self.exceptions.push(exception);
            narrow(self.exceptions.len() - 1)
        };
        // The last exception's slot in the slab is only ours while it is not consumed, which happens at leave alone.
        let last = std::mem::replace(&mut append.last_exception, place);
        if append.first_exception == NO_EXCEPTION {
            append.first_exception = place;
        } else {
            self.exceptions[index(last)].next = place;
        }
        append.exceptional = true;
        append.tier = tier;
        roster.exceptional.push(slot);
        roster.regular[append.class as usize] -= 1;
        cohort.has_exceptional = true;
        append.class
    }

    /// Exceptional members leave the blocks that made them so. Returns how many there were, by class.
    pub(super) fn revert_exceptional(&mut self, cohort: u32) -> [i32; CLASSES] {
        let mut reverted = [0; CLASSES];
        let (cohort, roster) = (&mut self.cohorts[index(cohort)], &mut self.rosters[index(cohort)]);
        if std::mem::take(&mut cohort.has_exceptional) {
            for slot in roster.exceptional.drain(..) {
                let append =
                    self.slots[index(slot)].as_mut().expect("Invariant: cohorts name running requests only");
                append.exceptional = false;
                roster.regular[append.class as usize] += 1;
                reverted[append.class as usize] += 1;
            }
        }
        reverted
    }
}

impl Placement {
    /// So many running requests of each class, those below 0 the other way round, have their current block in `tier` from now on, and had
    /// it in the other one.
    pub(super) fn move_writers(&mut self, gpu: u16, tier: Tier, moved: [i32; CLASSES], step: u64) {
        for (class, count) in SegmentClass::ALL.into_iter().zip(moved).filter(|&(_, count)| count != 0) {
            self.change_writers(gpu, class, tier.other(), step, -count);
            self.change_writers(gpu, class, tier, step, count);
        }
    }
}
