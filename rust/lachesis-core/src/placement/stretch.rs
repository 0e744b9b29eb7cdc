//! Stretches: steps that are taken at once on a GPU, because every draw in them is served by the tier that its cohort has already.

use crate::kv::Extent;
use crate::placement::Placement;
use crate::placement::append::Appends;
use crate::placement::cohort::Cohort;
use crate::units::{PerTier, Tier, index};

/// Steps that pass before blocks are drawn: Σ k and Σ k(k − 1)/2 over the blocks, k steps before each, from which the time before they
/// are drawn follows where the time of steps grows linearly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Σ k.
    pub steps: u64,
    /// Σ k(k − 1)/2.
    pub pairs: u64,
}

impl Waits {
    /// Adds `blocks` blocks a round, in rounds after k = a, a + d, … steps, `rounds` of them.
    #[inline]
    pub fn add(&mut self, blocks: u64, a: u64, rounds: u64, d: u64) {
        if rounds == 1 {
            self.steps += blocks * a;
            self.pairs += blocks * (a * (a - 1) / 2);
            return;
        }
        let n = rounds;
        let pairs = n * n.saturating_sub(1) / 2;
        let sum = n * a + d * pairs;
        let squares = n * a * a + 2 * a * d * pairs + d * d * (pairs * (2 * n).saturating_sub(1) / 3);
        self.steps += blocks * sum;
        self.pairs += blocks * ((squares - sum) / 2);
    }
}

impl Placement {
    /// The most steps that may be taken at once on a GPU because every draw after the first step's would be served by the tier
    /// that already is its cohort's regime; at most `most`, at least 1. The second of them is `second`.
    #[must_use]
    #[inline]
    pub fn uniform_steps(&mut self, gpu: u16, second: u64, most: u64) -> u64 {
        if let Some(source) = self.lone_source(gpu) {
            return self.steps_of_source(gpu, second, most, source);
        }
        let on_gpu = &self.appends.gpus[usize::from(gpu)];
        if on_gpu.irregular_cohorts > 0 {
            return 1;
        }
        let free = self.memory.gpus[usize::from(gpu)].free;
        // Every member draws once in a cycle.
        let cycles = most.div_ceil(u64::from(self.appends.phases));
        let serves =
            |tier: Tier| u64::from(free[tier]) >= u64::from(on_gpu.members[tier]).saturating_mul(cycles);
        if serves(Tier::Hbm) && serves(Tier::Hbf) {
            return most.max(1);
        }
        let cycles = |tier| free[tier].checked_div(on_gpu.members[tier]).map_or(most, u64::from);
        let whole_cycles = cycles(Tier::Hbm).min(cycles(Tier::Hbf));
        whole_cycles.saturating_mul(u64::from(self.appends.phases)).clamp(1, most.max(1))
    }

    /// Where a list that is drawn from is empty and the policy falls back, what serves all draws, whatever their target: the other list, or the
    /// run that is reclaimed next. No blocks if there is neither.
    #[inline]
    fn lone_source(&mut self, gpu: u16) -> Option<Extent> {
        let members = self.appends.gpus[usize::from(gpu)].members;
        let free = self.memory.gpus[usize::from(gpu)].free;
        let lacks = |tier: Tier| free[tier] == 0 && members[tier] > 0;
        if !self.memory.falls_back || !(lacks(Tier::Hbm) || lacks(Tier::Hbf)) {
            return None;
        }
        let listed = Tier::ALL.into_iter().find(|&tier| free[tier] > 0);
        let source = match listed {
            Some(tier) => Some(Extent { tier, blocks: free[tier] }),
            None => self.memory.next_reclaimed(gpu),
        };
        Some(source.unwrap_or(Extent { tier: Tier::Hbm, blocks: 0 }))
    }

    /// `uniform_steps` where one source serves all draws.
    fn steps_of_source(&mut self, gpu: u16, second: u64, most: u64, source: Extent) -> u64 {
        let now = self.appends.remainder(second);
        let Appends { gpus, cohorts, phases, .. } = &self.appends;
        let on_gpu = &gpus[usize::from(gpu)];
        let mut steps = most.max(1);
        for &place in &on_gpu.occupied {
            let cohort = &cohorts[index(place)];
            if !cohort.is_all(source.tier) {
                // Its next round changes its regime, and so what a step costs.
                steps = steps.min(1 + u64::from(cohort.ahead(now, *phases)));
            }
        }
        let members = u64::from(on_gpu.members[Tier::Hbm]) + u64::from(on_gpu.members[Tier::Hbf]);
        let (blocks, phases) = (u64::from(source.blocks), u64::from(*phases));
        if blocks < members * steps.div_ceil(phases) {
            // Rounds of a cohort in all steps but the first.
            let rounds = |cohort: &Cohort, steps: u64| {
                (steps - 1).saturating_sub(u64::from(cohort.ahead(now, self.appends.phases))).div_ceil(phases)
            };
            let drawn = |steps: u64| -> u64 {
                let cohorts = on_gpu.occupied.iter().map(|&place| &cohorts[index(place)]);
                cohorts.map(|cohort| rounds(cohort, steps) * u64::from(cohort.size)).sum()
            };
            steps = steps.min((blocks / members + 1) * phases);
            while steps > 1 && drawn(steps) > blocks {
                steps = steps.div_ceil(2);
            }
        }
        steps
    }

    /// Draws for `steps` steps from `step` on at once, and adds to `waits`, by tier, how many steps pass from the one before `step` to each
    /// draw of a free block.
    ///
    /// Contract: `steps` is at most what `uniform_steps` allows less the first.
    pub fn draw_for_steps(&mut self, gpu: u16, step: u64, steps: u64, waits: &mut PerTier<Waits>) {
        let lone = self.lone_source(gpu);
        let is_reclaimed = self.memory.gpus[usize::from(gpu)].free.0 == [0, 0];
        let now = self.appends.remainder(step);
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let Appends { gpus, cohorts, phases, .. } = &mut self.appends;
        let mut drawn = PerTier([0_u32; 2]);
        for &place in &gpus[usize::from(gpu)].occupied {
            let cohort = &mut cohorts[index(place)];
            // Steps s in [step, step + steps) with s ≡ phase (mod phases).
            let ahead = cohort.ahead(now, *phases);
            if ahead >= steps {
                continue;
            }
            let rounds = (steps - ahead).div_ceil(*phases);
            let target = Tier::ALL[index(place & 1)];
            let members = cohort.size;
            cohort.end_rounds(u64::from(rounds));
            drawn[target] += members * rounds;
            // A reclaimed block is in use before and after.
            if !is_reclaimed {
                let tier = lone.map_or(target, |source| source.tier);
                waits[tier].add(
                    u64::from(members),
                    u64::from(ahead) + 1,
                    u64::from(rounds),
                    u64::from(*phases),
                );
            }
        }
        let Some(source) = lone else {
            return self.take_free(gpu, drawn);
        };
        let all = drawn[Tier::Hbm] + drawn[Tier::Hbf];
        self.memory.fallbacks += u64::from(drawn[source.tier.other()]);
        if !is_reclaimed {
            self.memory.take_in_flight(gpu, source.tier, all);
        } else if all > 0 {
            let tier = self.memory.reclaim_in_flight(gpu, all);
            debug_assert_eq!(tier, Some(source.tier), "Invariant: one run serves a stretch");
        }
    }
}
