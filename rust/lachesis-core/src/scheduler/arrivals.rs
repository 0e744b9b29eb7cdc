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

/// A session that is to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Start {
    time: Picos,
    draw: u64,
    session: u32,
}

/// The stream of arrivals.
#[derive(Debug)]
pub struct Arrivals {
    load: Load,
    seed: u64,
    /// A fixed list of draws, after which nothing arrives; else the stream is without end.
    fixed: Option<Vec<u32>>,
    /// Sessions of the workload.
    sessions: usize,
    /// The seeded order of draws, where it is asked for.
    order: Vec<u32>,
    epoch: u64,
    /// Draws that have a start.
    drawn: u64,
    /// Starts whose time is known, ascending.
    scheduled: VecDeque<Start>,
    last_poisson: Picos,
}

impl Arrivals {
    /// Arrivals for a workload; `fixed` replaces the seeded order by a list of sessions and ends with it.
    #[must_use]
    pub fn new(workload: &Workload, load: Load, seed: u64, fixed: Option<Vec<u32>>) -> Self {
        let fixed = if load == Load::Recorded { fixed.or_else(|| Some(workload.by_start())) } else { fixed };
        let mut arrivals = Self {
            load,
            seed,
            sessions: workload.len(),
            order: if fixed.is_none() { workload.draw_order(seed, 0) } else { Vec::new() },
            fixed,
            epoch: 0,
            drawn: 0,
            scheduled: VecDeque::new(),
            last_poisson: 0,
        };
        match load {
            Load::Closed { sessions, ramp } => {
                for slot in 0..sessions {
                    let start = i128::from(slot) * i128::from(ramp) / i128::from(sessions.max(1));
                    arrivals.schedule(Picos::try_from(start).unwrap_or(ramp), workload);
                }
            }
            Load::Poisson { .. } => arrivals.schedule_poisson(workload),
            Load::Recorded => {
                let recorded = arrivals.fixed.clone().unwrap_or_default();
                for session in recorded {
                    let start = workload.sessions[index(session)].start;
                    arrivals.schedule(if start == NEVER { 0 } else { start }, workload);
                }
            }
        }
        arrivals
    }

    /// Gives the next draw a start, if there is a next draw.
    fn schedule(&mut self, time: Picos, workload: &Workload) {
        let draw = self.drawn;
        let place = usize::try_from(draw).unwrap_or(usize::MAX);
        let session = if let Some(fixed) = &self.fixed {
            let Some(&session) = fixed.get(place) else { return };
            session
        } else {
            let count = self.order.len() as u64;
            if draw / count != self.epoch {
                self.epoch = draw / count;
                self.order = workload.draw_order(self.seed, self.epoch);
            }
            self.order[usize::try_from(draw % count).unwrap_or(0)]
        };
        self.drawn += 1;
        let start = Start { time, draw, session };
        if self.scheduled.back().is_none_or(|last| *last < start) {
            self.scheduled.push_back(start);
        } else {
            let place = self.scheduled.partition_point(|present| *present < start);
            self.scheduled.insert(place, start);
        }
    }

    fn schedule_poisson(&mut self, workload: &Workload) {
        if let Load::Poisson { sessions_per_s } = self.load {
            let gap = exponential(self.seed, Stream::Arrival, [self.drawn, 0, 0]) / sessions_per_s;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "rates are checked to keep gaps far below the clock's range"
            )]
            let gap = (gap * PICOS_PER_SECOND).round() as Picos;
            self.last_poisson = self.last_poisson.saturating_add(gap);
            self.schedule(self.last_poisson, workload);
        }
    }

    /// When the next session starts, if that is known.
    #[must_use]
    #[inline]
    pub fn next_time(&self) -> Option<Picos> {
        self.scheduled.front().map(|start| start.time)
    }

    /// In the closed loop an ended session is followed by the next draw at once.
    pub fn session_ended(&mut self, now: Picos, workload: &Workload) {
        if matches!(self.load, Load::Closed { .. }) {
            self.schedule(now, workload);
        }
    }

    /// Takes the arrival due at `now`: the number of the draw and the session.
    pub fn take(&mut self, now: Picos, workload: &Workload) -> Option<(u64, u32)> {
        if self.next_time()? > now {
            return None;
        }
        let start = self.scheduled.pop_front()?;
        self.schedule_poisson(workload);
        Some((start.draw, start.session))
    }

    /// How often each session of the workload has been drawn, on average.
    #[must_use]
    pub fn repeats(&self) -> f64 {
        to_f64(i128::from(self.drawn)) / to_f64(self.sessions as i128)
    }
}
