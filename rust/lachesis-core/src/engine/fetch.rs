//! Reading ahead. What sessions need does not fit the second-level cache, and a rule reads it row by row, each row named by the one
//! before. Read here a little earlier, rows of several requests come from memory at the same time. Nothing depends on what is read.

use std::hint::black_box;

use crate::engine::Engine;
use crate::event::StepEvent;
use crate::kv::SegmentId;
use crate::scheduler::Waiting;
use crate::units::index;

impl Engine<'_> {
    /// What requests that end now will read and write.
    pub(super) fn fetch_ends(&self, due: &[StepEvent]) {
        for event in due {
            let running = self.scheduler.running(event.slot);
            // Of a request that was preempted nothing is left to read.
            if running.admission == event.admission {
                self.placement.fetch_leave(event.slot);
                self.fetch_request(running.who);
                let instance = self.instances.get(running.who.instance);
                if let Some(successor) = self.workload.successors_of(self.request(running.who)).first() {
                    black_box(instance.requests[index(successor.request)].waits_for);
                }
            }
        }
    }

    /// A request's own rows, and those of the segments that it uses.
    fn fetch_request(&self, who: Waiting) {
        let instance = self.instances.get(who.instance);
        black_box(instance.requests[index(who.request)].waits_for);
        for used in self.workload.uses_of(self.request(who)) {
            let id = instance.segments[index(used.segment)].id;
            if id != SegmentId::NONE {
                black_box(self.placement.memory.segment(id).pins);
            }
        }
    }
}
