//! Running requests, each of which appends a token a step to its segment and draws a block every `block_tokens` steps.
//!
//! Requests of a GPU whose next draw falls on the same step and targets the same tier form a *cohort*. All draws of a cohort are one
//! operation on the free list as long as one tier serves them all; the cohort's *regime* is that tier, and its log
//! says since which round. A member that got a block of another tier in some round keeps that as an exception. What
//! a request drew is read off log and exceptions once, when it leaves, and entered in its segment then.

use crate::kv::{Extent, SegmentId};
use crate::placement::Placement;
use crate::placement::draw::OpenDraw;
use crate::units::{CLASSES, PerTier, SegmentClass, Tier, index};

/// A log this long is cut down to what a member can still ask for.
const LONG_LOG: usize = 64;
pub(super) const NO_EXCEPTION: u32 = u32::MAX;

/// A draw of this running request cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starved {
    /// The request, by its slot.
    pub slot: u32,
}

/// One running request.
#[derive(Debug, Clone)]
pub(super) struct Append {
    segment: SegmentId,
    pub(super) admission: u64,
    joined_round: u64,
    /// Rounds of the cohort with flash as the regime, before it joined.
    flash_rounds_before: u64,
    pub(super) cohort: u32,
    pub(super) first_exception: u32,
    pub(super) last_exception: u32,
    pub(super) class: SegmentClass,
    /// Its current block is not of the cohort's regime but of `tier`.
    pub(super) exceptional: bool,
    pub(super) tier: Tier,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Exception {
    pub(super) round: u64,
    pub(super) next: u32,
    pub(super) tier: Tier,
}

#[derive(Debug)]
pub(super) struct Cohort {
    /// It draws in steps with this remainder by the number of cohorts of its target.
    phase: u32,
    target: Tier,
    /// As counted in its GPU's `irregular_cohorts`.
    counts_as_irregular: bool,
    /// Slots in admission order.
    pub(super) members: Vec<u32>,
    pub(super) exceptional: Vec<u32>,
    /// From which round on which tier was the regime; ascending, never empty. Kept only where runs are.
    pub(super) log: Vec<(u64, Tier)>,
    pub(super) round: u64,
    /// Of the rounds so far, those with flash as the regime.
    flash_rounds: u64,
    pub(super) regime: Tier,
    /// Members that are not exceptional, by class.
    pub(super) regular: [u32; CLASSES],
}

/// The running requests of one GPU.
#[derive(Debug, Clone, Default)]
pub(super) struct GpuAppends {
    /// Those whose current block lies in flash.
    flash_writers: u32,
    /// By target.
    pub(super) members: PerTier<u32>,
    /// Cohorts of which a member's current block is not of the target.
    pub(super) irregular_cohorts: u32,
    /// Cohorts with members, in no particular order.
    pub(super) occupied: Vec<u32>,
}

impl Cohort {
    fn is_irregular(&self) -> bool {
        !self.members.is_empty() && (!self.exceptional.is_empty() || self.regime != self.target)
    }

    /// Steps from one with remainder `now` to the next that it draws in.
    #[inline]
    pub(super) const fn ahead(&self, now: u32, phases: u32) -> u32 {
        if self.phase >= now { self.phase - now } else { self.phase + phases - now }
    }

    /// So many rounds have been drawn under the regime at hand.
    #[inline]
    pub(super) fn end_rounds(&mut self, rounds: u64) {
        self.round += rounds;
        if self.regime == Tier::Hbf {
            self.flash_rounds += rounds;
        }
    }
}

/// All running requests of the node.
#[derive(Debug)]
pub struct Appends {
    pub(super) slots: Vec<Option<Append>>,
    pub(super) cohorts: Vec<Cohort>,
    /// Members of each cohort, side by side, because every step asks for some.
    pub(super) sizes: Vec<u32>,
    pub(super) exceptions: Vec<Exception>,
    pub(super) vacant_exceptions: Vec<u32>,
    pub(super) phases: u32,
    /// A step, and its remainder by the phases.
    at: (u64, u32),
    pub(super) gpus: Vec<GpuAppends>,
    pub(super) draw: OpenDraw,
    /// Whether what a request drew must be known run by run, and not only by tier.
    keeps_runs: bool,
}

impl Appends {
    /// From this round on a cohort's regime is `tier`.
    pub(super) fn change_regime(&mut self, cohort: u32, tier: Tier) {
        let cohort = &mut self.cohorts[index(cohort)];
        cohort.regime = tier;
        if !self.keeps_runs {
            return;
        }
        if cohort.log.len() >= LONG_LOG {
            let joined = cohort.members.iter().filter_map(|&slot| self.slots[index(slot)].as_ref());
            let oldest = joined.map(|append| append.joined_round).min().unwrap_or(cohort.round);
            let keep_from = cohort.log.partition_point(|&(from, _)| from <= oldest).saturating_sub(1);
            cohort.log.drain(..keep_from);
        }
        cohort.log.push((cohort.round, tier));
    }

