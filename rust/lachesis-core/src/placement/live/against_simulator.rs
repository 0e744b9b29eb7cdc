//! The simulator's placement and the live layer, given the same segment events one after the other: every block lies in the same tier,
//! and every boundary frees the same blocks.
//!
//! The simulator counts, and draws for running requests by the cohort; the live layer holds block ids, and is asked for each block. They share
//! `Decisions` and the policies, and nothing else that could make them agree.

use proptest::prelude::*;

use crate::kv::SegmentId;
use crate::placement::live::{Boundary, BoundaryKind, Live, LiveConfig, Named, Opening, PlacementError};
use crate::placement::{Need, Placement};
use crate::policy::{
    Capacity, ClassMap, HbfOnly, HbmOnly, Lachesis, LachesisOptions, Policy, RankedAgainst, Reserve,
    SegmentFacts,
};
use crate::units::{PerTier, SegmentClass, Tier, index, narrow};

const BLOCK_TOKENS: u32 = 4;

/// Every policy that frees at boundaries; of `lachesis`, every option.
fn policies() -> Vec<Box<dyn Fn() -> Box<dyn Policy>>> {
    let mut policies: Vec<Box<dyn Fn() -> Box<dyn Policy>>> = vec![
        Box::new(|| Box::new(ClassMap::lachesis_deterministic())),
        Box::new(|| Box::new(HbfOnly)),
        Box::new(|| Box::new(HbmOnly)),
    ];
    for ranked_against in [RankedAgainst::LiveWorkers, RankedAgainst::WorkersInHbm] {
        for capacity in [Capacity::Total, Capacity::Free] {
            for reserve in [Reserve::Expected, Reserve::Live, Reserve::Nothing] {
                let options = LachesisOptions { ranked_against, capacity, reserve, margin: 0.5 };
                policies.push(Box::new(move || Box::new(Lachesis::new("lachesis", options))));
            }
        }
    }
    policies
}

/// An event of a segment. A number picks one of the live segments; nothing happens if there is none.
#[derive(Debug, Clone)]
enum Event {
    Open(SegmentClass, i32),
    /// Tokens are written at once.
    Write(usize, u32),
    /// A request begins to append a token a step.
    Start(usize),
    Step(u8),
    /// It ends.
    Stop(usize),
    Boundary(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let class = prop::sample::select(SegmentClass::ALL.to_vec());
    prop_oneof![
        2 => (class, 0..40).prop_map(|(class, score)| Event::Open(class, score)),
        1 => (0..40).prop_map(|score| Event::Open(SegmentClass::Worker, score)),
        3 => (any::<usize>(), 1_u32..40).prop_map(|(which, tokens)| Event::Write(which, tokens)),
        3 => any::<usize>().prop_map(Event::Start),
        4 => (1_u8..12).prop_map(Event::Step),
        1 => any::<usize>().prop_map(Event::Stop),
        2 => any::<usize>().prop_map(Event::Boundary),
    ]
}

/// A live segment in both.
struct Segment {
    key: u64,
    id: SegmentId,
    facts: SegmentFacts,
    /// Tokens so far.
    tokens: u32,
    /// The slot and the tokens of the request that appends to it.
    running: Option<(u32, u32)>,
    /// Its blocks in the live layer, in the order in which they were written.
    blocks: Vec<u32>,
}

struct Both {
    simulator: Placement,
    live: Live<u64>,
    /// The engine's free lists.
    free: PerTier<Vec<u32>>,
    segments: Vec<Segment>,
    opened: u64,
    admissions: u64,
    step: u64,
    vacant: Vec<u32>,
}

impl Both {
    fn new(blocks: PerTier<u32>, policy: &dyn Fn() -> Box<dyn Policy>) -> Self {
        let config = LiveConfig { blocks, turn_end_strips: true, keeps_prompts: false, reap_after_s: None };
        let hbm = blocks[Tier::Hbm];
        Self {
            simulator: Placement::new(1, blocks, BLOCK_TOKENS, policy(), 0),
            live: Live::new(config, policy()).expect("valid settings"),
            free: PerTier([(0..hbm).collect(), (hbm..hbm + blocks[Tier::Hbf]).collect()]),
            segments: Vec::new(),
            opened: 0,
            admissions: 0,
            step: 0,
            vacant: (0..256).rev().collect(),
        }
    }

