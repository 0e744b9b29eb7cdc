//! Random calls, legal and illegal: what holds after each.
//!
//! The plain side knows only who holds which block, and derives from it what every call must free.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::kv::BlockRange;
use crate::policy::{ClassMap, HbfOnly, HbmFirst, Lachesis, LachesisOptions};
use crate::units::{SegmentClass, Tier, index};

const BLOCKS: PerTier<u32> = PerTier([10, 14]);
const SEGMENTS: u8 = 6;

#[derive(Debug, Clone)]
enum Call {
    Open {
        segment: u8,
        class: u8,
        session: u8,
        score: u8,
    },
    /// Plans, draws the lowest free ids as planned, commits.
    Append {
        segment: u8,
        blocks: u32,
    },
    Commit {
        segment: u8,
        blocks: Vec<u32>,
    },
    /// Blocks of `of` from the `first`-th on, or any ids.
    Adopt {
        segment: u8,
        of: u8,
        first: usize,
        blocks: Vec<u32>,
        cached: bool,
    },
    Free {
        segment: u8,
        of: u8,
        first: usize,
        blocks: Vec<u32>,
    },
    Start {
        request: u8,
        segments: Vec<u8>,
    },
    Finish {
        request: u8,
    },
    Boundary {
        kind: u8,
        session: u8,
        segment: Option<u8>,
    },
    Reclaim {
        blocks: u32,
    },
    Reap {
        after: u8,
    },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let segment = 0..SEGMENTS;
    let ids = || prop::collection::vec(0..27_u32, 0..4);
    let call = prop_oneof![
        3 => (segment.clone(), 0..7_u8, 0..2_u8, any::<u8>())
            .prop_map(|(segment, class, session, score)| Call::Open { segment, class, session, score }),
        4 => (segment.clone(), 1..6_u32).prop_map(|(segment, blocks)| Call::Append { segment, blocks }),
        1 => (segment.clone(), ids()).prop_map(|(segment, blocks)| Call::Commit { segment, blocks }),
        2 => (segment.clone(), segment.clone(), 0..4_usize, ids(), any::<bool>())
            .prop_map(|(segment, of, first, blocks, cached)| Call::Adopt { segment, of, first, blocks, cached }),
        2 => (segment.clone(), segment.clone(), 0..4_usize, ids())
            .prop_map(|(segment, of, first, blocks)| Call::Free { segment, of, first, blocks }),
        2 => (0..3_u8, prop::collection::vec(segment.clone(), 1..3))
            .prop_map(|(request, segments)| Call::Start { request, segments }),
        2 => (0..3_u8).prop_map(|request| Call::Finish { request }),
        3 => (0..6_u8, 0..2_u8, prop::option::of(segment))
            .prop_map(|(kind, session, segment)| Call::Boundary { kind, session, segment }),
        1 => (0..6_u32).prop_map(|blocks| Call::Reclaim { blocks }),
        1 => (0..40_u8).prop_map(|after| Call::Reap { after }),
    ];
    prop::collection::vec(call, 1..120)
}

fn policy(which: u8) -> Box<dyn Policy> {
    match which % 4 {
        0 => Box::new(ClassMap::lachesis_deterministic()),
        1 => Box::new(HbmFirst),
        2 => Box::new(HbfOnly),
        _ => Box::new(Lachesis::new("lachesis", LachesisOptions::default())),
    }
}

fn layer(which: u8, keeps_prompts: bool) -> Live<u8> {
    let config =
        LiveConfig { blocks: BLOCKS, turn_end_strips: true, keeps_prompts, reap_after_s: Some(30.0) };
    Live::new(config, policy(which)).expect("valid settings")
}

fn ids(ranges: &[BlockRange]) -> Vec<u32> {
    ranges.iter().flat_map(|run| run.start..run.start + run.blocks).collect()
}

/// Blocks of every live segment, in order.
fn held(live: &Live<u8>) -> BTreeMap<u8, Vec<u32>> {
    (0..SEGMENTS)
        .filter_map(|segment| {
            let runs = live.blocks_of(Named::present(&segment)).ok()?;
            Some((segment, ids(&runs)))
        })
        .collect()
}

fn free_ids(live: &Live<u8>, tier: Tier) -> Vec<u32> {
    (0_u32..)
        .zip(live.blocks.all_holders())
        .filter_map(|(block, holders)| (holders == 0 && live.blocks.tier_of(block) == tier).then_some(block))
        .collect()
}

/// Either blocks of another segment, which exist, or the ids given.
fn some_blocks(live: &Live<u8>, of: u8, first: usize, otherwise: &[u32]) -> Vec<u32> {
    match live.blocks_of(Named::present(&of)) {
        Ok(runs) if !runs.is_empty() => ids(&runs).into_iter().skip(first).take(3).collect(),
        _ => otherwise.to_vec(),
    }
}

