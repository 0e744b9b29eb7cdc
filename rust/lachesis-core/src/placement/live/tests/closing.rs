//! Boundaries: what they close, what they wait for, and who goes on after one.

use super::*;
use crate::units::Tier;

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
    assert_eq!((first.tier, second.tier), (Tier::Hbm, Tier::Hbm), "the policy is asked again");
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
    let first = open(&mut live, "worker", SegmentClass::Worker);
    commit(&mut live, "worker", &[0]);
    live.start_request(&"r", &[Named::present(&"worker")]).expect("it is open");
    boundary(&mut live, BoundaryKind::SubagentReturn, Some("worker")).expect("it is live");
    let others = [
        Opening::new(&"worker", SegmentClass::Reviewer, &"session"),
        Opening::new(&"worker", SegmentClass::Worker, &"another session"),
    ];
    for other in others {
        assert!(matches!(live.open(&other), Err(PlacementError::DuplicateSegment(_))), "{other:?}");
    }
    let second = open(&mut live, "worker", SegmentClass::Worker);
    assert_eq!(second, Opened { generation: first.generation + 1, tier: Tier::Hbm });
    assert!(live.finish_request(&"r").expect("it runs").closed.is_empty());
    assert_eq!(live.stats().free[Tier::Hbm], 7);
}

#[test]
fn a_request_holds_all_the_segments_that_it_names() {
    let mut live = layer();
    for (segment, block) in [("history", 0), ("turn", 1)] {
        open(&mut live, segment, SegmentClass::ReasoningLaden);
        commit(&mut live, segment, &[block]);
    }
    let both = [Named::present(&"history"), Named::present(&"turn")];
    live.start_request(&"r", &both).expect("both are open");
    live.start_request(&"r", &both).expect("it comes again");
    let released = boundary(&mut live, BoundaryKind::TurnEnd, None).expect("both are live");
    assert_eq!((ids(&released.deferred), released.waiting.len()), (vec![0, 1], 2));
    live.check().expect("nothing is lost");
    assert_eq!(ids(&live.finish_request(&"r").expect("it runs").freed), [0, 1]);
}

#[test]
fn a_sub_agent_may_outlive_the_context_that_spawned_it() {
    let mut live = layer();
    open(&mut live, "turn", SegmentClass::ReasoningLaden);
    open(&mut live, "lead", SegmentClass::Lead);
    boundary(&mut live, BoundaryKind::TurnEnd, None).expect("it is live");
    for parent in ["turn", "lead"] {
        let child = if parent == "turn" { "of the turn" } else { "of the lead" };
        let opening = Opening::new(&child, SegmentClass::Worker, &"session");
        live.open(&Opening { parent: Some(&parent), ..opening }).expect("its parent is known");
    }
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
