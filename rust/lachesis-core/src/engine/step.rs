//! The decode step: its price, and any number of steps at once where nothing can happen in between.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::event::StepEventKind;
use crate::hw::{GpuLoad, WindowKind};
use crate::units::{NEVER, Picos, Tier, index};

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
        let k = i128::from(steps);
        i128::from(self.first) * k + i128::from(self.growth) * (k * (k - 1) / 2)
    }

    /// The sum of the times of the first k steps for k = a, a + d, …, `count` of them:
    /// first·Σk + growth·(Σk² − Σk)/2.
    fn summed_times(&self, a: u64, count: u64, d: u64) -> u128 {
        let (a, n, d) = (i128::from(a), i128::from(count), i128::from(d));
        let pairs = n * (n - 1) / 2;
        let sum = n * a + d * pairs;
        let squares = n * a * a + 2 * a * d * pairs + d * d * ((n - 1) * n * (2 * n - 1) / 6);
        (i128::from(self.first) * sum + i128::from(self.growth) * (squares - sum) / 2).cast_unsigned()
    }

    /// The fewest steps whose time reaches `until`, at most all of them.
    fn steps_to(&self, until: i128) -> u64 {
        let (mut low, mut high) = (1, self.steps);
        while low < high {
            let middle = low.midpoint(high);
            if self.time(middle) >= until { high = middle } else { low = middle + 1 }
        }
        low
    }
}

impl Engine<'_> {
    /// Phase 8: starts one step, or as many as pass before anything can happen, and returns when the last one ends and how many there are.
    /// `until` is the time of the next timer or arrival, or the horizon.
    pub(super) fn start_steps(&mut self, until: Picos) -> Result<(Picos, u64)> {
        for (gpu, load) in self.loads.iter_mut().enumerate() {
            load.flash_writers = self.placement.appends.flash_writers(gpu);
        }
        let single = self.price(1);
        let mut steps = 1;
        let ahead = self.wheel.steps_to_next(u64::MAX);
        let pays_landing = self.loads.iter().any(|load| load.landing > 0);
        let one_by_one = std::mem::take(&mut self.made_room)
            || !self.first_steps.is_empty()
            || pays_landing
            || self.tells_steps();
        if ahead > 1 && !one_by_one && self.config.cost.is_linear() {
            let free = i128::from(until) - i128::from(self.now);
            if free > i128::from(single.first) {
                let mut stretch = self.price(ahead);
                for gpu in self.gpus() {
                    if self.scheduler.count(gpu) > 0 {
                        stretch.steps = self.placement.uniform_steps(gpu, stretch.steps);
                    }
                }
                steps = stretch.steps_to(free);
                return self.take_steps(stretch, steps);
            }
        }
        self.take_steps(single, steps)
    }

    fn take_steps(&mut self, stretch: Stretch, steps: u64) -> Result<(Picos, u64)> {
        let time = i128::from(self.now) + stretch.time(steps);
        let end = Picos::try_from(time).ok().filter(|&end| end < NEVER).ok_or(Error::ClockRange)?;
        // The first step's blocks have been drawn in phase 7; those of the k-th are drawn after k steps.
        if steps > 1 {
            let draw_times =
                |ahead: u64, rounds: u64, stride: u64| stretch.summed_times(ahead + 1, rounds, stride);
            for gpu in self.gpus() {
                if self.scheduler.count(gpu) > 0 {
                    let undrawn = self.placement.draw_for_steps(gpu, self.step + 1, steps - 1, &draw_times);
                    self.recorder.not_yet_in_use(undrawn);
                }
            }
        }
        Ok((end, steps))
    }

    /// The price of the coming steps, as long as the slowest GPU stays the slowest; at most `most` of them.
    fn price(&self, most: u64) -> Stretch {
        let cost = &self.config.cost;
        let line = |load: &GpuLoad| (cost.local(load), cost.growth(load));
        // Of the slowest GPUs the one that grows fastest is the slowest from the second step on.
        let (first, growth) = self.loads.iter().map(line).max().unwrap_or((0, 0));
        let mut steps = most;
        if most > 1 {
            for (other, faster) in self.loads.iter().filter(|load| load.batch > 0).map(line) {
                if faster > growth {
                    // The other line passes ours after (first − other)/(faster − growth) steps.
                    let equal = (first - other) / (faster - growth);
                    steps = steps.min(u64::try_from(equal).unwrap_or(0) + 1);
                }
            }
        }
        let common = cost.common(self.scheduler.running);
        Stretch { first: first + common, growth, steps: steps.max(1) }
    }

    /// Phase 1: `steps` steps have ended now.
    pub(super) fn end_steps(&mut self, steps: u64) {
        self.step += steps;
        for load in &mut self.loads {
            load.context += u64::from(load.batch) * steps;
            load.window += u64::from(load.window_growers) * steps;
            load.by_tier[Tier::Hbf as usize] += u64::from(load.flash_writers) * steps;
            load.by_tier[Tier::Hbm as usize] += u64::from(load.batch - load.flash_writers) * steps;
        }
        for (slot, admission) in self.first_steps.drain(..) {
            let running = self.scheduler.running(slot);
            if running.admission == admission {
                let state =
                    &mut self.instances.get_mut(running.who.instance).requests[index(running.who.request)];
                if state.first_token == 0 {
                    state.first_token = self.now;
                }
            }
        }
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(self.step, &mut due);
        // Bounds first: a request may end on one, and leaves with the reads that it has after it.
        for event in due.iter().filter(|event| event.kind == StepEventKind::WindowBound) {
            if self.scheduler.running(event.slot).admission == event.admission {
                self.pass_window_bound(event.slot);
            }
        }
        for event in due.drain(..).filter(|event| event.kind == StepEventKind::End) {
            let running = self.scheduler.running(event.slot);
            if running.admission == event.admission {
                self.finished.push(running.who);
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
            until in 1_i128..1_000_000_000_000,
        ) {
            let stretch = Stretch { first, growth, steps };
            let mut time = 0;
            let mut reached = None;
            for step in 0..steps {
                time += i128::from(first) + i128::from(growth) * i128::from(step);
                prop_assert_eq!(stretch.time(step + 1), time);
                if reached.is_none() && time >= until {
                    reached = Some(step + 1);
                }
            }
            prop_assert_eq!(stretch.steps_to(until), reached.unwrap_or(steps));
            let every_third: i128 = (0..steps).map(|round| stretch.time(2 + 3 * round)).sum();
            prop_assert_eq!(stretch.summed_times(2, steps, 3).cast_signed(), every_third);
        }
    }
}
