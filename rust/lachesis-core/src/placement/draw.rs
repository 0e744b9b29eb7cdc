//! The draws of running requests: one operation a cohort where one tier serves it, request by request where not.

use crate::kv::Extent;
use crate::placement::Placement;
use crate::placement::append::Starved;
use crate::units::{PerTier, Tier, index, narrow};

/// A round of draws that could not be one operation, while it is under way.
#[derive(Debug, Default)]
pub(super) struct OpenDraw {
    gpu: u16,
    first_cohort: u32,
    order: Vec<u32>,
    position: usize,
    /// Whether both cohorts draw, so that targets change along `order`.
    mixed_targets: bool,
    /// A draw of this round could not be served: requests may have left meanwhile.
    was_starved: bool,
    /// Tiers drawn so far: runs along `order`, each for one target.
    runs: Vec<Extent>,
}

impl OpenDraw {
    /// What was drawn so far, along `order`.
    pub(super) fn drawn(&self) -> impl Iterator<Item = (u32, Tier)> + '_ {
        let tiers = self.runs.iter().flat_map(|run| std::iter::repeat_n(run.tier, index(run.blocks)));
        self.order.iter().copied().zip(tiers)
    }
}

impl Placement {
    /// Draws the blocks that running requests of a GPU need for `step`.
    ///
    /// # Errors
    /// `Starved` names the first request, in admission order, whose draw cannot be served; after room was made, or the request preempted, `resume_draws`
    /// goes on.
    #[inline]
    pub fn draw_for_step(&mut self, gpu: u16, step: u64) -> Result<(), Starved> {
        let first = self.appends.first_cohort(gpu, step, 0);
        let [of_hbm, of_hbf] = [first, first + 1].map(|cohort| self.appends.cohorts[index(cohort)].size);
        let members = PerTier([of_hbm, of_hbf]);
        if members.0 == [0, 0] {
            return Ok(());
        }
        let Some(tiers) = self.draw_uniformly(gpu, members) else {
            return self.draw_in_runs(gpu, first, step);
        };
        for target in Tier::ALL {
            self.end_uniform_round(gpu, first + target as u32, tiers[target], step);
        }
        Ok(())
    }

    /// Draws a round in which one tier serves all members of a target, if it is such a round; returns the tiers by target.
    #[inline]
    fn draw_uniformly(&mut self, gpu: u16, members: PerTier<u32>) -> Option<PerTier<Tier>> {
        let free = self.memory.gpus[usize::from(gpu)].free;
        if Tier::ALL.into_iter().all(|tier| members[tier] <= free[tier]) {
            self.take_free(gpu, members);
            return Some(PerTier(Tier::ALL));
        }
        if !self.memory.falls_back {
            return None;
        }
        // Where a list is empty, the other one serves everybody. In a full memory what is drawn is reclaimed, most often from one run.
        let all = members[Tier::Hbm] + members[Tier::Hbf];
        let tier = if free.0 == [0, 0] {
            self.memory.reclaim_in_flight(gpu, all)?
        } else {
            let tier = Tier::ALL.into_iter().find(|&tier| free[tier] >= all && free[tier.other()] == 0)?;
            self.memory.take_in_flight(gpu, tier, all);
            tier
        };
        self.memory.fallbacks += u64::from(members[tier.other()]);
        Some(PerTier([tier; 2]))
    }

    /// Draws a round that one list or run alone does not serve.
    #[inline(never)]
    fn draw_in_runs(&mut self, gpu: u16, first_cohort: u32, step: u64) -> Result<(), Starved> {
        let draw = &mut self.appends.draw;
        draw.gpu = gpu;
        draw.first_cohort = first_cohort;
        draw.position = 0;
        draw.was_starved = false;
        draw.runs.clear();
        self.order_draws();
        self.resume_draws(step)
    }

    /// Takes free blocks for running requests.
    pub(super) fn take_free(&mut self, gpu: u16, blocks: PerTier<u32>) {
        for tier in Tier::ALL {
            self.memory.take_in_flight(gpu, tier, blocks[tier]);
        }
    }

    /// Puts the members of both cohorts in the order in which they draw.
    fn order_draws(&mut self) {
        let mut draw = std::mem::take(&mut self.appends.draw);
        let members = [draw.first_cohort, draw.first_cohort + 1]
            .map(|place| &self.appends.rosters[index(place)].members);
        draw.order.clear();
        draw.order.extend_from_slice(members[0]);
        draw.order.extend_from_slice(members[1]);
        draw.mixed_targets = members.iter().all(|members| !members.is_empty());
        if draw.mixed_targets {
            draw.order.sort_unstable_by_key(|&slot| self.appends.append(slot).admission);
        }
        self.appends.draw = draw;
    }