fn apply(live: &mut Live<u8>, clock_s: &mut f64, call: &Call) -> Result<Released<u8>> {
    let nothing = |()| Released::default();
    match call {
        Call::Open { segment, class, session, score } => {
            let class = SegmentClass::from_number(*class).expect("seven classes");
            let score = (*score > 50).then(|| f64::from(*score));
            live.open(&Opening { score, is_spawn: true, ..Opening::new(segment, class, session) })
                .map(|_| Released::default())
        }
        Call::Append { segment, blocks } => {
            let plan = live.plan(Named::present(segment), *blocks)?;
            let drawn: Vec<u32> = plan
                .runs()
                .flat_map(|(tier, count)| free_ids(live, tier).into_iter().take(index(count)))
                .collect();
            assert_eq!(drawn.len(), index(*blocks), "a plan names blocks that are there");
            live.commit(Named::present(segment), &drawn, None).map(nothing)
        }
        Call::Commit { segment, blocks } => live.commit(Named::present(segment), blocks, None).map(nothing),
        Call::Adopt { segment, of, first, blocks, cached } => {
            let blocks = some_blocks(live, *of, *first, blocks);
            live.adopt(Named::present(segment), &blocks, *cached, None).map(nothing)
        }
        Call::Free { segment, of, first, blocks } => {
            let blocks = some_blocks(live, *of, *first, blocks);
            live.free(Named::present(segment), &blocks)
        }
        Call::Start { request, segments } => {
            let segments: Vec<_> = segments.iter().map(Named::present).collect();
            live.start_request(request, &segments).map(nothing)
        }
        Call::Finish { request } => live.finish_request(request),
        Call::Boundary { kind, session, segment } => live.boundary(&Boundary {
            kind: BoundaryKind::ALL[usize::from(*kind)],
            session,
            segment: segment.as_ref().map(Named::present),
            event: None,
        }),
        Call::Reclaim { blocks } => Ok(live.reclaim(*blocks, None)),
        Call::Reap { after } => {
            *clock_s += f64::from(*after);
            live.advance(*clock_s)?;
            live.reap()
        }
    }
}

/// Ends everything: nothing is left.
fn drain(live: &mut Live<u8>) -> Result<()> {
    for request in 0..3 {
        match live.finish_request(&request) {
            Ok(_) | Err(PlacementError::UnknownRequest(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    for session in 0..2 {
        let end = Boundary { kind: BoundaryKind::SessionEnd, session: &session, segment: None, event: None };
        match live.boundary(&end) {
            Ok(_) | Err(PlacementError::UnknownSession(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    live.reclaim(u32::MAX, None);
    live.check()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn every_call_keeps_the_census_and_a_refused_one_changes_nothing(
        which in any::<u8>(), keeps_prompts in any::<bool>(), calls in calls(),
    ) {
        let mut live = layer(which, keeps_prompts);
        let mut clock_s = 0.0;
        for call in &calls {
            let (before, stats) = (held(&live), live.stats());
            let holders: Vec<u32> = live.blocks.all_holders().collect();
            let outcome = apply(&mut live, &mut clock_s, call);
            live.check().map_err(|fault| TestCaseError::fail(format!("{call:?}: {fault}")))?;
            let after: Vec<u32> = live.blocks.all_holders().collect();
            let Ok(released) = outcome else {
                prop_assert_eq!(&held(&live), &before, "{:?}", call);
                prop_assert_eq!(live.stats(), stats, "{:?}", call);
                prop_assert_eq!(after, holders, "{:?}", call);
                continue;
            };
            // What is said to be freed was held, and is held no longer; and nothing else was freed.
            let mut freed = ids(&released.freed);
            freed.sort_unstable();
            let came_free: Vec<u32> = (0_u32..)
                .zip(holders.iter().zip(&after))
                .filter_map(|(block, (&before, &after))| (before > 0 && after == 0).then_some(block))
                .collect();
            prop_assert_eq!(freed, came_free, "{:?}", call);
            for block in ids(&released.shared) {
                let block = index(block);
                prop_assert!(after[block] > 0 && after[block] < holders[block], "{:?}", call);
            }
            for segment in &released.closed {
                prop_assert!(live.blocks_of(Named::present(segment)).is_err());
            }
        }
        drain(&mut live).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        prop_assert_eq!(live.stats().free, BLOCKS);
        prop_assert_eq!((live.stats().sessions, live.stats().extents), (0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn calls_of_several_threads_lose_nothing(
        which in any::<u8>(), scripts in prop::collection::vec(calls(), 3),
    ) {
        let live = Mutex::new(layer(which, false));
        std::thread::scope(|scope| {
            for script in &scripts {
                let live = &live;
                scope.spawn(move || {
                    let mut clock_s = 0.0;
                    for call in script {
                        let mut live = live.lock().expect("no thread panics");
                        // Refusals are part of the script; `apply` asserts what a plan promises.
                        let _ = apply(&mut live, &mut clock_s, call);
                        live.check().expect("the census holds");
                    }
                });
            }
        });
        let mut live = live.into_inner().expect("no thread panics");
        drain(&mut live).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        prop_assert_eq!(live.stats().free, BLOCKS);
    }
}