    fn pick(&self, which: usize) -> Option<usize> {
        which.checked_rem(self.segments.len())
    }

    /// The live layer is asked where `count` blocks go, as an engine would; they are drawn and committed. `false` if it says that there are none.
    fn ask(&mut self, at: usize, count: u32) -> bool {
        let segment = &mut self.segments[at];
        let plan = match self.live.plan(Named::present(&segment.key), count) {
            Ok(plan) => plan,
            Err(PlacementError::OutOfBlocks { .. }) => return false,
            Err(error) => panic!("{error}"),
        };
        let mut drawn = Vec::new();
        for (tier, blocks) in plan.runs() {
            let list = &mut self.free[tier];
            drawn.extend(list.drain(list.len() - index(blocks)..));
        }
        self.live.commit(Named::present(&segment.key), &drawn, None).expect("they are free");
        segment.blocks.extend(drawn);
        true
    }

    fn take(&mut self, event: &Event) {
        match *event {
            Event::Open(class, score) => self.open(class, f64::from(score)),
            Event::Write(which, tokens) => self.write(which, tokens),
            Event::Start(which) => self.start(which),
            Event::Step(steps) => (0..steps).for_each(|_| self.step()),
            Event::Stop(which) => {
                if let Some(at) = self.pick(which) {
                    self.stop(at);
                }
            }
            Event::Boundary(which) => self.boundary(which),
        }
    }

    fn open(&mut self, class: SegmentClass, score: f64) {
        let key = self.opened;
        self.opened += 1;
        let score = (class == SegmentClass::Worker).then_some(score);
        let facts = SegmentFacts { class, gpu: 0, draw: key, segment: 0, is_shared: false, score };
        let id = self.simulator.open(&facts);
        let opened = self.live.open(&Opening { score, ..Opening::new(&key, class, &key) });
        let tier = opened.expect("it is new").tier;
        assert_eq!(self.simulator.memory.segment(id).target(), tier, "segment {key}");
        let segment = Segment { key, id, facts, tokens: 0, running: None, blocks: Vec::new() };
        self.segments.push(segment);
    }

    fn write(&mut self, which: usize, tokens: u32) {
        let Some(at) = self.pick(which).filter(|&at| self.segments[at].running.is_none()) else { return };
        let segment = &self.segments[at];
        let mut need = Need::default();
        self.simulator.add_need(segment.id, tokens, &mut need);
        let can_have = self.simulator.memory.can_have(0, need);
        let blocks = (segment.tokens + tokens).div_ceil(BLOCK_TOKENS) - narrow(segment.blocks.len());
        assert_eq!(self.ask(at, blocks), can_have, "both say whether the blocks can be had");
        if can_have {
            self.segments[at].tokens += tokens;
            self.simulator.write_suffix(self.segments[at].id, tokens).expect("they can be had");
        }
    }

    fn start(&mut self, which: usize) {
        let Some(at) = self.pick(which).filter(|&at| self.segments[at].running.is_none()) else { return };
        let Some(slot) = self.vacant.pop() else { return };
        self.admissions += 1;
        self.simulator.join(slot, self.segments[at].id, self.admissions, self.step);
        self.segments[at].running = Some((slot, 0));
        // Requests draw in the order of their admission.
        let segment = self.segments.remove(at);
        self.segments.push(segment);
    }

