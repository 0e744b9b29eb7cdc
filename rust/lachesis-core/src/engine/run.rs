//! The loop over instants, and when it ends.

use crate::engine::{Engine, Landing};
use crate::error::{Error, Result};
use crate::result::{RequestTimes, Snapshot, Stop, Timeline, TimelineRow, Window};
use crate::scheduler::Load;
use crate::units::{PerTier, Picos, SegmentClass, Tier, narrow, picos_to_seconds};

/// How far a run is, told from time to time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Requests ended.
    pub requests: u64,
    /// Share of the run done, as far as that is known.
    pub share: f64,
}

/// What a run gives.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Counts over the whole run.
    pub whole: Snapshot,
    /// Figures over the measured window.
    pub window: Window,
    /// Share of time that landing suffixes would keep the flash busy.
    pub landing_duty: f64,
    /// Sessions drawn, per session of the workload.
    pub repeats: f64,
    /// Times of every request, if asked for.
    pub requests: Vec<RequestTimes>,
    /// The run over time, if asked for.
    pub timeline: Vec<TimelineRow>,
    /// Free blocks of each GPU at the end.
    pub free_blocks: Vec<PerTier<u32>>,
    /// Live rows of the segment table at the end.
    pub live_segments: usize,
}

/// Instants between two calls of the observer.
const INSTANTS_PER_CALL: u32 = 8192;

impl Engine<'_> {
    /// Runs to the end. `observe` is called from time to time and ends the run early by returning `false`.
    ///
    /// # Errors
    /// `Error::Interrupted` if the observer says so, `Error::SessionTooLarge` and `Error::ClockRange` if the run cannot go on.
    pub fn run(mut self, stop: Stop, observe: &mut dyn FnMut(Progress) -> bool) -> Result<Outcome> {
        let pace = match self.config.load {
            Load::Closed { ramp, .. } => ramp,
            // An open load has no turnover: how many are live is what it tells.
            Load::Poisson { .. } | Load::Recorded => 0,
        };
        self.recorder.begin(stop, pace);
        let mut instants = 0_u32;
        let horizon = stop.horizon();
        self.fire(0)?;
        loop {
            self.begin_step_boundary()?;
            if self.timeline.is_some() {
                self.observe_time();
            }
            if self.journal.is_some() {
                self.hand_over()?;
            }
            instants += 1;
            if instants.is_multiple_of(INSTANTS_PER_CALL) && !observe(self.progress(stop)) {
                return Err(Error::Interrupted);
            }
            if self.is_over(stop) {
                break;
            }
            if self.scheduler.running == 0 {
                let Some(next) = self.next_event() else { break };
                if next > horizon {
                    self.move_clock(horizon);
                    self.is_over(stop);
                    break;
                }
                self.move_clock(next);
                self.fire(next)?;
                continue;
            }
            let until = self.next_event().map_or(horizon, |next| next.min(horizon));
            let (end, steps) = self.start_steps(until)?;
            self.tell_step(end);
            while let Some(next) = self.next_event().filter(|&next| next < end) {
                self.move_clock(next);
                self.fire(next)?;
            }
            self.recorder.steps_started(steps);
            self.move_clock(end);
            self.recorder.steps_ended();
            self.end_steps(steps);
            self.finish()?;
            self.fire(end)?;
        }
        self.tell_over()?;
        Ok(self.outcome())
    }

    /// Takes a row of the timeline where one is due.
    #[cold]
    fn observe_time(&mut self) {
        let Some(mut timeline) = self.timeline.take() else { return };
        if timeline.is_due(self.now) {
            let snapshot = self.snapshot();
            let mut written = snapshot.materialised;
            for class in SegmentClass::ALL {
                for tier in Tier::ALL {
                    written[(class, tier)] += snapshot.rematerialised[(class, tier)];
                }
            }
            timeline.add(TimelineRow {
                time: self.now,
                steps: snapshot.steps,
                requests: snapshot.requests,
                sessions: self.instances.live,
                running: self.scheduler.running,
                waiting: self.gpus().map(|gpu| narrow(self.scheduler.waiting(gpu))).sum(),
                used_blocks: self.placement.memory.node_used(),
                held_blocks: self.placement.memory.held,
                written,
            });
        }
        self.timeline = Some(timeline);
    }

    /// Phases 6 and 7.
    fn begin_step_boundary(&mut self) -> Result<()> {
        if self.config.landing == Landing::Sync {
            for load in &mut self.loads {
                load.landing = 0;
            }
        }
        self.admit()?;
        // A GPU where a draw fails keeps at least one running request: the list of the busy stays as it is.
        for place in 0..self.scheduler.busy().len() {
            let gpu = self.scheduler.busy()[place];
            self.draw_blocks(gpu)?;
            self.tell_draws(gpu);
        }
        if self.config.check_blocks {
            self.placement.check()?;
        }
        Ok(())
    }

    fn next_event(&self) -> Option<Picos> {
        match (self.timers.next_time(), self.arrivals.next_time()) {
            (Some(timer), Some(arrival)) => Some(timer.min(arrival)),
            (one, other) => one.or(other),
        }
    }

    fn move_clock(&mut self, time: Picos) {
        debug_assert!(time >= self.now, "Invariant: the clock never runs backwards");
        self.recorder.time_passed(time - self.now, self.placement.memory.node_used());
        if self.journal.is_some() {
            self.tell_time(time);
        }
        self.now = time;
    }

    fn is_over(&mut self, stop: Stop) -> bool {
        if stop == Stop::Drained {
            return false;
        }
        if !self.recorder.batch_is_due(self.now) {
            return false;
        }
        let snapshot = self.snapshot();
        // Where blocks outlive their boundary, nothing has settled before memory has filled for the first time.
        let filled = !self.placement.keeps_past_boundaries() || self.placement.memory.reclaimed > 0;
        self.recorder.end_batch(snapshot, filled)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            time: self.now,
            steps: self.step,
            materialised: self.placement.ledger.materialised(self.step),
            rematerialised: *self.placement.ledger.rematerialised(),
            fallbacks: self.placement.memory.fallbacks,
            reclaimed_blocks: self.placement.memory.reclaimed,
            ..self.recorder.counts()
        }
    }

    fn progress(&self, stop: Stop) -> Progress {
        Progress {
            simulated_s: picos_to_seconds(self.now),
            requests: self.recorder.counts().requests,
            share: self.recorder.share_done(stop, self.now),
        }
    }

    fn outcome(mut self) -> Outcome {
        let whole = self.snapshot();
        let window = self.recorder.window(whole);
        let landing_duty = self.landing_duty(window.counts.landed_tokens, window.counts.time);
        Outcome {
            whole,
            landing_duty,
            repeats: self.arrivals.repeats(),
            requests: self.recorder.take_requests(),
            timeline: self.timeline.map_or_else(Vec::new, Timeline::into_rows),
            free_blocks: self.placement.memory.gpus.iter().map(|gpu| gpu.free).collect(),
            live_segments: self.placement.memory.live_segments(),
            window,
        }
    }
}
