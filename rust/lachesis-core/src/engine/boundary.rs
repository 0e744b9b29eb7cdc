//! Requests end, segments close, carried segments are written, sessions end.

use crate::boundary::BoundaryKind;
use crate::engine::ready::later;
use crate::engine::{Engine, Finished, TurnEnd};
use crate::error::Result;
use crate::event::TimerKind;
use crate::journal::{Instant, SegmentEvent};
use crate::kv::{Passage, SegmentId};
use crate::placement::Need;
use crate::result::RequestTimes;
use crate::scheduler::Waiting;
use crate::units::{Picos, index};
use crate::workload::{EdgeKind, NONE, Request, Successor};

impl Engine<'_> {
    /// Phases 2 and 3 of an instant for the requests in `finished`, which is left empty.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.finished.is_empty() {
            return Ok(());
        }
        let mut finished = std::mem::take(&mut self.finished);
        if finished.len() > 1 {
            finished.sort_unstable_by_key(|Finished { who, .. }| {
                (self.instances.get(who.instance).draw, who.request)
            });
        }
        for &ended in &finished {
            self.end_request(ended)?;
        }
        for &Finished { who, .. } in &finished {
            self.close_after(who);
        }
        if self.config.turn_end == TurnEnd::LastOutput {
            for &Finished { who, .. } in &finished {
                self.write_carried(who)?;
            }
        }
        for &Finished { who, .. } in &finished {
            let instance = self.instances.get(who.instance);
            // The last requests of a session may end at the same instant.
            if instance.live && instance.requests_left == 0 {
                self.end_session(who.instance);
            }
        }
        finished.clear();
        self.finished = finished;
        Ok(())
    }

    /// Phase 2: metrics, unpinning, timers of the successors.
    fn end_request(&mut self, Finished { who, times }: Finished) -> Result<()> {
        let request = self.request(who);
        let instance = self.instances.get_mut(who.instance);
        let draw = instance.draw;
        instance.requests_left -= 1;
        let state = instance.requests[index(who.request)];
        let times = RequestTimes {
            draw,
            request: who.request,
            ready: state.ready,
            admitted: times.admitted,
            first_token: times.first_token,
            end: self.now,
        };
        if state.preempted {
            self.preempted.remove(&(who.instance, who.request));
        }
        self.recorder.request_ended(times, request.output_tokens());
        self.tell_end(who);
        self.tell_request(SegmentEvent::End, who);
        let instance = self.instances.get_mut(who.instance);
        for used in self.workload.uses_of(request).iter().rev() {
            let state = &mut instance.segments[index(used.segment)];
            state.users_left -= 1;
            self.placement.unpin(state.id);
        }
        for successor in self.workload.successors_of(request) {
            let ready = later(self.now, self.delay(who, draw, successor, request))?;
            let state = &mut self.instances.get_mut(who.instance).requests[index(successor.request)];
            state.ready = state.ready.max(ready);
            state.waits_for -= 1;
            if state.waits_for == 0 {
                let (time, next) =
                    (state.ready, Waiting { instance: who.instance, request: successor.request });
                self.set_timer(next, time, TimerKind::Ready);
            }
        }
        Ok(())
    }

    /// The delay of an edge: recorded, or drawn for this session's draw.
    fn delay(&self, who: Waiting, draw: u64, edge: &Successor, request: Request<'_>) -> Picos {
        let (seed, delays) = (self.config.seed, &self.config.delays);
        match (edge.delay.recorded(), edge.kind) {
            (Some(delay), _) => delay,
            (None, EdgeKind::Spawn | EdgeKind::Return) => 0,
            (None, EdgeKind::User) => delays.user(seed, draw, edge.request),
            // Calls run in parallel: the slowest counts. A caller without named tools pays nothing.
            (None, EdgeKind::Tool) => {
                let calls = self.workload.tools_of(request).iter().enumerate();
                calls
                    .map(|(call, &class)| delays.tool(seed, draw, who.request, call, class))
                    .max()
                    .unwrap_or(0)
            }
        }
    }

    /// Phase 3: the segments that a finished request closes, ascending.
    fn close_after(&mut self, who: Waiting) {
        let request = self.request(who);
        for &segment in self.workload.closes_of(request) {
            let spec = self.segment_spec(who.instance, segment);
            let waits_for_message =
                spec.closed_by == BoundaryKind::TurnEnd && self.config.turn_end == TurnEnd::NextMessage;
            if !waits_for_message && spec.prompt_key == NONE {
                self.pass_boundary(who.instance, segment, spec.closed_by);
            }
        }
        for used in self.workload.uses_of(request) {
            let state = self.instances.get(who.instance).segments[index(used.segment)];
            let in_use = state.users_left > 0 || state.id == SegmentId::NONE;
            if !in_use && self.placement.ends_with_last_use(state.id) {
                self.candidates.push(used.segment);
            }
        }
        if self.candidates.is_empty() {
            return;
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.sort_unstable();
        candidates.dedup();
        for segment in candidates.drain(..) {
            let spec = self.segment_spec(who.instance, segment);
            self.close_segment(who.instance, segment, spec.closed_by);
        }
        self.candidates = candidates;
    }

    /// A segment's boundary comes: one that no request uses any more is left in `candidates`.
    fn pass_boundary(&mut self, instance: u32, segment: u32, kind: BoundaryKind) {
        let state = &mut self.instances.get_mut(instance).segments[index(segment)];
        if state.id == SegmentId::NONE {
            state.boundary_first = true;
            return;
        }
        let users_left = state.users_left;
        match self.placement.boundary(state.id, users_left > 0) {
            Passage::Ends => self.candidates.push(segment),
            Passage::Waits => {
                self.tell_segment(SegmentEvent::Boundary(kind), instance, segment, users_left);
            }
            Passage::Repeated => {}
        }
    }

    /// A segment ends, once.
    pub(super) fn close_segment(&mut self, instance: u32, segment: u32, kind: BoundaryKind) {
        let state = &mut self.instances.get_mut(instance).segments[index(segment)];
        let id = std::mem::replace(&mut state.id, SegmentId::NONE);
        if id == SegmentId::NONE {
            return;
        }
        self.tell_boundary(self.placement.class(id), instance, segment);
        if self.placement.memory.segment(id).shared {
            self.placement.release_prompt(id);
        } else {
            let facts = self.facts(instance, segment);
            self.placement.close(id, &facts);
        }
        self.tell_close(kind, instance, segment);
    }

    /// Writes what a turn carries forward, if the blocks can be had now.
    fn write_carried(&mut self, who: Waiting) -> Result<()> {
        let gpu = self.instances.get(who.instance).gpu;
        for carried in self.workload.carries_of(self.request(who)) {
            let id = self.segment_in_table(who.instance, carried.segment);
            let mut need = Need::default();
            self.placement.add_need(id, carried.written, &mut need);
            if self.placement.memory.can_have(gpu, need) {
                let landed = self.placement.write_suffix(id, carried.written)?;
                self.recorder.landed(landed);
                self.tell_segment(SegmentEvent::Write, who.instance, carried.segment, 0);
                self.instances.get_mut(who.instance).segments[index(carried.segment)].carried = true;
                if self.placement.keeps_past_boundaries() {
                    self.placement.memory.list(id);
                }
            }
        }
        Ok(())
    }

    /// The session's end closes what is left; in the closed loop the next session follows.
    fn end_session(&mut self, instance: u32) {
        let segments = self.instances.get(instance).segments.len();
        for segment in 0..crate::units::narrow(segments) {
            self.close_segment(instance, segment, BoundaryKind::SessionEnd);
        }
        self.tell_instant(Instant::SessionEnd, instance, 0);
        let gpu = self.instances.get(instance).gpu;
        self.live_sessions[usize::from(gpu)] -= 1;
        self.instances.end(instance);
        self.arrivals.session_ended(self.now, self.workload);
        self.recorder.session_ended();
    }
}
