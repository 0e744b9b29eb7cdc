//! Events that come twice or late, wrong names, a census that does not add up, a policy that fails.

use super::*;
use crate::policy::{NodeView, SegmentFacts};
use crate::units::Tier;

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
fn a_running_request_does_not_start_on_other_segments() {
    let mut live = layer();
    for segment in ["turn", "lead"] {
        open(&mut live, segment, SegmentClass::Lead);
    }
    live.start_request(&"r", &[Named::present(&"turn")]).expect("it is open");
    let other = live.start_request(&"r", &[Named::present(&"lead")]);
    assert_eq!(other, Err(PlacementError::DuplicateRequest("r".to_owned())));
    live.start_request(&"r", &[Named::present(&"turn")]).expect("it comes again");
    assert_eq!((live.stats().counters.requests, live.stats().counters.repeated_events), (1, 1));
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
