//! The decode step: its price, and any number of steps at once where nothing can happen in between.

use crate::engine::{Config, Engine, Finished, Landing};
use crate::error::{Error, Result};
use crate::event::StepEventKind;
use crate::hw::WindowKind;
use crate::placement::Waits;
use crate::units::{NEVER, PerTier, Picos, Tier};

/// What the next steps cost: the i-th (from 0) costs `first + growth·i`, for `steps` steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    first: Picos,
    growth: Picos,
    steps: u64,
}

impl Stretch {
    /// Time of the first `steps` steps: first·k + growth·k(k − 1)/2.
    fn time(&self, steps: u64) -> i128 {
        self.weighted(steps, steps * (steps - 1) / 2)
    }

    /// first·a + growth·b.
    fn weighted(&self, a: u64, b: u64) -> i128 {
        i128::from(self.first) * i128::from(a) + i128::from(self.growth) * i128::from(b)
    }

    /// The fewest steps whose time reaches `until`, at most all of them.
    fn steps_to(&self, until: Picos) -> u64 {
        let reaches = |steps: u64| self.time(steps) >= i128::from(until);
        if !reaches(self.steps - 1) {
            return self.steps;
        }
        let unsigned = |picos: Picos| picos.max(1).cast_unsigned();
        // Every step takes at least as long as the first, and k of these steps at most k times their mean.
        let mut high = self.steps.min(unsigned(until).div_ceil(unsigned(self.first)));
        let growth = self.growth.cast_unsigned().saturating_mul(high - 1).div_ceil(2);
        let mut low = unsigned(until).div_ceil(unsigned(self.first).saturating_add(growth)).min(high);
        while low < high {
            let middle = low.midpoint(high);
            if reaches(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }
}

impl Engine<'_> {
    /// Phase 8: starts one step, or as many as pass before anything can happen, and returns when the last one ends and how many there are.
    /// `until` is the time of the next timer or arrival, or the horizon.
    pub(super) fn start_steps(&mut self, until: Picos) -> Result<(Picos, u64)> {
        for &gpu in self.scheduler.busy() {
            let gpu = usize::from(gpu);
            self.loads[gpu].flash_writers = self.placement.appends.flash_writers(gpu);
        }
        let mut stretch = self.price();
        let pays_landing =
            self.config.landing == Landing::Sync && self.loads.iter().any(|load| load.landing > 0);
        let one_by_one = std::mem::take(&mut self.made_room) || pays_landing || self.tells_steps();
        let free = until - self.now;
        if !one_by_one && self.config.cost.is_linear() && free > stretch.first {
            stretch.steps = self.wheel.steps_to_next(u64::MAX);
            self.while_slowest(&mut stretch);
            for &gpu in self.scheduler.busy() {
                if stretch.steps > 1 {
                    stretch.steps = self.placement.uniform_steps(gpu, self.step + 1, stretch.steps);
                }
            }
            stretch.steps = stretch.steps_to(free);
        }
        self.take_steps(stretch)
    }

    fn take_steps(&mut self, stretch: Stretch) -> Result<(Picos, u64)> {
        let steps = stretch.steps;
        let time = i128::from(self.now) + stretch.time(steps);
        let end = Picos::try_from(time).ok().filter(|&end| end < NEVER).ok_or(Error::ClockRange)?;
        self.first_step_end = self.now + stretch.first;
        // The first step's blocks have been drawn in phase 7; those of the k-th are drawn after k steps.
        if steps > 1 {
            let mut waits = PerTier([Waits::default(); 2]);
            for &gpu in self.scheduler.busy() {
                self.placement.draw_for_steps(gpu, self.step + 1, steps - 1, &mut waits);
            }
            let undrawn = waits.0.map(|waits| stretch.weighted(waits.steps, waits.pairs).cast_unsigned());
            self.recorder.not_yet_in_use(PerTier(undrawn));
        }
        Ok((end, steps))
    }

    /// The price of the coming step and how it grows from step to step.
    fn price(&mut self) -> Stretch {
        let Self { config: Config { cost, .. }, loads, lines, scheduler, .. } = self;
        lines.clear();
        lines.extend(scheduler.busy().iter().map(|&gpu| {
            let load = &loads[usize::from(gpu)];
            (cost.local(load), cost.growth(load))
        }));
        // Of the slowest GPUs the one that grows fastest is the slowest from the second step on.
        let (first, growth) = lines.iter().copied().max().unwrap_or((0, 0));
        Stretch { first: first + cost.common(scheduler.running), growth, steps: 1 }
    }

    /// Cuts a stretch down to the steps for which the slowest GPU stays the slowest.
    fn while_slowest(&self, stretch: &mut Stretch) {
        let first = stretch.first - self.config.cost.common(self.scheduler.running);
        for &(local, growth) in &self.lines {
            let faster = growth - stretch.growth;
            if faster > 0 {
                // The other line passes ours after the lead over the difference in growth.
                let lead = first - local;
                if faster.saturating_mul((stretch.steps - 1).cast_signed()) > lead {
                    let equal = u64::try_from(lead / faster).unwrap_or(0);
                    stretch.steps = stretch.steps.min(equal + 1);
                }
            }
        }
    }

    /// Phase 1: `steps` steps have ended now.
    pub(super) fn end_steps(&mut self, steps: u64) {
        self.step += steps;
        let by_tier = self.config.cost.tier_reads.is_some();
        for &gpu in self.scheduler.busy() {
            let load = &mut self.loads[usize::from(gpu)];
            load.context += u64::from(load.batch) * steps;
            load.window += u64::from(load.window_growers) * steps;
            if by_tier {
                load.by_tier[Tier::Hbf as usize] += u64::from(load.flash_writers) * steps;
                load.by_tier[Tier::Hbm as usize] += u64::from(load.batch - load.flash_writers) * steps;
            }
        }
        for (slot, admission) in self.first_steps.drain(..) {
            let running = self.scheduler.running_mut(slot);
            if running.admission == admission && running.times.first_token == 0 {
                running.times.first_token = self.first_step_end;
            }
        }
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(self.step, &mut due);
        self.fetch_ends(&due);
        // Bounds first: a request may end on one, and leaves with the reads that it has after it.
        for event in due.iter().filter(|event| event.kind == StepEventKind::WindowBound) {
            if self.scheduler.running(event.slot).admission == event.admission {
                self.pass_window_bound(event.slot);
            }
        }
        for event in due.drain(..).filter(|event| event.kind == StepEventKind::End) {
            let running = self.scheduler.running(event.slot);
            if running.admission == event.admission {
                self.finished.push(Finished { who: running.who, times: running.times });
                self.stop_running(event.slot);
            }
        }
        self.due = due;
    }

    /// A running request's context has reached a bound of the window.
    fn pass_window_bound(&mut self, slot: u32) {
        let running = self.scheduler.running_mut(slot);
        let context = running.context + (self.step - running.start_step);
        let load = &mut self.loads[usize::from(running.gpu)];
        match self.config.cost.window_kind {
            WindowKind::Sliding => {
                running.window_grows = false;
                load.window_growers -= 1;
            }
            WindowKind::Chunked => {
                load.window -= u64::from(self.config.cost.window);
                self.watch_window(slot, context, u64::MAX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// k steps in one go cost what they cost one by one, and `steps_to` finds the first boundary at or after a time.
        #[test]
        fn a_stretch_is_the_sum_of_its_steps(
            first in 1_i64..1_000_000_000,
            growth in 0_i64..1_000_000,
            steps in 1_u64..500,
            until in 1_i64..1_000_000_000_000,
        ) {
            let stretch = Stretch { first, growth, steps };
            let mut time = 0;
            let mut reached = None;
            for step in 0..steps {
                time += i128::from(first) + i128::from(growth) * i128::from(step);
                prop_assert_eq!(stretch.time(step + 1), time);
                if reached.is_none() && time >= i128::from(until) {
                    reached = Some(step + 1);
                }
            }
            prop_assert_eq!(stretch.steps_to(until), reached.unwrap_or(steps));
            let mut waits = Waits::default();
            waits.add(7, 2, steps, 3);
            let every_third: i128 = (0..steps).map(|round| 7 * stretch.time(2 + 3 * round)).sum();
            prop_assert_eq!(stretch.weighted(waits.steps, waits.pairs), every_third);
        }
    }
}
