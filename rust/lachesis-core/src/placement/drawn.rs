//! Who drew what for a step: read off the cohorts after the draws.

use crate::placement::Placement;
use crate::units::{Tier, index};

impl Placement {
    /// What a round of draws that was starved has drawn so far, by slot in the order of admission.
    pub fn drawn_so_far(&self) -> impl Iterator<Item = (u32, Tier)> + '_ {
        self.appends.draw.drawn()
    }

    /// The running requests of a GPU that have drawn a block for `step`, by slot, and the tier that each got.
    ///
    /// Contract: called after the draws of `step` and before any request joins or leaves.
    pub fn drawn_for(&mut self, gpu: u16, step: u64) -> impl Iterator<Item = (u32, Tier)> + '_ {
        let first = self.appends.first_cohort(gpu, step, 0);
        let appends = &self.appends;
        [first, first + 1].into_iter().flat_map(move |place| {
            let cohort = &appends.cohorts[index(place)];
            appends.rosters[index(place)].members.iter().map(move |&slot| {
                let append = appends.append(slot);
                (slot, if append.exceptional { append.tier } else { cohort.regime })
            })
        })
    }
}
