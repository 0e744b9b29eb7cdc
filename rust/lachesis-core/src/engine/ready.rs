//! Sessions start, requests become ready, prefills end.

use crate::boundary::BoundaryKind;
use crate::engine::{Engine, TurnEnd};
use crate::error::{Error, Result};
use crate::event::{Timer, TimerKind};
use crate::journal::{Instant, Phase, SegmentEvent};
use crate::kv::SegmentId;
use crate::policy::SegmentFacts;
use crate::scheduler::{Load, Waiting};
use crate::units::{NEVER, Picos, index};
use crate::workload::{NONE, Use};

/// More live sessions than this say that arrivals outrun the node, and would fill the machine's memory;
/// a closed load names its sessions itself.
const MOST_LIVE_SESSIONS: u32 = 1 << 18;

/// An instant so much later, within the clock's range.
pub(super) fn later(time: Picos, delay: Picos) -> Result<Picos> {
    time.checked_add(delay).filter(|&instant| instant < NEVER).ok_or(Error::ClockRange)
}

impl Engine<'_> {
    /// Phases 4 and 5: timers, then arrivals. At most instants there is one of the two, or neither.
    #[inline]
    pub(super) fn fire(&mut self, time: Picos) -> Result<()> {
        if self.timers.next_time().is_some_and(|next| next <= time) {
            self.fire_timers(time)?;
        }
        if self.arrivals.next_time().is_some_and(|next| next <= time) {
            self.start_sessions(time)?;
        }
        Ok(())
    }

    /// Timers due at `time`, in order.
    #[inline(never)]
    fn fire_timers(&mut self, time: Picos) -> Result<()> {
        while let Some(timer) = self.timers.take_until(time) {
            let gpu = self.instances.get(timer.instance).gpu;
            self.pending_timers[usize::from(gpu)] -= 1;
            let who = Waiting { instance: timer.instance, request: timer.request };
            match timer.kind {
                TimerKind::Ready => self.become_ready(who, timer.time)?,
                TimerKind::PrefillEnd => {
                    self.scheduler.enqueue(gpu, timer.time, timer.draw, who);
                    self.tell_phase(who, Phase::Waiting, timer.time);
                }
            }
        }
        Ok(())
    }

    /// Arrivals due at `time`, in order of their draws.
    #[inline(never)]
    fn start_sessions(&mut self, time: Picos) -> Result<()> {
        while let Some((draw, session)) = self.arrivals.take(time, self.workload) {
            let fewest = self.gpus().min_by_key(|&gpu| self.live_sessions[usize::from(gpu)]).unwrap_or(0);
            let is_open = !matches!(self.config.load, Load::Closed { .. });
            if is_open && self.instances.live >= MOST_LIVE_SESSIONS {
                return Err(Error::Overrun { live: self.instances.live });
            }
            self.live_sessions[usize::from(fewest)] += 1;
            let instance = self.instances.begin(self.workload, session, draw, fewest);
            self.tell_instant(Instant::SessionStart, instance, 0);
            self.become_ready(Waiting { instance, request: 0 }, time)?;
        }
        Ok(())
    }

    /// Sets a timer for a request.
    pub(super) fn set_timer(&mut self, who: Waiting, time: Picos, kind: TimerKind) {
        let instance = self.instances.get(who.instance);
        self.pending_timers[usize::from(instance.gpu)] += 1;
        self.timers.set(Timer {
            time,
            draw: instance.draw,
            request: who.request,
            kind,
            instance: who.instance,
        });
    }

    /// A request becomes ready: it pins what it uses, and goes to its prefill if there is anything to write.
    fn become_ready(&mut self, who: Waiting, time: Picos) -> Result<()> {
        let request = self.request(who);
        if self.config.turn_end == TurnEnd::NextMessage && request.user_predecessor() != NONE {
            self.close_turn(who, request.user_predecessor());
        }
        self.instances.get_mut(who.instance).requests[index(who.request)].ready = time;
        let mut to_write = 0_u64;
        for used in self.workload.uses_of(request) {
            let id = self.segment_in_table(who.instance, used.segment);
            let segment = self.placement.pin(id);
            let (missing, shared) = (segment.missing(), segment.shared);
            to_write += u64::from(missing) + u64::from(self.first_tokens(who, *used, shared));
        }
        self.tell_request(SegmentEvent::Start, who);
        self.tell_phase(who, if to_write > 0 { Phase::Prefill } else { Phase::Waiting }, time);
        if to_write > 0 {
            self.set_timer(who, later(time, self.config.ttft_reference)?, TimerKind::PrefillEnd);
        } else {
            let instance = self.instances.get(who.instance);
            self.scheduler.enqueue(instance.gpu, time, instance.draw, who);
        }
        Ok(())
    }

    /// Tokens that a request which was not admitted yet has to write into a segment.
    #[inline]
    pub(super) fn first_tokens(&self, who: Waiting, used: Use, shared: bool) -> u32 {
        if shared {
            return 0;
        }
        let instance = self.instances.get(who.instance);
        let carried = instance.segments[index(used.segment)].carried && self.is_carried(who, used.segment);
        if carried { 0 } else { used.written }
    }

    /// Tokens that a request has yet to write into a segment for the first time; shared prompts are written by what they lack.
    #[inline]
    pub(super) fn new_tokens(&self, who: Waiting, used: Use) -> u32 {
        let instance = self.instances.get(who.instance);
        if instance.requests[index(who.request)].written {
            return 0;
        }
        let id = instance.segments[index(used.segment)].id;
        let shared = id != SegmentId::NONE && self.placement.memory.segment(id).shared;
        self.first_tokens(who, used, shared)
    }

    /// Whether it is this request whose first write of the segment may be carried.
    fn is_carried(&self, who: Waiting, segment: u32) -> bool {
        let turn = self.request(who).user_predecessor();
        let of_turn = Waiting { request: turn, ..who };
        turn != NONE
            && self
                .workload
                .carries_of(self.request(of_turn))
                .iter()
                .any(|carried| carried.segment == segment)
    }

    /// What the policy is told of a segment.
    pub(super) fn facts(&self, instance: u32, segment: u32) -> SegmentFacts {
        let instance = self.instances.get(instance);
        let row = index(instance.first_segment + segment);
        let score = self.config.scores.get(row).copied().filter(|score| !score.is_nan());
        let spec = &self.workload.segments[row];
        SegmentFacts {
            class: spec.class,
            gpu: instance.gpu,
            draw: instance.draw,
            segment,
            is_shared: spec.prompt_key != NONE,
            score,
        }
    }

    /// A segment's row in the table, opened at its first use.
    #[inline]
    pub(super) fn segment_in_table(&mut self, instance: u32, segment: u32) -> SegmentId {
        let present = self.instances.get(instance).segments[index(segment)].id;
        if present == SegmentId::NONE { self.open_in_table(instance, segment) } else { present }
    }

    fn open_in_table(&mut self, instance: u32, segment: u32) -> SegmentId {
        let spec = self.segment_spec(instance, segment);
        let facts = self.facts(instance, segment);
        let id = if spec.prompt_key == NONE {
            self.placement.open(&facts)
        } else {
            self.placement.hold_prompt(&facts, spec.prompt_key, self.workload.prompt_tokens(spec.prompt_key))
        };
        let state = &mut self.instances.get_mut(instance).segments[index(segment)];
        state.id = id;
        let (boundary_first, users_left) = (state.boundary_first, state.users_left);
        self.tell_segment(SegmentEvent::Open, instance, segment, 0);
        if boundary_first {
            self.placement.boundary(id, true);
            self.tell_segment(SegmentEvent::Boundary(spec.closed_by), instance, segment, users_left);
        }
        id
    }

    /// Closes, with `turn_end = "next-message"`, the segments of the turn that the message ends.
    fn close_turn(&mut self, who: Waiting, last_of_turn: u32) {
        let turn = self.request(Waiting { request: last_of_turn, ..who });
        for &segment in self.workload.closes_of(turn) {
            let spec = self.segment_spec(who.instance, segment);
            let state = self.instances.get(who.instance).segments[index(segment)];
            if spec.closed_by == BoundaryKind::TurnEnd && state.users_left == 0 {
                self.close_segment(who.instance, segment, BoundaryKind::TurnEnd);
            }
        }
    }
}
