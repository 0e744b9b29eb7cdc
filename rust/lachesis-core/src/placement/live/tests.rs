//! The contract of the live layer, case by case.

use super::*;
use crate::kv::BlockRange;
use crate::policy::{ClassMap, HbfOnly, HbmFirst, NodeView, SegmentFacts};
use crate::units::{SegmentClass, Tier};

const CONFIG: LiveConfig = LiveConfig {
    blocks: PerTier([8, 16]),
    turn_end_strips: true,
    keeps_prompts: false,
    reap_after_s: Some(60.0),
};

fn layer() -> Live<&'static str> {
    Live::new(CONFIG, Box::new(ClassMap::lachesis_deterministic())).expect("valid settings")
}

fn layer_with(config: LiveConfig, policy: impl Policy + 'static) -> Live<&'static str> {
    Live::new(config, Box::new(policy)).expect("valid settings")
}

fn open(live: &mut Live<&'static str>, segment: &'static str, class: SegmentClass) -> Opened {
    live.open(&Opening::new(&segment, class, &"session")).expect("it is new")
}

fn boundary(
    live: &mut Live<&'static str>,
    kind: BoundaryKind,
    segment: Option<&'static str>,
) -> Result<Released<&'static str>> {
    let segment = segment.as_ref().map(Named::present);
    live.boundary(&Boundary { kind, session: &"session", segment, event: None })
}

fn commit(live: &mut Live<&'static str>, segment: &'static str, blocks: &[u32]) {
    live.commit(Named::present(&segment), blocks, None).expect("the blocks are free");
}

