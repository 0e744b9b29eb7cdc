//! Running requests, each of which appends a token a step to its segment and draws a block every `block_tokens` steps.
//!
//! Requests of a GPU whose next draw falls on the same step and targets the same tier form a *cohort*. All draws of a cohort are one
//! operation on the free list as long as one tier serves them all; the cohort's *regime* is that tier, and its log
//! says since which round. A member that got a block of another tier in some round keeps that as an exception. What
//! a request drew is read off log and exceptions once, when it leaves, and entered in its segment then.

use crate::kv::{Extent, SegmentId};
use crate::placement::Placement;
use crate::units::{CLASSES, PerTier, SegmentClass, Tier, index, narrow};

/// A log this long is cut down to what a member can still ask for.
const LONG_LOG: usize = 64;
const NO_EXCEPTION: u32 = u32::MAX;

/// A draw of this running request cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starved {
    /// The request, by its slot.
    pub slot: u32,
}

/// One running request.
#[derive(Debug, Clone)]
struct Append {
    segment: SegmentId,
    admission: u64,
    joined_round: u64,
    cohort: u32,
    first_exception: u32,
    last_exception: u32,
    class: SegmentClass,
    /// Its current block is not of the cohort's regime but of `tier`.
    exceptional: bool,
    tier: Tier,
}

#[derive(Debug, Clone, Copy)]
struct Exception {
    round: u64,
    next: u32,
    tier: Tier,
}

#[derive(Debug)]
struct Cohort {
    /// Slots in admission order.
    members: Vec<u32>,
    exceptional: Vec<u32>,
    /// From which round on which tier was the regime; ascending, never empty.
    log: Vec<(u64, Tier)>,
    round: u64,
    regime: Tier,
    /// Members that are not exceptional, by class.
    regular: [u32; CLASSES],
}

/// All running requests of the node.
#[derive(Debug)]
pub struct Appends {
    slots: Vec<Option<Append>>,
    cohorts: Vec<Cohort>,
    exceptions: Vec<Exception>,
    vacant_exceptions: Vec<u32>,
    /// By GPU: running requests whose current block lies in flash.
    flash_writers: Vec<u32>,
    phases: u32,
    draw: OpenDraw,
}

/// A round of draws that could not be one operation, while it is under way.
#[derive(Debug, Default)]
struct OpenDraw {
    gpu: u16,
    first_cohort: u32,
    order: Vec<u32>,
    position: usize,
    /// Whether both cohorts draw, so that targets change along `order`.
    mixed_targets: bool,
    /// A draw of this round could not be served: requests may have left meanwhile.
    was_starved: bool,
    /// Tiers drawn so far: runs along `order`.
    runs: Vec<Extent>,
}

impl Appends {
    pub(super) fn new(gpus: usize, block_tokens: u32) -> Self {
        let cohort = |target| Cohort {
            members: Vec::new(),
            exceptional: Vec::new(),
            log: vec![(0, target)],
            round: 0,
            regime: target,
            regular: [0; CLASSES],
        };
        let cohorts = (0..gpus * index(block_tokens)).flat_map(|_| Tier::ALL.map(cohort)).collect();
        Self {
            slots: Vec::new(),
            cohorts,
            exceptions: Vec::new(),
            vacant_exceptions: Vec::new(),
            flash_writers: vec![0; gpus],
            phases: block_tokens,
            draw: OpenDraw::default(),
        }
    }

    /// Running requests of a GPU whose current block lies in flash.
    #[must_use]
    pub fn flash_writers(&self, gpu: usize) -> u32 {
        self.flash_writers[gpu]
    }

    /// The first of the two cohorts (targets HBM, HBF) of a GPU that draw at `step`.
    fn first_cohort(&self, gpu: u16, step: u64) -> u32 {
        let phase = u32::try_from(step % u64::from(self.phases)).unwrap_or(0);
        (u32::from(gpu) * self.phases + phase) * 2
    }

    fn append(&self, slot: u32) -> &Append {
        self.slots[index(slot)].as_ref().expect("Invariant: cohorts name running requests only")
    }

    fn append_mut(&mut self, slot: u32) -> &mut Append {
        self.slots[index(slot)].as_mut().expect("Invariant: cohorts name running requests only")
    }
}

