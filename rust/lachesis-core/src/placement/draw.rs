//! The draws of running requests: one operation a cohort where one tier serves it, request by request where not.

use crate::kv::Extent;
use crate::placement::Placement;
use crate::placement::append::{Cohort, Starved};
use crate::units::{PerTier, SegmentClass, Tier, index, narrow};

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
    /// Tiers drawn so far: runs along `order`.
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
    pub fn draw_for_step(&mut self, gpu: u16, step: u64) -> Result<(), Starved> {
        let appends = &mut self.appends;
        let first = appends.first_cohort(gpu, step, 0);
        let members = PerTier([appends.sizes[index(first)], appends.sizes[index(first) + 1]]);
        let all = members[Tier::Hbm] + members[Tier::Hbf];
        if all == 0 {
            return Ok(());
        }
        let free = self.memory.gpus[usize::from(gpu)].free;
        if free.0 == [0, 0] {
            // A full memory: whatever is drawn is reclaimed.
            return self.draw_in_runs(gpu, first, members, step);
        }
        // Where one list can serve everybody, only the other's targets can be split, and the order between the cohorts does not matter.
        for ample in [Tier::Hbf, Tier::Hbm] {
            let scarce = ample.other();
            let own = free[scarce].min(members[scarce]);
            let is_whole = own == members[scarce] || (own == 0 && self.memory.falls_back);
            if free[ample] >= all && is_whole {
                let served = PerTier(if ample == Tier::Hbf { [own, all - own] } else { [all - own, own] });
                self.take_free(gpu, served);
                self.memory.fallbacks += u64::from(members[scarce] - own);
                self.end_uniform_round(gpu, first + ample as u32, ample, step);
                let tier = if own == 0 { ample } else { scarce };
                self.end_uniform_round(gpu, first + scarce as u32, tier, step);
                return Ok(());
            }
        }
        if members[Tier::Hbm] <= free[Tier::Hbm] && members[Tier::Hbf] <= free[Tier::Hbf] {
            self.take_free(gpu, members);
            self.end_uniform_round(gpu, first, Tier::Hbm, step);
            self.end_uniform_round(gpu, first + 1, Tier::Hbf, step);
            return Ok(());
        }
        self.draw_in_runs(gpu, first, members, step)
    }

    /// Draws a round that one list alone may not serve.
    fn draw_in_runs(
        &mut self,
        gpu: u16,
        first: u32,
        members: PerTier<u32>,
        step: u64,
    ) -> Result<(), Starved> {
        let all = members[Tier::Hbm] + members[Tier::Hbf];
        self.open_draws(gpu, first);
        if members[Tier::Hbm] == 0 || members[Tier::Hbf] == 0 {
            let target = if members[Tier::Hbm] > 0 { Tier::Hbm } else { Tier::Hbf };
            if let Some(run) = self.memory.draw_run(gpu, target, all) {
                self.memory.gpus[usize::from(gpu)].in_flight[run.tier] += run.blocks;
                if run.blocks == all {
                    self.end_uniform_round(gpu, first + target as u32, run.tier, step);
                    return Ok(());
                }
                self.appends.draw.runs.push(run);
                self.appends.draw.position = index(run.blocks);
            }
        }
        self.order_draws();
        self.resume_draws(step)
    }

    /// Takes free blocks for running requests.
    pub(super) fn take_free(&mut self, gpu: u16, blocks: PerTier<u32>) {
        for tier in Tier::ALL {
            self.memory.take_in_flight(gpu, tier, blocks[tier]);
        }
    }

    fn open_draws(&mut self, gpu: u16, first_cohort: u32) {
        let draw = &mut self.appends.draw;
        draw.gpu = gpu;
        draw.first_cohort = first_cohort;
        draw.position = 0;
        draw.was_starved = false;
        draw.runs.clear();
    }

    /// Puts the members of both cohorts in the order in which they draw.
    fn order_draws(&mut self) {
        let mut draw = std::mem::take(&mut self.appends.draw);
        let cohorts =
            [draw.first_cohort, draw.first_cohort + 1].map(|cohort| &self.appends.cohorts[index(cohort)]);
        draw.order.clear();
        draw.order.extend_from_slice(&cohorts[0].members);
        draw.order.extend_from_slice(&cohorts[1].members);
        draw.mixed_targets = cohorts.iter().all(|cohort| !cohort.members.is_empty());
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
            let slot = draw.order[draw.position];
            let target = self.appends.append(slot).cohort & 1;
            let rest = &draw.order[draw.position..];
            let same = if draw.mixed_targets {
                rest.iter().take_while(|&&other| self.appends.append(other).cohort & 1 == target).count()
            } else {
                rest.len()
            };
            let tier = Tier::ALL[index(target)];
            let Some(run) = self.memory.draw_run(draw.gpu, tier, narrow(same)) else {
                draw.was_starved = true;
                return Err(Starved { slot });
            };
            self.memory.gpus[usize::from(draw.gpu)].in_flight[run.tier] += run.blocks;
            draw.position += index(run.blocks);
            draw.runs.push(run);
        }
        Ok(())
    }

    /// Every member of a cohort got a block of `tier`.
    #[inline]
    fn end_uniform_round(&mut self, gpu: u16, cohort_index: u32, tier: Tier, step: u64) {
        let cohort = &mut self.appends.cohorts[index(cohort_index)];
        if cohort.exceptional.is_empty() && cohort.regime == tier {
            // No round counts for a cohort without members, of which nobody asks.
            cohort.end_rounds(1);
        } else {
            self.change_round(gpu, cohort_index, tier, step);
        }
    }

    /// Every member got a block of `tier`, which was not the tier of everybody's last.
    fn change_round(&mut self, gpu: u16, cohort_index: u32, tier: Tier, step: u64) {
        let cohort = &self.appends.cohorts[index(cohort_index)];
        if cohort.members.is_empty() {
            return;
        }
        if !cohort.exceptional.is_empty() {
            self.revert_exceptional(gpu, cohort_index, step);
        }
        let Cohort { regime: before, regular, .. } = self.appends.cohorts[index(cohort_index)];
        if before != tier {
            self.appends.change_regime(cohort_index, tier);
            for class in SegmentClass::ALL {
                let members = regular[class as usize].cast_signed();
                if members > 0 {
                    self.change_writers(gpu, class, before, step, -members);
                    self.change_writers(gpu, class, tier, step, members);
                }
            }
        }
        self.appends.count_irregular(gpu, cohort_index);
        self.appends.cohorts[index(cohort_index)].end_rounds(1);
    }

    /// Members of the cohorts got blocks as the runs of the open draw say.
    fn end_mixed_round(&mut self, step: u64) {
        let draw = std::mem::take(&mut self.appends.draw);
        for cohort_index in [draw.first_cohort, draw.first_cohort + 1] {
            if self.appends.cohorts[index(cohort_index)].members.is_empty() {
                continue;
            }
            let mut tiers = PerTier([false, false]);
            self.for_runs_of(&draw, cohort_index, |_, _, tier| tiers[tier] = true);
            match tiers.0 {
                [true, false] => self.end_uniform_round(draw.gpu, cohort_index, Tier::Hbm, step),
                [_, true] if !tiers[Tier::Hbm] => {
                    self.end_uniform_round(draw.gpu, cohort_index, Tier::Hbf, step);
                }
                _ => {
                    self.revert_exceptional(draw.gpu, cohort_index, step);
                    let regime = self.appends.cohorts[index(cohort_index)].regime;
                    let odd = regime.other();
                    self.for_runs_of(&draw, cohort_index, |placement, slots, tier| {
                        if tier == odd {
                            for &slot in slots {
                                placement.make_exception(draw.gpu, slot, odd, step);
                            }
                        }
                    });
                    self.appends.count_irregular(draw.gpu, cohort_index);
                    self.appends.cohorts[index(cohort_index)].end_rounds(1);
                }
            }
        }
        self.appends.draw = draw;
    }

    /// Calls `visit` with the members of a cohort in a finished draw, run by run.
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
            if self.appends.append(slots[0]).cohort == cohort_index {
                visit(self, slots, run.tier);
            }
            position += slots.len();
        }
    }
}