fn ids(ranges: &[BlockRange]) -> Vec<u32> {
    let mut ids: Vec<u32> = ranges.iter().flat_map(|run| run.start..run.start + run.blocks).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_sub_agents_blocks_come_back_with_its_return() {
    let mut live = layer();
    assert_eq!(open(&mut live, "worker", SegmentClass::Worker).tier, Tier::Hbm);
    let plan = live.plan(Named::present(&"worker"), 3).expect("there is room");
    assert_eq!(plan.runs().collect::<Vec<_>>(), [(Tier::Hbm, 3)]);
    commit(&mut live, "worker", &[0, 1, 5]);
    let released = boundary(&mut live, BoundaryKind::SubagentReturn, Some("worker")).expect("it is live");
    assert_eq!((ids(&released.freed), released.closed), (vec![0, 1, 5], vec!["worker"]));
    live.check().expect("nothing is lost");
    assert_eq!(live.stats().free, CONFIG.blocks);
}

#[test]
fn a_plan_falls_back_when_the_tier_is_empty_and_refuses_when_both_are() {
    let mut live = layer();
    open(&mut live, "worker", SegmentClass::Worker);
    let plan = live.plan(Named::present(&"worker"), 20).expect("both tiers serve");
    assert_eq!(plan.runs().collect::<Vec<_>>(), [(Tier::Hbm, 8), (Tier::Hbf, 12)]);
    let refused = live.plan(Named::present(&"worker"), 25);
    assert_eq!(
        refused,
        Err(PlacementError::OutOfBlocks { tier: Tier::Hbm, needed: 25, free: 24, reclaimable: 0 })
    );
}

#[test]
fn a_policy_that_never_falls_back_refuses_the_other_tiers_blocks() {
    let mut live = layer_with(CONFIG, HbfOnly);
    open(&mut live, "worker", SegmentClass::Worker);
    let refused = live.commit(Named::present(&"worker"), &[9, 0], None).expect_err("0 lies in HBM");
    assert_eq!(refused.to_string(), "block 0 lies in HBM, but the policy places segment worker in HBF only");
    live.check().expect("no mark is left");
}

#[test]
fn a_shared_block_is_freed_with_its_last_holder() {
    let mut live = layer();
    open(&mut live, "lead", SegmentClass::Lead);
    open(&mut live, "worker", SegmentClass::Worker);
    commit(&mut live, "lead", &[8, 9, 10, 11]);
    live.adopt(Named::present(&"worker"), &[9, 10], false, None).expect("they are written");
    commit(&mut live, "worker", &[0]);
    assert_eq!(live.stats().shared_blocks, 2);
    let released = boundary(&mut live, BoundaryKind::Compaction, None).expect("the session lives");
    assert_eq!((ids(&released.freed), ids(&released.shared)), (vec![8, 11], vec![9, 10]));
    live.check().expect("the worker still holds two");
    let released = boundary(&mut live, BoundaryKind::SubagentReturn, Some("worker")).expect("it is live");
    assert_eq!(ids(&released.freed), [0, 9, 10]);
    live.check().expect("nothing is lost");
}

#[test]
fn a_free_block_that_the_engine_still_caches_can_be_adopted_and_an_empty_one_cannot() {
    let mut live = layer();
    open(&mut live, "first", SegmentClass::Worker);
    commit(&mut live, "first", &[3]);
    boundary(&mut live, BoundaryKind::SubagentReturn, Some("first")).expect("it is live");
    open(&mut live, "second", SegmentClass::Worker);
    let second = Named::present(&"second");
    assert_eq!(live.adopt(second, &[3], false, None), Err(PlacementError::UnheldBlock(3)));
    assert_eq!(live.adopt(second, &[4], true, None), Err(PlacementError::EmptyBlock(4)));
    live.adopt(second, &[3], true, None).expect("it was written");
    live.check().expect("block 3 is held again");
}

#[test]
fn a_close_waits_for_the_requests_that_run() {
    let mut live = layer();
    open(&mut live, "history", SegmentClass::ReasoningStripped);
    open(&mut live, "turn", SegmentClass::ReasoningLaden);
    commit(&mut live, "turn", &[0]);
    let both = [Named::present(&"history"), Named::present(&"turn")];
    live.start_request(&"r1", &both).expect("both are open");
    live.start_request(&"r2", &both[1..]).expect("it is open");
    let released = boundary(&mut live, BoundaryKind::TurnEnd, None).expect("the session lives");
    assert_eq!((ids(&released.deferred), released.waiting), (vec![0], vec!["turn"]));
    // It goes on writing, and nobody else may start on it.
    commit(&mut live, "turn", &[1]);
    assert!(matches!(live.start_request(&"r3", &both), Err(PlacementError::SegmentClosed(_))));
    assert!(live.finish_request(&"r1").expect("it runs").closed.is_empty());
    let released = live.finish_request(&"r2").expect("it runs");
    assert_eq!((ids(&released.freed), released.closed), (vec![0, 1], vec!["turn"]));
    assert_eq!(live.finish_request(&"r2").expect("known").ignored, Some(Ignored::Repeated));
    assert!(matches!(live.finish_request(&"r9"), Err(PlacementError::UnknownRequest(_))));
    live.check().expect("nothing is lost");
}

#[test]
fn a_session_ends_when_its_last_request_does() {
    let mut live = layer();
    open(&mut live, "lead", SegmentClass::Lead);
    open(&mut live, "worker", SegmentClass::Worker);
    live.start_request(&"r", &[Named::present(&"lead")]).expect("it is open");
    let released = boundary(&mut live, BoundaryKind::SessionEnd, None).expect("the session lives");
    assert_eq!((released.closed, released.waiting), (vec!["worker"], vec!["lead"]));
    assert_eq!(live.stats().sessions, 1);
    assert_eq!(live.abort(&"r").expect("it runs").closed, ["lead"]);
    assert_eq!((live.stats().sessions, live.stats().counters.aborted), (0, 1));
}

#[test]
fn a_returned_sub_agent_can_be_taken_up_again_and_its_old_events_are_told() {
    let mut live = layer();
    let first = open(&mut live, "worker", SegmentClass::Worker);
    open(&mut live, "lead", SegmentClass::Lead);
    boundary(&mut live, BoundaryKind::SubagentReturn, Some("worker")).expect("it is live");
    let second = open(&mut live, "worker", SegmentClass::Worker);
    assert!(second.generation > first.generation);
    commit(&mut live, "worker", &[0]);
    let old = Named { segment: &"worker", generation: Some(first.generation) };
    let late = live
        .boundary(&Boundary {
            kind: BoundaryKind::SubagentReturn,
            session: &"session",
            segment: Some(old),
            event: None,
        })
        .expect("a late event is no error");
    assert_eq!(late.ignored, Some(Ignored::Late));
    assert!(matches!(live.commit(old, &[1], None), Err(PlacementError::SegmentClosed(_))));
    let unborn = Named { segment: &"worker", generation: Some(second.generation + 1) };
    assert!(matches!(live.plan(unborn, 1), Err(PlacementError::UnknownSegment(_))));
    let stats = live.stats();
    assert_eq!((stats.counters.late_events, stats.counters.reopened), (1, 1));
    assert_eq!(stats.free[Tier::Hbm], 7);
}

#[test]
fn a_pending_close_is_taken_back_when_the_agent_goes_on() {
    let mut live = layer();
    open(&mut live, "worker", SegmentClass::Worker);
    commit(&mut live, "worker", &[0]);
    live.start_request(&"r", &[Named::present(&"worker")]).expect("it is open");
    boundary(&mut live, BoundaryKind::SubagentReturn, Some("worker")).expect("it is live");
    open(&mut live, "worker", SegmentClass::Worker);
    assert!(live.finish_request(&"r").expect("it runs").closed.is_empty());
    assert_eq!(live.stats().free[Tier::Hbm], 7);
}

#[test]
fn an_event_that_comes_twice_is_taken_once() {
    let mut live = layer();
    let opening = Opening {
        event: Some(&"e1"),
        is_spawn: true,
        ..Opening::new(&"worker", SegmentClass::Worker, &"session")
    };
    let first = live.open(&opening).expect("it is new");
    assert_eq!(live.open(&opening).expect("the same event"), first);
    assert_eq!(live.spawns(&"session"), 1);
    let without_event = Opening::new(&"worker", SegmentClass::Worker, &"session");
    assert!(matches!(live.open(&without_event), Err(PlacementError::DuplicateSegment(_))));
    for _ in 0..2 {
        live.commit(Named::present(&"worker"), &[0, 1], Some(&"e2")).expect("taken once");
    }
    let ended =
        Boundary { kind: BoundaryKind::SessionEnd, session: &"session", segment: None, event: Some(&"e3") };
    assert_eq!(live.boundary(&ended).expect("it lives").closed, ["worker"]);
    assert_eq!(live.boundary(&ended).expect("the same event").ignored, Some(Ignored::Repeated));
    assert_eq!(live.stats().counters.repeated_events, 3);
    live.check().expect("nothing is lost");
}

#[test]
fn late_and_unknown_are_told_apart() {
    let mut live = layer();
    open(&mut live, "lead", SegmentClass::Lead);
    boundary(&mut live, BoundaryKind::SessionEnd, None).expect("it lives");
    for segment in [None, Some("lead")] {
        let late = boundary(&mut live, BoundaryKind::SessionEnd, segment).expect("late is no error");
        assert_eq!(late.ignored, Some(Ignored::Late));
    }
    let unknown = boundary(&mut live, BoundaryKind::SessionEnd, Some("nobody"));
    assert_eq!(unknown, Err(PlacementError::UnknownSegment("nobody".into())));
    assert!(matches!(live.plan(Named::present(&"lead"), 1), Err(PlacementError::SegmentClosed(_))));
    assert!(matches!(live.plan(Named::present(&"nobody"), 1), Err(PlacementError::UnknownSegment(_))));
}

#[test]
fn boundaries_close_what_they_speak_of_and_nothing_else() {
    let mut live = layer();
    let classes = [
        ("prompt", SegmentClass::Prompt),
        ("turn", SegmentClass::ReasoningLaden),
        ("lead", SegmentClass::Lead),
        ("worker", SegmentClass::Worker),
    ];
    for (segment, class) in classes {
        open(&mut live, segment, class);
    }
    let mut closes = |kind, segment| boundary(&mut live, kind, segment).map(|released| released.closed);
    assert_eq!(closes(BoundaryKind::TurnEnd, None), Ok(vec!["turn"]));
    assert_eq!(closes(BoundaryKind::RequestEnd, None), Ok(vec![]));
    assert_eq!(closes(BoundaryKind::Compaction, None), Ok(vec!["lead"]));
    assert!(matches!(closes(BoundaryKind::SubagentReturn, None), Err(PlacementError::SegmentNeeded(_))));
    let refused = closes(BoundaryKind::Compaction, Some("prompt")).expect_err("a prompt outlives it");
    assert_eq!(refused.to_string(), "compaction does not close segment prompt of kind prompt");
    assert_eq!(closes(BoundaryKind::Reset, Some("worker")), Ok(vec!["worker"]));
    assert_eq!(closes(BoundaryKind::SessionEnd, None), Ok(vec!["prompt"]));
}

#[test]
fn a_harness_that_keeps_reasoning_ends_nothing_with_its_turns() {
    let config = LiveConfig { turn_end_strips: false, ..CONFIG };
    let mut live = layer_with(config, ClassMap::lachesis_deterministic());
    assert_eq!(open(&mut live, "turn", SegmentClass::ReasoningLaden).tier, Tier::Hbf);
    for segment in [None, Some("turn")] {
        let kept = boundary(&mut live, BoundaryKind::TurnEnd, segment).expect("it is no error");
        assert_eq!(kept.ignored, Some(Ignored::KeepsReasoning));
    }
    assert_eq!(live.stats().counters.turn_ends_kept, 2);
    assert_eq!(boundary(&mut live, BoundaryKind::SessionEnd, None).expect("it lives").closed, ["turn"]);
}

#[test]
fn what_is_idle_has_lost_its_boundary_unless_a_request_runs_on_it() {
    let mut live = layer();
    for segment in ["idle", "running", "fresh"] {
        open(&mut live, segment, SegmentClass::Worker);
    }
    live.start_request(&"r", &[Named::present(&"running")]).expect("it is open");
    live.advance(59.9).expect("a time");
    commit(&mut live, "fresh", &[0]);
    assert_eq!(live.reap().expect("no policy fails").closed, Vec::<&str>::new());
    live.advance(60.0).expect("a time");
    live.advance(1.0).expect("an earlier time changes nothing");
    assert_eq!(live.reap().expect("no policy fails").closed, ["idle"]);
    live.advance(120.0).expect("a time");
    assert_eq!(live.reap().expect("no policy fails").closed, ["fresh"]);
    assert_eq!(live.stats().counters.reaped, 2);
    assert!(live.advance(f64::NAN).is_err());
}

#[test]
fn the_engine_can_take_single_blocks_back() {
    let mut live = layer();
    open(&mut live, "lead", SegmentClass::Lead);
    open(&mut live, "worker", SegmentClass::Worker);
    commit(&mut live, "lead", &[8, 9, 10, 11, 12]);
    live.adopt(Named::present(&"worker"), &[9, 10, 11], false, None).expect("they are written");
    let lead = Named::present(&"lead");
    assert_eq!(live.free(lead, &[9, 9]), Err(PlacementError::DoubleFree(9)));
    assert_eq!(live.free(lead, &[13]), Err(PlacementError::DoubleFree(13)));
    assert_eq!(live.free(lead, &[99]), Err(PlacementError::UnknownBlock { block: 99, last: 23 }));
    let refused = live.free(Named::present(&"worker"), &[9, 12]).expect_err("12 is the lead's");
    assert!(matches!(refused, PlacementError::BlockHeld { block: 12, .. }));
    let released = live.free(lead, &[8, 10]).expect("it holds both");
    assert_eq!((ids(&released.freed), ids(&released.shared)), (vec![8], vec![10]));
    assert_eq!(ids(&live.blocks_of(lead).expect("it is live")), [9, 11, 12]);
    let released = live.free(Named::present(&"worker"), &[10]).expect("it holds it");
    assert_eq!(ids(&released.freed), [10]);
    live.check().expect("nothing is lost");
}

#[test]
fn what_a_policy_keeps_is_reclaimed_least_recent_first_and_last_block_first() {
    let mut live = layer_with(CONFIG, HbmFirst);
    for (segment, blocks) in [("first", [0, 1]), ("second", [2, 3])] {
        open(&mut live, segment, SegmentClass::Worker);
        commit(&mut live, segment, &blocks);
        let released = boundary(&mut live, BoundaryKind::SubagentReturn, Some(segment)).expect("it lives");
        assert_eq!((released.kept_blocks, released.freed), (2, vec![]));
    }
    open(&mut live, "third", SegmentClass::Worker);
    let named = Named::present(&"third");
    assert!(matches!(live.plan(named, 24), Err(PlacementError::OutOfBlocks { reclaimable: 4, .. })));
    assert_eq!(ids(&live.reclaim(1, None).freed), [1]);
    assert_eq!(ids(&live.reclaim(2, None).freed), [0, 3]);
    live.check().expect("nothing is lost");
    assert_eq!(ids(&live.reclaim(9, None).freed), [2]);
    assert_eq!((live.stats().kept_blocks, live.stats().free), (PerTier([0, 0]), CONFIG.blocks));
}

#[test]
fn a_prompt_can_stay_for_the_next_session() {
    let config = LiveConfig { keeps_prompts: true, ..CONFIG };
    let mut live = layer_with(config, ClassMap::lachesis_deterministic());
    open(&mut live, "prompt", SegmentClass::Prompt);
    commit(&mut live, "prompt", &[8, 9]);
    assert_eq!(boundary(&mut live, BoundaryKind::SessionEnd, None).expect("it lives").kept_blocks, 2);
    live.open(&Opening::new(&"prompt", SegmentClass::Prompt, &"next")).expect("the name is free");
    live.adopt(Named::present(&"prompt"), &[8, 9], false, None).expect("they are written");
    // Reclaiming the old copy frees nothing that the new session uses.
    let released = live.reclaim(2, None);
    assert_eq!((ids(&released.freed), ids(&released.shared)), (vec![], vec![8, 9]));
    live.check().expect("nothing is lost");
}

#[test]
fn wrong_names_are_told_exactly() {
    let mut live = layer();
    open(&mut live, "lead", SegmentClass::Lead);
    let named = Some(Named::present(&"lead"));
    let wrong = Boundary { kind: BoundaryKind::SessionEnd, session: &"other", segment: named, event: None };
    let refused = live.boundary(&wrong).expect_err("it is of another session");
    assert_eq!(refused.to_string(), "segment lead belongs to session session, not to other");
    let opening = Opening::new(&"worker", SegmentClass::Worker, &"other");
    let of_other = Opening { parent: Some(&"lead"), ..opening };
    assert!(matches!(live.open(&of_other), Err(PlacementError::WrongSession { .. })));
    let orphan = Opening { parent: Some(&"nobody"), ..Opening::new(&"w", SegmentClass::Worker, &"session") };
    assert_eq!(live.open(&orphan), Err(PlacementError::UnknownSegment("nobody".into())));
    let unscored = Opening { score: Some(f64::NAN), ..orphan };
    assert!(matches!(live.open(&unscored), Err(PlacementError::Value { name: "score", .. })));
}

#[test]
fn a_census_that_does_not_add_up_names_the_difference() {
    let mut live = layer();
    open(&mut live, "worker", SegmentClass::Worker);
    commit(&mut live, "worker", &[0, 1]);
    live.blocks.free[Tier::Hbm] += 1;
    let fault = live.check().expect_err("a block too many");
    assert_eq!(fault.to_string(), "census of HBM: 7 free + 2 held = 9, but the tier has 8");
    live.blocks.free[Tier::Hbm] -= 1;
    live.blocks.hold(1);
    let fault = live.check().expect_err("a holder too many");
    assert_eq!(fault.to_string(), "census: holders of block 1 1 by the table, but 2 by the count");
}

/// A policy that fails at the second call.
#[derive(Debug, Default)]
struct Failing {
    calls: u32,
    fault: Option<String>,
}

impl Failing {
    fn count(&mut self) {
        self.calls += 1;
        self.fault = (self.calls == 2).then(|| "call 2 failed".to_owned());
    }
}

impl Policy for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn open(&mut self, _: &SegmentFacts, _: &NodeView) -> Tier {
        self.count();
        Tier::Hbm
    }

    fn closed(&mut self, _: &SegmentFacts, _: Tier, _: u32) {
        self.count();
    }

    fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }
}