    pub(super) fn new(gpus: usize, block_tokens: u32, keeps_runs: bool) -> Self {
        let cohort = |phase: u32, target| Cohort {
            phase,
            target,
            counts_as_irregular: false,
            members: Vec::new(),
            exceptional: Vec::new(),
            log: vec![(0, target)],
            round: 0,
            flash_rounds: 0,
            regime: target,
            regular: [0; CLASSES],
        };
        let phases = || (0..block_tokens).flat_map(|phase| Tier::ALL.map(|target| cohort(phase, target)));
        let cohorts: Vec<Cohort> = (0..gpus).flat_map(|_| phases()).collect();
        Self {
            slots: Vec::new(),
            sizes: vec![0; cohorts.len()],
            cohorts,
            exceptions: Vec::new(),
            vacant_exceptions: Vec::new(),
            phases: block_tokens,
            at: (0, 0),
            gpus: vec![GpuAppends::default(); gpus],
            draw: OpenDraw::default(),
            keeps_runs,
        }
    }

    /// A cohort's regime, members or exceptions have changed.
    #[inline]
    pub(super) fn count_irregular(&mut self, gpu: u16, cohort: u32) {
        let cohort = &mut self.cohorts[index(cohort)];
        let is_irregular = cohort.is_irregular();
        if is_irregular != cohort.counts_as_irregular {
            cohort.counts_as_irregular = is_irregular;
            let count = &mut self.gpus[usize::from(gpu)].irregular_cohorts;
            if is_irregular { *count += 1 } else { *count -= 1 }
        }
    }

    /// Running requests of a GPU whose current block lies in flash.
    #[must_use]
    pub fn flash_writers(&self, gpu: usize) -> u32 {
        self.gpus[gpu].flash_writers
    }

    /// A step's remainder by the phases.
    #[inline]
    pub(super) fn remainder(&mut self, step: u64) -> u32 {
        // Every GPU asks at every step: one division serves them all.
        if self.at.0 != step {
            self.at = (step, u32::try_from(step % u64::from(self.phases)).unwrap_or(0));
        }
        self.at.1
    }

    /// The first of the two cohorts (targets HBM, HBF) of a GPU that draw `ahead` steps after `step`, less than a cycle.
    pub(super) fn first_cohort(&mut self, gpu: u16, step: u64, ahead: u32) -> u32 {
        let phase = self.remainder(step) + ahead;
        let phase = if phase >= self.phases { phase - self.phases } else { phase };
        (u32::from(gpu) * self.phases + phase) * 2
    }

    pub(super) fn append(&self, slot: u32) -> &Append {
        self.slots[index(slot)].as_ref().expect("Invariant: cohorts name running requests only")
    }