    /// A step of all running requests, if the blocks for it can be had.
    fn step(&mut self) {
        let running: Vec<usize> =
            (0..self.segments.len()).filter(|&at| self.segments[at].running.is_some()).collect();
        let draws = |at: &usize| self.segments[*at].tokens.is_multiple_of(BLOCK_TOKENS);
        let drawing: Vec<usize> = running.iter().copied().filter(draws).collect();
        let scarcest = Tier::ALL.map(|tier| self.free[tier].len()).into_iter().min().unwrap_or(0);
        if scarcest < drawing.len() && !self.simulator.memory.falls_back {
            return;
        }
        if self.free.0.iter().map(Vec::len).sum::<usize>() < drawing.len() {
            return;
        }
        for at in drawing {
            assert!(self.ask(at, 1), "there is a free block");
        }
        self.simulator.draw_for_step(0, self.step).expect("there are free blocks");
        for at in running {
            let segment = &mut self.segments[at];
            segment.tokens += 1;
            segment.running = segment.running.map(|(slot, tokens)| (slot, tokens + 1));
        }
        self.step += 1;
    }

    fn stop(&mut self, at: usize) {
        if let Some((slot, tokens)) = self.segments[at].running.take() {
            self.simulator.leave(slot, tokens, self.step);
            self.vacant.push(slot);
        }
    }

    fn boundary(&mut self, which: usize) {
        let Some(at) = self.pick(which) else { return };
        self.stop(at);
        self.compare(at);
        let segment = self.segments.remove(at);
        let kind = match segment.facts.class {
            SegmentClass::ReasoningLaden => BoundaryKind::TurnEnd,
            SegmentClass::Worker | SegmentClass::Reviewer => BoundaryKind::SubagentReturn,
            _ => BoundaryKind::SessionEnd,
        };
        self.simulator.close(segment.id, &segment.facts);
        let named = Some(Named::present(&segment.key));
        let boundary = Boundary { kind, session: &segment.key, segment: named, event: None };
        let released = self.live.boundary(&boundary).expect("it is live");
        let mut freed: Vec<u32> =
            released.freed.iter().flat_map(|run| run.start..run.start + run.blocks).collect();
        freed.sort_unstable();
        let mut held = segment.blocks.clone();
        held.sort_unstable();
        assert_eq!(freed, held, "a boundary frees all that its segment holds");
        for block in freed {
            self.free[self.live.tier_of(block).expect("it exists")].push(block);
        }
    }

    /// A segment at rest holds as many blocks of each tier in both, the last of the same tier.
    fn compare(&self, at: usize) {
        let segment = &self.segments[at];
        let row = self.simulator.memory.segment(segment.id);
        let tier_of = |&block: &u32| self.live.tier_of(block).expect("it exists");
        let of = |tier| narrow(segment.blocks.iter().filter(|block| tier_of(block) == tier).count());
        assert_eq!(row.blocks, PerTier(Tier::ALL.map(of)), "segment {}", segment.key);
        let top = self.simulator.memory.top_tier(segment.id);
        assert_eq!(top, segment.blocks.last().map(tier_of), "segment {}", segment.key);
        assert_eq!(row.tokens, segment.tokens);
    }

    /// Both have the same blocks free, and both add up.
    fn check(&self) {
        assert_eq!(self.simulator.memory.gpus[0].free, self.live.stats().free);
        self.simulator.check().expect("every block is somewhere");
        self.live.check().expect("every block is somewhere");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_live_layer_places_as_the_simulator(
        hbm in 0_u32..60,
        hbf in 20_u32..300,
        events in prop::collection::vec(event(), 1..160),
    ) {
        for policy in policies() {
            let mut both = Both::new(PerTier([hbm, hbf]), &*policy);
            for event in &events {
                both.take(event);
                both.check();
            }
            let written = both.live.stats().counters.fallbacks;
            prop_assert_eq!(written, both.simulator.memory.fallbacks);
            while !both.segments.is_empty() {
                both.boundary(0);
                both.check();
            }
            prop_assert_eq!(both.simulator.memory.node_used(), PerTier([0, 0]));
        }
    }
}