#[test]
fn a_policy_that_fails_changes_nothing() {
    let mut live = layer_with(CONFIG, Failing::default());
    open(&mut live, "first", SegmentClass::Worker);
    let before = live.stats();
    let opening = Opening::new(&"second", SegmentClass::Worker, &"session");
    assert_eq!(live.open(&opening), Err(PlacementError::Policy("call 2 failed".into())));
    assert_eq!(live.stats(), before);

    let mut live = layer_with(CONFIG, Failing::default());
    open(&mut live, "first", SegmentClass::Worker);
    live.start_request(&"r", &[Named::present(&"first")]).expect("it is open");
    boundary(&mut live, BoundaryKind::SubagentReturn, Some("first")).expect("it waits");
    let before = live.stats();
    assert!(matches!(live.finish_request(&"r"), Err(PlacementError::Policy(_))));
    assert_eq!(live.stats(), before);
    live.check().expect("the request still runs");
    assert_eq!(live.finish_request(&"r").expect("the policy is well again").closed, ["first"]);
}

#[test]
fn the_segment_table_takes_64_bytes_a_segment_and_8_a_run() {
    // 917,505 is where the index has just doubled.
    for (segments, runs) in [(1_000_u64, 1_u32), (917_505, 1), (20_000, 40)] {
        let blocks = u32::try_from(segments).expect("small") * runs * 2;
        let config = LiveConfig { blocks: PerTier([blocks, 0]), ..CONFIG };
        let mut live: Live<u64> = Live::new(config, Box::new(HbmFirst)).expect("valid settings");
        let mut next = 0;
        for segment in 0..segments {
            live.open(&Opening::new(&segment, SegmentClass::Worker, &(segment / 8))).expect("it is new");
            // Every second block, so that no two of them make one run.
            let ids: Vec<u32> = (0..runs).map(|run| next + 2 * run).collect();
            next += 2 * runs;
            live.commit(Named::present(&segment), &ids, None).expect("they are free");
        }
        let extents = u64::from(live.stats().extents);
        assert_eq!(extents, segments * u64::from(runs));
        let bound = 64 * segments + 8 * extents;
        assert!(live.table_bytes() as u64 <= bound, "{} bytes, bound {bound}", live.table_bytes());
    }
}
