//! Timers, in the total order (time, draw, request).
//!
//! Prefills all take the same time, so their ends come in the order of their starts: they wait in a queue, and only delays of
//! varying length pay for a heap.

use std::collections::VecDeque;

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

impl Timer {
    /// Whether it comes before another: one comparison but for ties.
    #[inline]
    fn precedes(&self, other: &Self) -> bool {
        if self.time == other.time {
            (self.draw, self.request) < (other.draw, other.request)
        } else {
            self.time < other.time
        }
    }
}

/// All pending timers.
#[derive(Debug, Default)]
pub struct Timers {
    delays: Heap,
    prefills: VecDeque<Timer>,
}

impl Timers {
    /// Sets a timer.
    pub fn set(&mut self, timer: Timer) {
        match timer.kind {
            TimerKind::Ready => self.delays.push(timer),
            TimerKind::PrefillEnd => {
                // Starts come in time order; only within one instant may a smaller draw come later.
                let mut place = self.prefills.len();
                while place > 0 && timer.precedes(&self.prefills[place - 1]) {
                    place -= 1;
                }
                if place == self.prefills.len() {
                    self.prefills.push_back(timer);
                } else {
                    self.prefills.insert(place, timer);
                }
            }
        }
    }

    /// The time of the next timer.
    #[must_use]
    #[inline]
    pub fn next_time(&self) -> Option<Picos> {
        let delay = self.delays.first().map(|timer| timer.time);
        let prefill = self.prefills.front().map(|timer| timer.time);
        match (delay, prefill) {
            (Some(delay), Some(prefill)) => Some(delay.min(prefill)),
            (one, other) => one.or(other),
        }
    }

    /// Takes the next timer if its time is `until` or earlier.
    #[inline]
    pub fn take_until(&mut self, until: Picos) -> Option<Timer> {
        let is_due = |timer: &&Timer| timer.time <= until;
        let delay = self.delays.first().filter(is_due);
        let prefill = self.prefills.front().filter(is_due);
        match (delay, prefill) {
            (None, None) => None,
            (Some(delay), Some(prefill)) if delay.precedes(prefill) => self.delays.pop(),
            (Some(_), None) => self.delays.pop(),
            (_, Some(_)) => self.prefills.pop_front(),
        }
    }
}

/// A heap with four children a node: half as deep as one with two, and the children lie side by side.
#[derive(Debug, Default)]
struct Heap(Vec<Timer>);

impl Heap {
    const CHILDREN: usize = 4;

    #[inline]
    fn first(&self) -> Option<&Timer> {
        self.0.first()
    }

    fn push(&mut self, timer: Timer) {
        let mut place = self.0.len();
        self.0.push(timer);
        while place > 0 {
            let parent = (place - 1) / Self::CHILDREN;
            if !timer.precedes(&self.0[parent]) {
                break;
            }
            self.0[place] = self.0[parent];
            place = parent;
        }
        self.0[place] = timer;
    }

    fn pop(&mut self) -> Option<Timer> {
        let first = *self.0.first()?;
        let last = self.0.pop()?;
        let heap = self.0.as_mut_slice();
        if heap.is_empty() {
            return Some(first);
        }
        let mut place = 0;
        loop {
            let children = place * Self::CHILDREN + 1;
            let end = heap.len().min(children + Self::CHILDREN);
            let mut least = children;
            for child in children + 1..end {
                if heap[child].precedes(&heap[least]) {
                    least = child;
                }
            }
            if children >= heap.len() || !heap[least].precedes(&last) {
                break;
            }
            heap[place] = heap[least];
            place = least;
        }
        heap[place] = last;
        Some(first)
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