impl Placement {
    /// A running request begins to append to `segment`; `slot` names it until `leave`. `step` is the step about to start.
    pub fn join(&mut self, slot: u32, segment: SegmentId, admission: u64, step: u64) {
        let row = self.memory.segment(segment);
        let (gpu, class, target) = (row.gpu, row.class, row.target);
        let offset = row.resident % self.memory.block_tokens();
        let appends = &mut self.appends;
        let first_draw = step + u64::from(if offset == 0 { 0 } else { appends.phases - offset });
        let cohort_index = appends.first_cohort(gpu, first_draw) + target as u32;
        let current = if offset == 0 { None } else { self.memory.top_tier(segment) };
        let cohort = &mut appends.cohorts[index(cohort_index)];
        if cohort.members.is_empty() {
            cohort.regime = current.unwrap_or(target);
            cohort.log.clear();
            cohort.log.push((cohort.round, cohort.regime));
        }
        let tier = current.unwrap_or(cohort.regime);
        let exceptional = tier != cohort.regime;
        cohort.members.push(slot);
        if exceptional {
            cohort.exceptional.push(slot);
        } else {
            cohort.regular[class as usize] += 1;
        }
        let append = Append {
            segment,
            admission,
            joined_round: cohort.round,
            cohort: cohort_index,
            first_exception: NO_EXCEPTION,
            last_exception: NO_EXCEPTION,
            class,
            exceptional,
            tier,
        };
        if appends.slots.len() <= index(slot) {
            appends.slots.resize(index(slot) + 1, None);
        }
        appends.slots[index(slot)] = Some(append);
        self.change_writers(gpu, class, tier, step, 1);
    }

    /// A running request stops appending after `tokens` tokens: its segment's row is brought up to date.
    ///
    /// # Panics
    /// If the slot is not running: a fault of ours.
    pub fn leave(&mut self, slot: u32, tokens: u32, step: u64) {
        let appends = &mut self.appends;
        let append = appends.slots[index(slot)].take().expect("Invariant: a request leaves once");
        let gpu = self.memory.segment(append.segment).gpu;
        let cohort = &mut appends.cohorts[index(append.cohort)];
        let place = cohort.members.iter().position(|&member| member == slot);
        cohort.members.remove(place.expect("Invariant: a running request is a member of its cohort"));
        let tier = if append.exceptional {
            cohort.exceptional.retain(|&member| member != slot);
            append.tier
        } else {
            cohort.regular[append.class as usize] -= 1;
            cohort.regime
        };
        self.enter_drawn(gpu, &append, tokens);
        self.change_writers(gpu, append.class, tier, step, -1);
    }

    /// Enters in its segment what a request drew in its rounds.
    fn enter_drawn(&mut self, gpu: u16, append: &Append, tokens: u32) {
        let cohort = &self.appends.cohorts[index(append.cohort)];
        let mut round = append.joined_round;
        let end = cohort.round;
        let mut entry = cohort.log.partition_point(|&(from, _)| from <= round).saturating_sub(1);
        let mut exception = append.first_exception;
        while round < end {
            while cohort.log.get(entry + 1).is_some_and(|&(from, _)| from <= round) {
                entry += 1;
            }
            let mut until = cohort.log.get(entry + 1).map_or(end, |&(from, _)| from.min(end));
            let mut tier = cohort.log[entry].1;
            if exception != NO_EXCEPTION {
                let odd = self.appends.exceptions[index(exception)];
                if odd.round == round {
                    (tier, until) = (odd.tier, round + 1);
                    self.appends.vacant_exceptions.push(exception);
                    exception = odd.next;
                } else {
                    until = until.min(odd.round);
                }
            }
            let blocks = u32::try_from(until - round).unwrap_or(u32::MAX);
            self.memory.gpus[usize::from(gpu)].in_flight[tier] -= blocks;
            self.memory.enter(append.segment, Extent { tier, blocks });
            round = until;
        }
        let block_tokens = self.memory.block_tokens();
        let row = self.memory.segment_mut(append.segment);
        row.resident += tokens;
        row.tokens += tokens;
        debug_assert_eq!(
            row.held(),
            row.resident.div_ceil(block_tokens),
            "Invariant: a segment holds the blocks that its tokens need"
        );
    }

