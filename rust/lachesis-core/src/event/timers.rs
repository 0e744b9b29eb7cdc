//! Timers, in the total order (time, draw, request).
//!
//! Prefills all take the same time, so their ends come in the order of their starts: they wait in a queue, and only delays of
//! varying length pay for a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::units::Picos;

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKind {
    /// A request becomes ready.
    Ready,
    /// A request's prefill ends.
    PrefillEnd,
}

/// A timer of a request. The order of the fields is the order of events; no two timers share time, draw and request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// When.
    pub time: Picos,
    /// The draw of its session.
    pub draw: u64,
    /// The request in the session.
    pub request: u32,
    /// What for.
    pub kind: TimerKind,
    /// Where the session's state lies.
    pub instance: u32,
}

/// All pending timers.
#[derive(Debug, Default)]
pub struct Timers {
    delays: BinaryHeap<Reverse<Timer>>,
    prefills: VecDeque<Timer>,
}

impl Timers {
    /// Sets a timer.
    pub fn set(&mut self, timer: Timer) {
        match timer.kind {
            TimerKind::Ready => self.delays.push(Reverse(timer)),
            TimerKind::PrefillEnd => {
                // Starts come in time order; only within one instant may a smaller draw come later.
                let mut place = self.prefills.len();
                while place > 0 && self.prefills[place - 1] > timer {
                    place -= 1;
                }
                self.prefills.insert(place, timer);
            }
        }
    }

    /// The time of the next timer.
    #[must_use]
    pub fn next_time(&self) -> Option<Picos> {
        let delay = self.delays.peek().map(|Reverse(timer)| timer.time);
        let prefill = self.prefills.front().map(|timer| timer.time);
        match (delay, prefill) {
            (Some(delay), Some(prefill)) => Some(delay.min(prefill)),
            (one, other) => one.or(other),
        }
    }

    /// Takes the next timer if its time is `until` or earlier.
    pub fn take_until(&mut self, until: Picos) -> Option<Timer> {
        let delay = self.delays.peek().map(|Reverse(timer)| *timer);
        let prefill = self.prefills.front().copied();
        let from_delays = match (delay, prefill) {
            (Some(delay), Some(prefill)) => delay < prefill,
            (delay, _) => delay.is_some(),
        };
        let next = if from_delays { delay } else { prefill }?;
        if next.time > until {
            return None;
        }
        if from_delays {
            self.delays.pop();
        } else {
            self.prefills.pop_front();
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Timers come out in the total order, whatever the order they were set in.
        #[test]
        fn timers_come_in_total_order(script in prop::collection::vec((0_i64..20, 0_u64..5, 0_u32..5), 1..60)) {
            let mut timers = Timers::default();
            let mut expected = Vec::new();
            let mut seen = std::collections::BTreeSet::new();
            let mut starts = Vec::new();
            for (time, draw, request) in script {
                if seen.insert((time, draw, request)) {
                    let kind = if (draw + u64::from(request)) % 2 == 0 { TimerKind::Ready } else { TimerKind::PrefillEnd };
                    let timer = Timer { time, draw, request, kind, instance: 0 };
                    expected.push(timer);
                    starts.push(timer);
                }
            }
            starts.sort_by_key(|timer| timer.time);
            for timer in starts {
                timers.set(timer);
            }
            expected.sort();
            let mut out = Vec::new();
            while let Some(time) = timers.next_time() {
                prop_assert!(timers.take_until(time - 1).is_none());
                out.push(timers.take_until(time).unwrap());
            }
            prop_assert_eq!(out, expected);
        }
    }
}
