//! Exceptions: members of a cohort that got a block of another tier than the rest in a round.

use crate::placement::Placement;
use crate::placement::append::{Exception, NO_EXCEPTION};
use crate::units::{Tier, index, narrow};

impl Placement {
    /// A member's block of the round at hand is of `tier`, which is not the regime.
    pub(super) fn make_exception(&mut self, gpu: u16, slot: u32, tier: Tier, step: u64) {
        let round = self.appends.cohorts[index(self.appends.append(slot).cohort)].round;
        let exception = Exception { round, next: NO_EXCEPTION, tier };
        let place = if let Some(place) = self.appends.vacant_exceptions.pop() {
            self.appends.exceptions[index(place)] = exception;
            place
        } else {
            self.appends.exceptions.push(exception);
            narrow(self.appends.exceptions.len() - 1)
        };
        let append = self.appends.append_mut(slot);
        let last = std::mem::replace(&mut append.last_exception, place);
        // The last exception's slot in the slab is only ours while it is not consumed, which happens at leave alone.
        if append.first_exception == NO_EXCEPTION {
            append.first_exception = place;
        }
        append.exceptional = true;
        append.tier = tier;
        let (class, cohort_index) = (append.class, append.cohort);
        if last != NO_EXCEPTION {
            self.appends.exceptions[index(last)].next = place;
        }
        let cohort = &mut self.appends.cohorts[index(cohort_index)];
        cohort.exceptional.push(slot);
        cohort.regular[class as usize] -= 1;
        let regime = cohort.regime;
        self.change_writers(gpu, class, regime, step, -1);
        self.change_writers(gpu, class, tier, step, 1);
    }

    /// Exceptional members leave the blocks that made them so.
    pub(super) fn revert_exceptional(&mut self, gpu: u16, cohort_index: u32, step: u64) {
        let mut exceptional = std::mem::take(&mut self.appends.cohorts[index(cohort_index)].exceptional);
        let regime = self.appends.cohorts[index(cohort_index)].regime;
        for &slot in &exceptional {
            let append = self.appends.append_mut(slot);
            append.exceptional = false;
            let (class, tier) = (append.class, append.tier);
            self.appends.cohorts[index(cohort_index)].regular[class as usize] += 1;
            self.change_writers(gpu, class, tier, step, -1);
            self.change_writers(gpu, class, regime, step, 1);
        }
        exceptional.clear();
        self.appends.cohorts[index(cohort_index)].exceptional = exceptional;
    }
}