    /// Draws the blocks that running requests of a GPU need for `step`.
    ///
    /// # Errors
    /// `Starved` names the first request, in admission order, whose draw cannot be served; after room was made, or the request preempted, `resume_draws`
    /// goes on.
    pub fn draw_for_step(&mut self, gpu: u16, step: u64) -> Result<(), Starved> {
        let appends = &self.appends;
        let first = appends.first_cohort(gpu, step);
        let hbm_members = appends.cohorts[index(first)].members.len();
        let hbf_members = appends.cohorts[index(first) + 1].members.len();
        if hbm_members + hbf_members == 0 {
            return Ok(());
        }
        let members = PerTier([narrow(hbm_members), narrow(hbf_members)]);
        let all = members[Tier::Hbm] + members[Tier::Hbf];
        let free = self.memory.gpus[usize::from(gpu)].free;
        // Where one list can serve everybody, only the other's targets can be split, and the order between the cohorts does not matter.
        for ample in [Tier::Hbf, Tier::Hbm] {
            let scarce = ample.other();
            let own = free[scarce].min(members[scarce]);
            let is_whole = own == members[scarce] || (own == 0 && self.memory.falls_back);
            if free[ample] >= all && is_whole {
                let served = PerTier(if ample == Tier::Hbf { [own, all - own] } else { [all - own, own] });
                self.take_free(gpu, served);
                self.memory.fallbacks += u64::from(members[scarce] - own);
                self.end_uniform_round(gpu, first + ample as u32, ample, step);
                let tier = if own == 0 { ample } else { scarce };
                self.end_uniform_round(gpu, first + scarce as u32, tier, step);
                return Ok(());
            }
        }
        if members[Tier::Hbm] <= free[Tier::Hbm] && members[Tier::Hbf] <= free[Tier::Hbf] {
            self.take_free(gpu, members);
            self.end_uniform_round(gpu, first, Tier::Hbm, step);
            self.end_uniform_round(gpu, first + 1, Tier::Hbf, step);
            return Ok(());
        }
        self.open_draws(gpu, first);
        if members[Tier::Hbm] == 0 || members[Tier::Hbf] == 0 {
            let target = if members[Tier::Hbm] > 0 { Tier::Hbm } else { Tier::Hbf };
            if let Some(run) = self.memory.draw_run(gpu, target, all) {
                self.memory.gpus[usize::from(gpu)].in_flight[run.tier] += run.blocks;
                if run.blocks == all {
                    self.end_uniform_round(gpu, first + target as u32, run.tier, step);
                    return Ok(());
                }
                self.appends.draw.runs.push(run);
                self.appends.draw.position = index(run.blocks);
            }
        }
        self.order_draws();
        self.resume_draws(step)
    }

    /// Takes free blocks for running requests.
    fn take_free(&mut self, gpu: u16, blocks: PerTier<u32>) {
        let memory = &mut self.memory.gpus[usize::from(gpu)];
        for tier in Tier::ALL {
            memory.free[tier] -= blocks[tier];
            memory.in_flight[tier] += blocks[tier];
        }
    }

    fn open_draws(&mut self, gpu: u16, first_cohort: u32) {
        let draw = &mut self.appends.draw;
        draw.gpu = gpu;
        draw.first_cohort = first_cohort;
        draw.position = 0;
        draw.was_starved = false;
        draw.runs.clear();
    }

    /// Puts the members of both cohorts in the order in which they draw.
    fn order_draws(&mut self) {
        let mut draw = std::mem::take(&mut self.appends.draw);
        let cohorts =
            [draw.first_cohort, draw.first_cohort + 1].map(|cohort| &self.appends.cohorts[index(cohort)]);
        draw.order.clear();
        draw.order.extend_from_slice(&cohorts[0].members);
        draw.order.extend_from_slice(&cohorts[1].members);
        draw.mixed_targets = cohorts.iter().all(|cohort| !cohort.members.is_empty());
        if draw.mixed_targets {
            draw.order.sort_unstable_by_key(|&slot| self.appends.append(slot).admission);
        }
        self.appends.draw = draw;
    }

    /// Goes on with the draws of `draw_for_step` where they stopped.
    ///
    /// # Errors
    /// `Starved` as there.
    pub fn resume_draws(&mut self, step: u64) -> Result<(), Starved> {
        let mut draw = std::mem::take(&mut self.appends.draw);
        if draw.was_starved {
            // Requests preempted meanwhile are newer than all that have drawn: they lie behind the position.
            let mut kept = draw.order.split_off(draw.position);
            kept.retain(|&slot| self.appends.slots[index(slot)].is_some());
            draw.order.append(&mut kept);
        }
        let outcome = self.draw_in_order(&mut draw);
        self.appends.draw = draw;
        outcome?;
        self.end_mixed_round(step);
        Ok(())
    }

