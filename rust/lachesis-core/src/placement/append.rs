//! Running requests, each of which appends a token a step to its segment and draws a block every `block_tokens` steps.
//!
//! They draw in cohorts; what a request drew is read off its cohort's log and its own exceptions once, when it leaves, and
//! entered in its segment then.

use crate::kv::{Extent, SegmentId};
use crate::placement::Placement;
use crate::placement::cohort::{Cohort, Roster};
use crate::placement::draw::OpenDraw;
use crate::units::{PerTier, SegmentClass, Tier, index};

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

/// All running requests of the node.
#[derive(Debug)]
pub struct Appends {
    pub(super) slots: Vec<Option<Append>>,
    /// By phase, GPU and target.
    pub(super) cohorts: Vec<Cohort>,
    /// Of each cohort.
    pub(super) rosters: Vec<Roster>,
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
    pub(super) fn new(gpus: usize, block_tokens: u32, keeps_runs: bool) -> Self {
        let targets = || (0..gpus).flat_map(|_| Tier::ALL);
        let cohorts =
            (0..block_tokens).flat_map(|phase| targets().map(move |target| Cohort::new(phase, target)));
        let rosters = (0..block_tokens).flat_map(|_| targets().map(Roster::new));
        Self {
            slots: Vec::new(),
            cohorts: cohorts.collect(),
            rosters: rosters.collect(),
            exceptions: Vec::new(),
            vacant_exceptions: Vec::new(),
            phases: block_tokens,
            at: (0, 0),
            gpus: vec![GpuAppends::default(); gpus],
            draw: OpenDraw::default(),
            keeps_runs,
        }
    }

    /// From this round on a cohort's regime is `tier`.
    pub(super) fn change_regime(&mut self, cohort: u32, tier: Tier) {
        let (cohort, roster) = (&mut self.cohorts[index(cohort)], &mut self.rosters[index(cohort)]);
        cohort.regime = tier;
        if !self.keeps_runs {
            return;
        }
        if roster.log.len() >= LONG_LOG {
            let joined = roster.members.iter().filter_map(|&slot| self.slots[index(slot)].as_ref());
            let oldest = joined.map(|append| append.joined_round).min().unwrap_or(cohort.round);
            let keep_from = roster.log.partition_point(|&(from, _)| from <= oldest).saturating_sub(1);
            roster.log.drain(..keep_from);
        }
        roster.log.push((cohort.round, tier));
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
        (phase * crate::units::narrow(self.gpus.len()) + u32::from(gpu)) * 2
    }

    pub(super) fn append(&self, slot: u32) -> &Append {
        self.slots[index(slot)].as_ref().expect("Invariant: cohorts name running requests only")
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
        let roster = &mut appends.rosters[index(cohort_index)];
        if cohort.size == 0 {
            cohort.regime = current.unwrap_or(target);
            roster.log.clear();
            roster.log.push((cohort.round, cohort.regime));
            appends.gpus[usize::from(gpu)].occupied.push(cohort_index);
        }
        let tier = current.unwrap_or(cohort.regime);
        let exceptional = tier != cohort.regime;
        roster.members.push(slot);
        cohort.size += 1;
        if exceptional {
            roster.exceptional.push(slot);
            cohort.has_exceptional = true;
        } else {
            roster.regular[class as usize] += 1;
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
        let roster = &mut appends.rosters[index(append.cohort)];
        let place = roster.members.iter().position(|&member| member == slot);
        roster.members.remove(place.expect("Invariant: a running request is a member of its cohort"));
        cohort.size -= 1;
        if cohort.size == 0 {
            appends.gpus[usize::from(gpu)].occupied.retain(|&occupied| occupied != append.cohort);
        }
        let tier = if append.exceptional {
            roster.exceptional.retain(|&member| member != slot);
            cohort.has_exceptional = !roster.exceptional.is_empty();
            append.tier
        } else {
            roster.regular[append.class as usize] -= 1;
            cohort.regime
        };
        let target = Tier::ALL[index(append.cohort & 1)];
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

    /// Reads ahead what `leave` will need.
    pub fn fetch_leave(&self, slot: u32) {
        let append = self.appends.append(slot);
        let roster = &self.appends.rosters[index(append.cohort)];
        std::hint::black_box((roster.members.first().copied(), roster.log.last().map(|&(from, _)| from)));
        self.memory.fetch_top(append.segment);
    }

    /// Enters in its segment the runs of blocks that a request drew in its rounds.
    fn enter_runs(&mut self, append: &Append) {
        let Appends { cohorts, rosters, exceptions, vacant_exceptions, .. } = &mut self.appends;
        let cohort = &cohorts[index(append.cohort)];
        let log = &rosters[index(append.cohort)].log;
        let end = cohort.round;
        let mut round = append.joined_round;
        // Few entries are younger than a running request, and a search by halves would fetch old ones from memory.
        let first = log.iter().rposition(|&(from, _)| from <= round).unwrap_or(0);
        // What is left of the log: the regime at hand, and when the next one begins.
        let mut entries = log[first..].iter().copied();
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

    #[inline(never)]
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
