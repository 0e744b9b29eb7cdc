//! Which session starts when.

use std::collections::VecDeque;

use crate::rng::{Stream, exponential};
use crate::units::{NEVER, PICOS_PER_SECOND, Picos, index, to_f64};
use crate::workload::Workload;

/// How sessions arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// `sessions` live at any time; the first starts are staggered over `ramp`.
    Closed {
        /// Live sessions of the node.
        sessions: u32,
        /// Time over which the first ones start.
        ramp: Picos,
    },
    /// A Poisson process of `sessions_per_s`.
    Poisson {
        /// Mean rate of the node.
        sessions_per_s: f64,
    },
    /// As recorded, once.
    Recorded,
}

/// The stream of arrivals.
#[derive(Debug)]
pub struct Arrivals {
    load: Load,
    seed: u64,
    /// A fixed list of draws, after which nothing arrives; else without end.
    fixed: Option<Vec<u32>>,
    order: Vec<u32>,
    epoch: u64,
    drawn: u64,
    /// Starts whose time is known, ascending.
    scheduled: VecDeque<Picos>,
    last_poisson: Picos,
    recorded: Vec<u32>,
}

impl Arrivals {
    /// Arrivals for a workload; `fixed` replaces the seeded order by a list of sessions and ends with it.
    #[must_use]
    pub fn new(workload: &Workload, load: Load, seed: u64, fixed: Option<Vec<u32>>) -> Self {
        let mut arrivals = Self {
            load,
            seed,
            fixed,
            order: workload.draw_order(seed, 0),
            epoch: 0,
            drawn: 0,
            scheduled: VecDeque::new(),
            last_poisson: 0,
            recorded: Vec::new(),
        };
        match load {
            Load::Closed { sessions, ramp } => {
                let starts = (0..sessions).map(|slot| Picos::from(slot) * ramp / Picos::from(sessions.max(1)));
                arrivals.scheduled.extend(starts);
            }
            Load::Poisson { .. } => arrivals.schedule_poisson(),
            Load::Recorded => {
                let fixed = arrivals.fixed.take();
                arrivals.recorded = fixed.unwrap_or_else(|| workload.by_start());
                let starts = arrivals.recorded.iter().map(|&session| {
                    let start = workload.sessions[index(session)].start;
                    if start == NEVER { 0 } else { start }
                });
                arrivals.scheduled.extend(starts);
            }
        }
        arrivals
    }

    fn schedule_poisson(&mut self) {
        if let Load::Poisson { sessions_per_s } = self.load {
            let number = self.drawn + self.scheduled.len() as u64;
            let gap = exponential(self.seed, Stream::Arrival, [number, 0, 0]) / sessions_per_s;
            #[expect(clippy::cast_possible_truncation, reason = "rates are checked to keep gaps far below the clock's range")]
            let gap = (gap * PICOS_PER_SECOND).round() as Picos;
            self.last_poisson = self.last_poisson.saturating_add(gap);
            self.scheduled.push_back(self.last_poisson);
        }
    }

    /// When the next session starts, if that is known.
    #[must_use]
    pub fn next_time(&self) -> Option<Picos> {
        let exhausted = self.fixed.as_ref().is_some_and(|fixed| self.drawn >= fixed.len() as u64);
        if exhausted { None } else { self.scheduled.front().copied() }
    }

    /// In the closed loop an ended session is followed by the next at once.
    pub fn session_ended(&mut self, now: Picos) {
        if matches!(self.load, Load::Closed { .. }) {
            // Later first starts of the ramp may still lie ahead: this one goes before them.
            let place = self.scheduled.partition_point(|&start| start <= now);
            self.scheduled.insert(place, now);
        }
    }

    /// Takes the arrival due at `now`: the number of the draw and the session.
    pub fn take(&mut self, now: Picos, workload: &Workload) -> Option<(u64, u32)> {
        if self.next_time()? > now {
            return None;
        }
        self.scheduled.pop_front();
        let draw = self.drawn;
        self.drawn += 1;
        let session = if let Some(fixed) = &self.fixed {
            fixed[usize::try_from(draw).unwrap_or(usize::MAX)]
        } else if self.load == Load::Recorded {
            self.recorded[usize::try_from(draw).unwrap_or(usize::MAX)]
        } else {
            let count = self.order.len() as u64;
            if draw / count != self.epoch {
                self.epoch = draw / count;
                self.order = workload.draw_order(self.seed, self.epoch);
            }
            self.order[usize::try_from(draw % count).unwrap_or(0)]
        };
        self.schedule_poisson();
        Some((draw, session))
    }

    /// Sessions drawn so far.
    #[must_use]
    pub const fn drawn(&self) -> u64 {
        self.drawn
    }

    /// How often each session of the workload has been drawn, on average.
    #[must_use]
    pub fn repeats(&self) -> f64 {
        to_f64(i128::from(self.drawn)) / to_f64(self.order.len() as i128)
    }
}