    /// Goes on with the draws of `draw_for_step` where they stopped.
    ///
    /// # Errors
    /// `Starved` as there.
    pub fn resume_draws(&mut self, step: u64) -> Result<(), Starved> {
        let mut draw = std::mem::take(&mut self.appends.draw);
        if draw.was_starved {
            // Requests preempted meanwhile are newer than all that have drawn: they lie behind the position.
            let mut kept = draw.order.split_off(draw.position);
            kept.retain(|&slot| self.appends.slots[index(slot)].is_some());
            draw.order.append(&mut kept);
        }
        let outcome = self.draw_in_order(&mut draw);
        self.appends.draw = draw;
        outcome?;
        self.end_mixed_round(step);
        Ok(())
    }

    fn draw_in_order(&mut self, draw: &mut OpenDraw) -> Result<(), Starved> {
        while draw.position < draw.order.len() {
            let rest = &draw.order[draw.position..];
            let cohort = self.appends.append(rest[0]).cohort;
            let same = if draw.mixed_targets {
                rest.iter().take_while(|&&other| self.appends.append(other).cohort == cohort).count()
            } else {
                rest.len()
            };
            let target = Tier::ALL[index(cohort & 1)];
            let left = self.memory.draw_in_flight(draw.gpu, target, narrow(same), &mut draw.runs);
            draw.position += same - index(left);
            if left > 0 {
                draw.was_starved = true;
                return Err(Starved { slot: draw.order[draw.position] });
            }
        }
        Ok(())
    }

    /// Every member of a cohort got a block of `tier`.
    #[inline]
    fn end_uniform_round(&mut self, gpu: u16, cohort_index: u32, tier: Tier, step: u64) {
        let cohort = &mut self.appends.cohorts[index(cohort_index)];
        if cohort.is_all(tier) {
            // No round counts for a cohort without members, of which nobody asks.
            cohort.end_rounds(1);
        } else if cohort.size > 0 {
            self.change_round(gpu, cohort_index, tier, step);
        }
    }

    /// Every member got a block of `tier`, which was not the tier of everybody's last.
    #[inline(never)]
    fn change_round(&mut self, gpu: u16, cohort_index: u32, tier: Tier, step: u64) {
        let place = index(cohort_index);
        let regular = self.appends.rosters[place].regular.map(u32::cast_signed);
        let exceptional = self.appends.revert_exceptional(cohort_index);
        if self.appends.cohorts[place].regime == tier {
            self.move_writers(gpu, tier, exceptional, step);
        } else {
            self.appends.change_regime(cohort_index, tier);
            self.move_writers(gpu, tier, regular, step);
        }
        self.appends.count_irregular(gpu, cohort_index);
        self.appends.cohorts[place].end_rounds(1);
    }

    /// Members of the cohorts got blocks as the runs of the open draw say.
    fn end_mixed_round(&mut self, step: u64) {
        let draw = std::mem::take(&mut self.appends.draw);
        for cohort_index in [draw.first_cohort, draw.first_cohort + 1] {
            if self.appends.cohorts[index(cohort_index)].size == 0 {
                continue;
            }
            let mut got = PerTier([false, false]);
            self.for_runs_of(&draw, cohort_index, |_, _, tier| got[tier] = true);
            if got.0 == [true, true] {
                self.split_round(&draw, cohort_index, step);
            } else {
                let tier = if got[Tier::Hbm] { Tier::Hbm } else { Tier::Hbf };
                self.end_uniform_round(draw.gpu, cohort_index, tier, step);
            }
        }
        self.appends.draw = draw;
    }

    /// Members of a cohort got blocks of both tiers.
    fn split_round(&mut self, draw: &OpenDraw, cohort_index: u32, step: u64) {
        let odd = self.appends.cohorts[index(cohort_index)].regime.other();
        let mut moved = self.appends.revert_exceptional(cohort_index).map(|count| -count);
        self.for_runs_of(draw, cohort_index, |placement, slots, tier| {
            if tier == odd {
                for &slot in slots {
                    moved[placement.appends.make_exception(slot, odd) as usize] += 1;
                }
            }
        });
        self.move_writers(draw.gpu, odd, moved, step);
        self.appends.count_irregular(draw.gpu, cohort_index);
        self.appends.cohorts[index(cohort_index)].end_rounds(1);
    }

    /// Calls `visit` with the members of a cohort in a finished draw, run by run.
    #[inline]
    fn for_runs_of(
        &mut self,
        draw: &OpenDraw,
        cohort_index: u32,
        mut visit: impl FnMut(&mut Self, &[u32], Tier),
    ) {
        let mut position = 0;
        for run in &draw.runs {
            let slots = &draw.order[position..position + index(run.blocks)];
            // A run serves one target only, so its first member tells the cohort of all.
            if !draw.mixed_targets || self.appends.append(slots[0]).cohort == cohort_index {
                visit(self, slots, run.tier);
            }
            position += slots.len();
        }
    }
}
