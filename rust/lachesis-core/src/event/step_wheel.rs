//! What is due after a number of decode steps: ends of requests and crossings of attention windows. A timing wheel, so
//! that scheduling and taking are O(1) whatever the number of running requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::{index, narrow};

const SLOTS: usize = 4096;
const WORDS: usize = SLOTS / 64;

/// What happens to a running request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepEventKind {
    /// Its last token has been emitted.
    End,
    /// Its context reaches the next bound of the attention window.
    WindowBound,
}

/// Something due at a step boundary. Stale if the request has been preempted meanwhile: the admission tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepEvent {
    /// Due when so many steps have been completed.
    pub step: u64,
    /// The admission of the running request.
    pub admission: u64,
    /// Its slot.
    pub slot: u32,
    /// What is due.
    pub kind: StepEventKind,
}

/// No event.
const NOBODY: u32 = u32::MAX;

/// An event in the slab, and the one scheduled before it for the same slot.
#[derive(Debug, Clone, Copy)]
struct Entry {
    event: StepEvent,
    before: u32,
}

/// The wheel: its slots are lists in one slab, so that it is as small as the events that wait.
#[derive(Debug)]
pub struct StepWheel {
    /// By slot: the event scheduled last.
    slots: Box<[u32]>,
    occupied: [u64; WORDS],
    entries: Vec<Entry>,
    vacant: u32,
    /// Events more than a turn of the wheel ahead.
    far: BinaryHeap<Reverse<StepEvent>>,
    now: u64,
}

impl Default for StepWheel {
    fn default() -> Self {
        Self {
            slots: vec![NOBODY; SLOTS].into_boxed_slice(),
            occupied: [0; WORDS],
            entries: Vec::new(),
            vacant: NOBODY,
            far: BinaryHeap::new(),
            now: 0,
        }
    }
}

/// The slot of a step: its remainder by the number of slots.
const fn slot_of(step: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "a remainder by 4096 fits any index")]
    let slot = (step % SLOTS as u64) as usize;
    slot
}

impl StepWheel {
    /// Schedules an event for a step that has not come yet.
    pub fn schedule(&mut self, event: StepEvent) {
        debug_assert!(event.step > self.now, "Invariant: step events lie ahead");
        if event.step - self.now < SLOTS as u64 {
            self.put(event);
        } else {
            self.far.push(Reverse(event));
        }
    }

    fn put(&mut self, event: StepEvent) {
        let slot = slot_of(event.step);
        let entry = Entry { event, before: self.slots[slot] };
        let place = self.vacant;
        if let Some(vacant) = self.entries.get_mut(index(place)) {
            self.vacant = std::mem::replace(vacant, entry).before;
            self.slots[slot] = place;
        } else {
            self.slots[slot] = narrow(self.entries.len());
            self.entries.push(entry);
        }
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// How many steps lie between now and the next event; at most `most`.
    #[must_use]
    pub fn steps_to_next(&self, most: u64) -> u64 {
        let far = self.far.peek().map_or(u64::MAX, |Reverse(event)| event.step - self.now);
        let most = most.min(far).min(SLOTS as u64 - 1);
        let mut ahead = 1;
        while ahead < most {
            let slot = slot_of(self.now + ahead);
            let rest = self.occupied[slot / 64] >> (slot % 64);
            if rest != 0 {
                return (ahead + u64::from(rest.trailing_zeros())).min(most);
            }
            ahead += 64 - (slot % 64) as u64;
        }
        most
    }

    /// Moves to `step` and hands over what is due there, in the order it was scheduled; nothing may be due in between.
    pub fn advance(&mut self, step: u64, due: &mut Vec<StepEvent>) {
        debug_assert!(
            step > self.now && step - self.now < SLOTS as u64,
            "Invariant: the wheel skips no event"
        );
        self.now = step;
        while self.far.peek().is_some_and(|Reverse(event)| event.step - step < SLOTS as u64) {
            if let Some(Reverse(event)) = self.far.pop() {
                self.put(event);
            }
        }
        let slot = slot_of(step);
        if self.occupied[slot / 64] & (1 << (slot % 64)) != 0 {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            let first = due.len();
            let mut place = std::mem::replace(&mut self.slots[slot], NOBODY);
            while let Some(entry) = self.entries.get_mut(index(place)) {
                due.push(entry.event);
                let before = std::mem::replace(&mut entry.before, self.vacant);
                self.vacant = std::mem::replace(&mut place, before);
            }
            due[first..].reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every event comes at its step, none is skipped, and `steps_to_next` never passes one.
        #[test]
        fn every_event_comes_at_its_step(
            delays in prop::collection::vec(1_u64..12_000, 1..80),
            most in 1_u64..5_000,
        ) {
            let mut wheel = StepWheel::default();
            let mut pending: Vec<u64> = Vec::new();
            let mut delays = delays.into_iter();
            let mut now = 0;
            loop {
                if let Some(delay) = delays.next() {
                    let step = now + delay;
                    wheel.schedule(StepEvent { step, admission: 0, slot: 0, kind: StepEventKind::End });
                    pending.push(step);
                }
                let Some(&next) = pending.iter().min() else { break };
                let ahead = wheel.steps_to_next(most);
                prop_assert!(ahead >= 1 && ahead <= most && now + ahead <= next);
                now += ahead;
                let mut due = Vec::new();
                wheel.advance(now, &mut due);
                let expected = pending.iter().filter(|&&step| step == now).count();
                prop_assert_eq!(due.len(), expected);
                prop_assert!(due.iter().all(|event| event.step == now));
                pending.retain(|&step| step != now);
            }
        }
    }
}