    fn draw_in_order(&mut self, draw: &mut OpenDraw) -> Result<(), Starved> {
        while draw.position < draw.order.len() {
            let slot = draw.order[draw.position];
            let target = self.appends.append(slot).cohort & 1;
            let rest = &draw.order[draw.position..];
            let same = if draw.mixed_targets {
                rest.iter().take_while(|&&other| self.appends.append(other).cohort & 1 == target).count()
            } else {
                rest.len()
            };
            let tier = Tier::ALL[index(target)];
            let Some(run) = self.memory.draw_run(draw.gpu, tier, narrow(same)) else {
                draw.was_starved = true;
                return Err(Starved { slot });
            };
            self.memory.gpus[usize::from(draw.gpu)].in_flight[run.tier] += run.blocks;
            draw.position += index(run.blocks);
            draw.runs.push(run);
        }
        Ok(())
    }

    /// Every member of a cohort got a block of `tier`.
    fn end_uniform_round(&mut self, gpu: u16, cohort_index: u32, tier: Tier, step: u64) {
        let cohort = &self.appends.cohorts[index(cohort_index)];
        if cohort.members.is_empty() {
            return;
        }
        if !cohort.exceptional.is_empty() {
            self.revert_exceptional(gpu, cohort_index, step);
        }
        let cohort = &mut self.appends.cohorts[index(cohort_index)];
        let before = cohort.regime;
        if before != tier {
            let regular = cohort.regular;
            cohort.regime = tier;
            if cohort.log.len() >= LONG_LOG {
                let oldest = cohort.members.iter().map(|&slot| {
                    self.appends.slots[index(slot)].as_ref().map_or(u64::MAX, |append| append.joined_round)
                });
                let oldest = oldest.min().unwrap_or(cohort.round);
                let keep_from = cohort.log.partition_point(|&(from, _)| from <= oldest).saturating_sub(1);
                cohort.log.drain(..keep_from);
            }
            cohort.log.push((cohort.round, tier));
            for class in SegmentClass::ALL {
                let members = regular[class as usize].cast_signed();
                if members > 0 {
                    self.change_writers(gpu, class, before, step, -members);
                    self.change_writers(gpu, class, tier, step, members);
                }
            }
        }
        self.appends.cohorts[index(cohort_index)].round += 1;
    }

    /// Members of the cohorts got blocks as the runs of the open draw say.
    fn end_mixed_round(&mut self, step: u64) {
        let draw = std::mem::take(&mut self.appends.draw);
        for cohort_index in [draw.first_cohort, draw.first_cohort + 1] {
            if self.appends.cohorts[index(cohort_index)].members.is_empty() {
                continue;
            }
            let mut tiers = PerTier([false, false]);
            self.for_runs_of(&draw, cohort_index, |_, _, tier| tiers[tier] = true);
            match tiers.0 {
                [true, false] => self.end_uniform_round(draw.gpu, cohort_index, Tier::Hbm, step),
                [_, true] if !tiers[Tier::Hbm] => {
                    self.end_uniform_round(draw.gpu, cohort_index, Tier::Hbf, step);
                }
                _ => {
                    self.revert_exceptional(draw.gpu, cohort_index, step);
                    let regime = self.appends.cohorts[index(cohort_index)].regime;
                    let odd = regime.other();
                    self.for_runs_of(&draw, cohort_index, |placement, slots, tier| {
                        if tier == odd {
                            for &slot in slots {
                                placement.make_exception(draw.gpu, slot, odd, step);
                            }
                        }
                    });
                    self.appends.cohorts[index(cohort_index)].round += 1;
                }
            }
        }
        self.appends.draw = draw;
    }

    /// Calls `visit` with the members of a cohort in a finished draw, run by run.
    fn for_runs_of(
        &mut self,
        draw: &OpenDraw,
        cohort_index: u32,
        mut visit: impl FnMut(&mut Self, &[u32], Tier),
    ) {
        let mut position = 0;
        for run in &draw.runs {
            let slots = &draw.order[position..position + index(run.blocks)];
            // A run serves one target only, so its first member tells the cohort of all.
            if self.appends.append(slots[0]).cohort == cohort_index {
                visit(self, slots, run.tier);
            }
            position += slots.len();
        }
    }

