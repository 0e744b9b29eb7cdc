//! Admission: the head of each queue waits for a slot and for the blocks of its suffix.

use crate::engine::{Engine, Finished, Landing, Preempted};
use crate::error::{Error, Result};
use crate::event::{StepEvent, StepEventKind};
use crate::hw::WindowKind;
use crate::journal::{Phase, SegmentEvent};
use crate::placement::Need;
use crate::scheduler::Waiting;
use crate::units::{Tier, index, to_f64};
use crate::workload::NONE;

impl Engine<'_> {
    /// Phase 6: admissions, GPU by GPU.
    pub(super) fn admit(&mut self) -> Result<()> {
        if self.scheduler.waiting_anywhere() == 0 {
            return Ok(());
        }
        for gpu in self.gpus() {
            while let Some(head) = self.scheduler.head(gpu) {
                if self.can_admit(gpu, head) {
                    self.scheduler.pop(gpu);
                    self.start(gpu, head)?;
                } else if !self.unblock(gpu, head)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// How far a request came before.
    fn came_before(&self, who: Waiting) -> Preempted {
        let was_preempted = self.instances.get(who.instance).requests[index(who.request)].preempted;
        let entry = was_preempted.then(|| self.preempted.get(&(who.instance, who.request))).flatten();
        entry.copied().unwrap_or_default()
    }

    /// Whether the head can be admitted; what it writes is left in `suffix`.
    fn can_admit(&mut self, gpu: u16, who: Waiting) -> bool {
        if self.scheduler.count(gpu) >= self.config.slots {
            return false;
        }
        let mut suffix = std::mem::take(&mut self.suffix);
        suffix.clear();
        let request = self.request(who);
        let instance = self.instances.get(who.instance);
        let mut need = Need::default();
        for &used in self.workload.uses_of(request) {
            let id = instance.segments[index(used.segment)].id;
            let new = self.new_tokens(who, used);
            self.placement.add_need(id, new, &mut need);
            suffix.push((id, new));
        }
        self.suffix = suffix;
        self.placement.memory.can_have(gpu, need)
    }

    /// Where the head cannot be admitted, nothing runs on its GPU and no timer of its sessions is pending, the newest session there
    /// loses its blocks. Returns whether it is worth trying again.
    fn unblock(&mut self, gpu: u16, head: Waiting) -> Result<bool> {
        if self.scheduler.count(gpu) > 0 || self.pending_timers[usize::from(gpu)] > 0 {
            return Ok(false);
        }
        if self.lose_newest(gpu, head) { Ok(true) } else { Err(self.too_large(gpu, head)) }
    }

    /// The error of a request for which the memory of a GPU is too small: in the tiers that its segments may use.
    pub(super) fn too_large(&self, gpu: u16, who: Waiting) -> Error {
        let instance = self.instances.get(who.instance);
        let request = self.request(who);
        let emits = request.output_tokens() - self.came_before(who).generated;
        let mut needed = Need::default();
        for used in self.workload.uses_of(request) {
            let segment = self.placement.memory.segment(instance.segments[index(used.segment)].id);
            let output = if used.segment == request.output_segment() { emits } else { 0 };
            let tokens = segment.tokens + self.new_tokens(who, *used) + output;
            needed[segment.target()] += u64::from(tokens.div_ceil(self.config.block_tokens));
        }
        let total = self.placement.memory.gpus[usize::from(gpu)].total;
        let has = |tier: Tier| u64::from(total[tier]);
        let (needed, available) = if self.placement.memory.falls_back {
            (needed[Tier::Hbm] + needed[Tier::Hbf], has(Tier::Hbm) + has(Tier::Hbf))
        } else {
            let lacking = Tier::ALL.into_iter().find(|&tier| needed[tier] > has(tier)).unwrap_or(Tier::Hbm);
            (needed[lacking], has(lacking))
        };
        Error::SessionTooLarge {
            session: index(instance.session),
            request: index(who.request),
            needed,
            available,
        }
    }

    /// Writes a request's suffix, as `can_admit` left it, and starts its decode; a request without output ends at once.
    fn start(&mut self, gpu: u16, who: Waiting) -> Result<()> {
        let request = self.request(who);
        let Preempted { generated, mut times } = self.came_before(who);
        let emits = request.output_tokens() - generated;
        let is_output_named = request.is_output_named();
        // What it generated before a preemption is read as well; as part of its input, or apart from it.
        let mut context = if is_output_named { 0 } else { u64::from(generated) };
        let mut by_tier = [0; 2];
        let suffix = std::mem::take(&mut self.suffix);
        for (place, &(id, new)) in suffix.iter().enumerate() {
            let segment = self.placement.memory.segment(id);
            let (missing, shared) = (segment.missing(), segment.shared);
            if missing + new > 0 {
                let landed = if shared {
                    let used = self.workload.uses_of(request)[place];
                    let key = self.segment_spec(who.instance, used.segment).prompt_key;
                    debug_assert_ne!(key, NONE, "Invariant: shared segments have a prompt key");
                    self.placement.write_prompt(id, key)?
                } else {
                    self.placement.write_suffix(id, new)?
                };
                self.land(gpu, landed);
                let used = self.workload.uses_of(request)[place];
                self.tell_segment(SegmentEvent::Write, who.instance, used.segment, 0);
            }
            if is_output_named || place + 1 < suffix.len() {
                context += u64::from(self.placement.memory.segment(id).tokens);
            }
            if self.config.cost.tier_reads.is_some() {
                let tokens = self.placement.memory.tokens_by_tier(id);
                by_tier = [by_tier[0] + tokens[0], by_tier[1] + tokens[1]];
            }
        }
        self.suffix = suffix;
        let state = &mut self.instances.get_mut(who.instance).requests[index(who.request)];
        if !std::mem::replace(&mut state.written, true) {
            times.admitted = self.now;
        }
        if emits == 0 {
            self.finished.push(Finished { who, times });
            return self.finish();
        }
        self.tell_phase(who, Phase::Decode, self.now);
        let slot = self.scheduler.start(gpu, who, self.step, context, times);
        let admission = self.scheduler.running(slot).admission;
        let segment = self.instances.get(who.instance).segments[index(request.output_segment())].id;
        self.placement.join(slot, segment, admission, self.step);
        self.first_steps.push((slot, admission));
        let end = self.step + u64::from(emits);
        self.wheel.schedule(StepEvent { step: end, admission, slot, kind: StepEventKind::End });
        let load = &mut self.loads[usize::from(gpu)];
        load.batch += 1;
        load.context += context;
        load.window += self.config.cost.window_reads(context);
        load.by_tier = [load.by_tier[0] + by_tier[0], load.by_tier[1] + by_tier[1]];
        self.watch_window(slot, context, end);
        Ok(())
    }

    /// Schedules the step at which a running request's windowed reads stop growing, or fall back to a chunk's start.
    pub(super) fn watch_window(&mut self, slot: u32, context: u64, end: u64) {
        let window = u64::from(self.config.cost.window);
        if window == 0 {
            return;
        }
        let running = self.scheduler.running_mut(slot);
        let grows = self.config.cost.window_kind == WindowKind::Chunked || context < window;
        if grows && !running.window_grows {
            running.window_grows = true;
            self.loads[usize::from(running.gpu)].window_growers += 1;
        }
        if grows {
            let bound = self.step + window - context % window;
            if bound <= end {
                let admission = running.admission;
                self.wheel.schedule(StepEvent {
                    step: bound,
                    admission,
                    slot,
                    kind: StepEventKind::WindowBound,
                });
            }
        }
    }

    /// Tokens of a suffix that went to flash.
    pub(super) fn land(&mut self, gpu: u16, tokens: u32) {
        self.recorder.landed(tokens);
        if self.config.landing == Landing::Sync {
            self.loads[usize::from(gpu)].landing += u64::from(tokens);
        }
    }

    /// Share of time that the flash of a GPU would be busy landing suffixes, at `flush_ps` a token.
    pub(super) fn landing_duty(&self, tokens: u64, picos: i64) -> f64 {
        let busy = i128::from(tokens) * i128::from(self.config.cost.flush_ps);
        to_f64(busy) / to_f64(i128::from(picos.max(1))) / to_f64(self.config.gpus as i128)
    }
}
