//! Blocks come, are shared, kept and given back.

use super::*;
use crate::policy::{HbfOnly, HbmFirst};
use crate::units::Tier;

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
fn blocks_of_one_tier_can_be_reclaimed_until_there_are_enough() {
    let mut live = layer_with(CONFIG, HbmFirst);
    for (segment, blocks) in [("first", [0, 8]), ("second", [9, 1])] {
        open(&mut live, segment, SegmentClass::Worker);
        commit(&mut live, segment, &blocks);
        boundary(&mut live, BoundaryKind::SubagentReturn, Some(segment)).expect("it lives");
    }
    // What lies on top goes as well.
    assert_eq!(ids(&live.reclaim(1, Some(Tier::Hbm)).freed), [0, 8]);
    assert_eq!(live.stats().kept_blocks, PerTier([1, 1]));
    assert_eq!(ids(&live.reclaim(9, Some(Tier::Hbf)).freed), [1, 9]);
}

#[test]
fn a_plan_keeps_within_what_the_engine_has_free() {
    let mut live = layer();
    open(&mut live, "worker", SegmentClass::Worker);
    let named = Named::present(&"worker");
    let within = |blocks, free| live.plan_within(named, blocks, Some(PerTier(free))).map(|plan| plan.blocks);
    assert_eq!(within(3, [2, 5]), Ok(PerTier([2, 1])));
    assert_eq!(within(3, [99, 99]), Ok(PerTier([3, 0])));
    assert!(matches!(within(3, [1, 1]), Err(PlacementError::OutOfBlocks { free: 2, .. })));
}

#[test]
fn a_block_that_two_ended_segments_shared_with_a_third_is_told_once() {
    let mut live = layer();
    for segment in ["first", "second"] {
        open(&mut live, segment, SegmentClass::Lead);
    }
    live.open(&Opening::new(&"third", SegmentClass::Lead, &"another session")).expect("it is new");
    commit(&mut live, "first", &[8]);
    for segment in ["second", "third"] {
        live.adopt(Named::present(&segment), &[8], false, None).expect("it is written");
    }
    let released = boundary(&mut live, BoundaryKind::SessionEnd, None).expect("both are live");
    assert_eq!((released.freed, released.shared), (vec![], vec![BlockRange { start: 8, blocks: 1 }]));
    live.check().expect("nothing is lost");
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