    fn make_exception(&mut self, gpu: u16, slot: u32, tier: Tier, step: u64) {
        let round = self.appends.cohorts[index(self.appends.append(slot).cohort)].round;
        let exception = Exception { round, next: NO_EXCEPTION, tier };
        let place = if let Some(place) = self.appends.vacant_exceptions.pop() {
            self.appends.exceptions[index(place)] = exception;
            place
        } else {
            self.appends.exceptions.push(exception);
            narrow(self.appends.exceptions.len() - 1)
        };
        let append = self.appends.append_mut(slot);
        let last = std::mem::replace(&mut append.last_exception, place);
        // The last exception's slot in the slab is only ours while it is not consumed, which happens at leave alone.
        if append.first_exception == NO_EXCEPTION {
            append.first_exception = place;
        }
        append.exceptional = true;
        append.tier = tier;
        let (class, cohort_index) = (append.class, append.cohort);
        if last != NO_EXCEPTION {
            self.appends.exceptions[index(last)].next = place;
        }
        let cohort = &mut self.appends.cohorts[index(cohort_index)];
        cohort.exceptional.push(slot);
        cohort.regular[class as usize] -= 1;
        let regime = cohort.regime;
        self.change_writers(gpu, class, regime, step, -1);
        self.change_writers(gpu, class, tier, step, 1);
    }

    /// Exceptional members leave the blocks that made them so.
    fn revert_exceptional(&mut self, gpu: u16, cohort_index: u32, step: u64) {
        let mut exceptional = std::mem::take(&mut self.appends.cohorts[index(cohort_index)].exceptional);
        let regime = self.appends.cohorts[index(cohort_index)].regime;
        for &slot in &exceptional {
            let append = self.appends.append_mut(slot);
            append.exceptional = false;
            let (class, tier) = (append.class, append.tier);
            self.appends.cohorts[index(cohort_index)].regular[class as usize] += 1;
            self.change_writers(gpu, class, tier, step, -1);
            self.change_writers(gpu, class, regime, step, 1);
        }
        exceptional.clear();
        self.appends.cohorts[index(cohort_index)].exceptional = exceptional;
    }

    fn change_writers(&mut self, gpu: u16, class: SegmentClass, tier: Tier, step: u64, change: i32) {
        self.ledger.change_rate(class, tier, step, change);
        if tier == Tier::Hbf {
            let writers = &mut self.appends.flash_writers[usize::from(gpu)];
            *writers = writers.checked_add_signed(change).expect("Invariant: writers leave once");
        }
    }

    /// The most steps that may be taken at once on a GPU because every draw after the first step's would be served by the tier
    /// that already is its cohort's regime; at most `most`, at least 1.
    #[must_use]
    pub fn uniform_steps(&self, gpu: u16, most: u64) -> u64 {
        let first = index(self.appends.first_cohort(gpu, 0));
        let cohorts = &self.appends.cohorts[first..first + 2 * index(self.appends.phases)];
        let mut per_cycle = PerTier([0_u64; 2]);
        for (place, cohort) in cohorts.iter().enumerate() {
            let target = Tier::ALL[place % 2];
            if !cohort.members.is_empty() && (!cohort.exceptional.is_empty() || cohort.regime != target) {
                return 1;
            }
            per_cycle[target] += cohort.members.len() as u64;
        }
        let free = self.memory.gpus[usize::from(gpu)].free;
        let cycles = |tier| u64::from(free[tier]).checked_div(per_cycle[tier]).unwrap_or(most);
        let whole_cycles = Tier::ALL.map(cycles)[0].min(Tier::ALL.map(cycles)[1]);
        whole_cycles.saturating_mul(u64::from(self.appends.phases)).clamp(1, most.max(1))
    }

    /// Draws for `steps` steps from `step` on at once.
    ///
    /// Contract: `steps` is at most what `uniform_steps` allows.
    pub fn draw_for_steps(&mut self, gpu: u16, step: u64, steps: u64) {
        let phases = u64::from(self.appends.phases);
        let first = index(self.appends.first_cohort(gpu, 0));
        let memory = &mut self.memory.gpus[usize::from(gpu)];
        for phase in 0..phases {
            // Steps s in [step, step + steps) with s ≡ phase (mod phases).
            let ahead = (phase + phases - step % phases) % phases;
            let rounds = if ahead < steps { (steps - ahead).div_ceil(phases) } else { 0 };
            for target in Tier::ALL {
                let place = first + 2 * usize::try_from(phase).unwrap_or(0) + target as usize;
                let cohort = &mut self.appends.cohorts[place];
                if cohort.members.is_empty() {
                    continue;
                }
                cohort.round += rounds;
                let blocks = u32::try_from(cohort.members.len() as u64 * rounds).unwrap_or(u32::MAX);
                memory.free[target] -= blocks;
                memory.in_flight[target] += blocks;
            }
        }
    }
}