    pub(super) fn append_mut(&mut self, slot: u32) -> &mut Append {
        self.slots[index(slot)].as_mut().expect("Invariant: cohorts name running requests only")
    }
}

impl Placement {
    /// A running request begins to append to `segment`; `slot` names it until `leave`. `step` is the step about to start.
    pub fn join(&mut self, slot: u32, segment: SegmentId, admission: u64, step: u64) {
        let row = self.memory.segment(segment);
        let (gpu, class, target) = (row.gpu, row.class(), row.target());
        let offset = row.resident % self.memory.block_tokens();
        let appends = &mut self.appends;
        let ahead = if offset == 0 { 0 } else { appends.phases - offset };
        let cohort_index = appends.first_cohort(gpu, step, ahead) + target as u32;
        let current = if offset == 0 { None } else { self.memory.top_tier(segment) };
        self.memory.joined(slot, segment, step);
        let cohort = &mut appends.cohorts[index(cohort_index)];
        if cohort.members.is_empty() {
            cohort.regime = current.unwrap_or(target);
            cohort.log.clear();
            cohort.log.push((cohort.round, cohort.regime));
            appends.gpus[usize::from(gpu)].occupied.push(cohort_index);
        }
        let tier = current.unwrap_or(cohort.regime);
        let exceptional = tier != cohort.regime;
        cohort.members.push(slot);
        appends.sizes[index(cohort_index)] += 1;
        if exceptional {
            cohort.exceptional.push(slot);
        } else {
            cohort.regular[class as usize] += 1;
        }
        let append = Append {
            segment,
            admission,
            joined_round: cohort.round,
            flash_rounds_before: cohort.flash_rounds,
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
        appends.gpus[usize::from(gpu)].members[target] += 1;
        appends.count_irregular(gpu, cohort_index);
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
        appends.sizes[index(append.cohort)] -= 1;
        if cohort.members.is_empty() {
            appends.gpus[usize::from(gpu)].occupied.retain(|&occupied| occupied != append.cohort);
        }
        let tier = if append.exceptional {
            cohort.exceptional.retain(|&member| member != slot);
            append.tier
        } else {
            cohort.regular[append.class as usize] -= 1;
            cohort.regime
        };
        let target = cohort.target;
        appends.gpus[usize::from(gpu)].members[target] -= 1;
        appends.count_irregular(gpu, append.cohort);
        if self.memory.segment(append.segment).whole {
            self.enter_counts(&append);
        } else {
            self.enter_runs(&append);
        }
        self.enter_tokens(&append, tokens);
        self.change_writers(gpu, append.class, tier, step, -1);
    }

    /// Enters in its segment the runs of blocks that a request drew in its rounds.
    fn enter_runs(&mut self, append: &Append) {
        let Appends { cohorts, exceptions, vacant_exceptions, .. } = &mut self.appends;
        let cohort = &cohorts[index(append.cohort)];
        let end = cohort.round;
        let mut round = append.joined_round;
        let first = cohort.log.partition_point(|&(from, _)| from <= round).saturating_sub(1);
        // What is left of the log: the regime at hand, and when the next one begins.
        let mut entries = cohort.log[first..].iter().copied();
        let mut regime = entries.next().map_or(cohort.regime, |(_, tier)| tier);
        let mut following = entries.next();
        let mut exception = append.first_exception;
        let runs = std::iter::from_fn(|| {
            if round >= end {
                return None;
            }
            while let Some((_, tier)) = following.filter(|&(from, _)| from <= round) {
                regime = tier;
                following = entries.next();
            }
            let mut until = following.map_or(end, |(from, _)| from.min(end));
            let mut tier = regime;
            if exception != NO_EXCEPTION {
                let odd = exceptions[index(exception)];
                if odd.round == round {
                    (tier, until) = (odd.tier, round + 1);
                    vacant_exceptions.push(exception);
                    exception = odd.next;
                } else {
                    until = until.min(odd.round);
                }
            }
            let blocks = u32::try_from(until - round).unwrap_or(u32::MAX);
            round = until;
            Some(Extent { tier, blocks })
        });
        self.memory.enter_in_flight(append.segment, runs);
    }

    /// Enters in its segment, of which no runs are kept, how many blocks of each tier a request drew.
    fn enter_counts(&mut self, append: &Append) {
        let Appends { cohorts, exceptions, vacant_exceptions, .. } = &mut self.appends;
        let cohort = &cohorts[index(append.cohort)];
        let rounds = cohort.round - append.joined_round;
        if rounds == 0 {
            return;
        }
        let mut in_flash = cohort.flash_rounds - append.flash_rounds_before;
        let mut exception = append.first_exception;
        while exception != NO_EXCEPTION {
            let odd = exceptions[index(exception)];
            if odd.tier == Tier::Hbf {
                in_flash += 1;
            } else {
                in_flash -= 1;
            }
            vacant_exceptions.push(exception);
            exception = odd.next;
        }
        let blocks = |rounds: u64| u32::try_from(rounds).unwrap_or(u32::MAX);
        let entered = PerTier([blocks(rounds - in_flash), blocks(in_flash)]);
        let top = if append.exceptional { append.tier } else { cohort.regime };
        self.memory.enter_whole(append.segment, entered, top);
    }

    /// Enters in its segment the tokens that a request appended.
    fn enter_tokens(&mut self, append: &Append, tokens: u32) {
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

    pub(super) fn change_writers(
        &mut self,
        gpu: u16,
        class: SegmentClass,
        tier: Tier,
        step: u64,
        change: i32,
    ) {
        self.ledger.change_rate(class, tier, step, change);
        if tier == Tier::Hbf {
            let writers = &mut self.appends.gpus[usize::from(gpu)].flash_writers;
            *writers = writers.checked_add_signed(change).expect("Invariant: writers leave once");
        }
    }
}
