//! When memory runs out: preemption of running requests, loss of sessions' blocks.

use crate::engine::Engine;
use crate::engine::ready::later;
use crate::error::Result;
use crate::event::TimerKind;
use crate::journal::{Instant, Phase, SegmentEvent};
use crate::kv::SegmentId;
use crate::placement::Starved;
use crate::scheduler::{Running, Waiting};
use crate::units::{index, narrow};

impl Engine<'_> {
    /// Phase 7: the blocks that running requests of a GPU need for the coming step.
    pub(super) fn draw_blocks(&mut self, gpu: u16) -> Result<()> {
        let mut outcome = self.placement.draw_for_step(gpu, self.step);
        while let Err(Starved { slot }) = outcome {
            self.made_room = true;
            self.tell_draws_so_far();
            if self.scheduler.count(gpu) == 1 {
                let who = self.scheduler.running(slot).who;
                if !self.lose_newest(gpu, who) {
                    return Err(self.too_large(gpu, who));
                }
            } else {
                self.preempt(self.scheduler.newest(gpu))?;
            }
            outcome = self.placement.resume_draws(self.step);
        }
        Ok(())
    }

    /// A running request gives its place and its own blocks up, and is queued again after a prefill.
    fn preempt(&mut self, slot: u32) -> Result<()> {
        let generated = self.stop_running(slot);
        let Running { who, times, .. } = *self.scheduler.running(slot);
        let request = self.request(who);
        self.instances.get_mut(who.instance).requests[index(who.request)].preempted = true;
        let came = self.preempted.entry((who.instance, who.request)).or_default();
        came.generated += generated;
        came.times = times;
        for used in self.workload.uses_of(request) {
            let id = self.instances.get(who.instance).segments[index(used.segment)].id;
            let segment = self.placement.memory.segment(id);
            if !segment.shared && segment.pins == 1 {
                self.placement.memory.evict(id);
                self.tell_segment(SegmentEvent::Evict, who.instance, used.segment, 0);
            }
        }
        self.recorder.preempted();
        self.tell_instant(Instant::Preemption, who.instance, who.request);
        self.tell_phase(who, Phase::Prefill, self.now);
        self.set_timer(who, later(self.now, self.config.ttft_reference)?, TimerKind::PrefillEnd);
        Ok(())
    }

    /// Takes a request off the node at a step boundary; returns how many tokens it generated since its admission.
    pub(super) fn stop_running(&mut self, slot: u32) -> u32 {
        let running = self.scheduler.stop(slot);
        let steps = self.step - running.start_step;
        let tokens = u32::try_from(steps).unwrap_or(u32::MAX);
        self.tell_leave(slot);
        self.placement.leave(slot, tokens, self.step);
        let request = self.request(running.who);
        let load = &mut self.loads[usize::from(running.gpu)];
        load.batch -= 1;
        load.context -= running.context + steps;
        load.window -= self.config.cost.window_reads(running.context + steps);
        load.window_growers -= u32::from(running.window_grows);
        if self.config.cost.tier_reads.is_some() {
            let instance = self.instances.get(running.who.instance);
            for used in self.workload.uses_of(request) {
                let tokens = self.placement.memory.tokens_by_tier(instance.segments[index(used.segment)].id);
                load.by_tier = [load.by_tier[0] - tokens[0], load.by_tier[1] - tokens[1]];
            }
        }
        tokens
    }

    /// The newest-started session of a GPU with blocks that cannot be reclaimed loses them, those that `spared` uses excepted. Returns
    /// whether there was one.
    pub(super) fn lose_newest(&mut self, gpu: u16, spared: Waiting) -> bool {
        let spared_segments = self.workload.uses_of(self.request(spared));
        let may_lose = |instance: u32, segment: usize, id: SegmentId| {
            let row = self.placement.memory.segment(id);
            let is_spared = instance == spared.instance
                && spared_segments.iter().any(|used| index(used.segment) == segment);
            row.held() > 0 && !row.is_reclaimable() && !row.shared && !is_spared
        };
        let candidates = self.instances.iter_live().filter(|(place, instance)| {
            instance.gpu == gpu
                && instance.segments.iter().enumerate().any(|(number, segment)| {
                    segment.id != SegmentId::NONE && may_lose(*place, number, segment.id)
                })
        });
        let Some((_, newest)) = candidates.map(|(place, instance)| (instance.arrival, place)).max() else {
            return false;
        };
        let losses: Vec<(usize, SegmentId)> = self
            .instances
            .get(newest)
            .segments
            .iter()
            .enumerate()
            .filter(|(number, segment)| {
                segment.id != SegmentId::NONE && may_lose(newest, *number, segment.id)
            })
            .map(|(number, segment)| (number, segment.id))
            .collect();
        for (number, id) in losses {
            self.placement.memory.evict(id);
            self.tell_segment(SegmentEvent::Evict, newest, narrow(number), 0);
        }
        self.recorder.session_lost();
        self.tell_instant(Instant::BlocksLost, newest, 0);
        true
    }
}
