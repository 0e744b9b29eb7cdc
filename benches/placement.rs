//! Benchmarks of the live placement layer: what an engine pays for an append, a boundary and a spawn.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lachesis_core::placement::live::{Boundary, BoundaryKind, Live, LiveConfig, Named, Opening};
use lachesis_core::policy::{ClassMap, Lachesis, LachesisOptions, Policy};
use lachesis_core::units::{PerTier, SegmentClass, to_f64};

/// Live segments beside the one at hand.
const SEGMENTS: u32 = 100_000;
/// Blocks of each of them.
const BLOCKS_EACH: u32 = 40;
/// Half of HBM is in use.
const FIRST_FREE: u32 = SEGMENTS * BLOCKS_EACH / 2;

fn layer(policy: Box<dyn Policy>) -> Live<u64> {
    let blocks = SEGMENTS * BLOCKS_EACH;
    let config = LiveConfig {
        blocks: PerTier([blocks, 2 * blocks]),
        turn_end_strips: true,
        keeps_prompts: false,
        reap_after_s: None,
    };
    Live::new(config, policy).expect("valid settings")
}

/// A layer in use: every segment holds blocks that lie between those of others.
fn busy(policy: Box<dyn Policy>) -> Live<u64> {
    let mut live = layer(policy);
    for segment in 0..u64::from(SEGMENTS) {
        live.open(&Opening::new(&segment, SegmentClass::Worker, &(segment / 8))).expect("it is new");
    }
    for block in 0..FIRST_FREE {
        let segment = u64::from(block % SEGMENTS);
        live.commit(Named::present(&segment), &[block], None).expect("it is free");
    }
    live
}

/// The next block of a segment, as decode asks for it every 16 tokens; segments take turns.
fn append(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("live append");
    group.throughput(Throughput::Elements(1));
    for blocks in [1_u32, 64] {
        group.bench_function(format!("plan and commit {blocks}"), |bench| {
            bench.iter_custom(|appends| {
                let mut spent = Duration::ZERO;
                let mut left = appends;
                while left > 0 {
                    // A layer of its own as often as the blocks run out; making it is not measured.
                    let mut live = busy(Box::new(ClassMap::lachesis_deterministic()));
                    let now = left.min(u64::from(FIRST_FREE / blocks));
                    left -= now;
                    let mut ids: Vec<u32> = (FIRST_FREE..FIRST_FREE + blocks).collect();
                    let started = Instant::now();
                    for append in 0..now {
                        let segment = append * 7_919 % u64::from(SEGMENTS);
                        let named = Named::present(&segment);
                        black_box(live.plan(named, blocks).expect("there is room"));
                        live.commit(named, &ids, None).expect("they are free");
                        for id in &mut ids {
                            *id += blocks;
                        }
                    }
                    spent += started.elapsed();
                }
                spent
            });
        });
    }
    group.finish();
}

/// A sub-agent's return: in runs, and with no two blocks beside each other.
fn boundary(criterion: &mut Criterion) {
    const FREED: u32 = 1 << 20;
    let mut group = criterion.benchmark_group("live boundary");
    for freed in [FREED >> 8, FREED >> 4, FREED] {
        for (name, stride) in [("in runs", 1_u32), ("scattered", 2)] {
            group.throughput(Throughput::Elements(u64::from(freed)));
            group.bench_function(format!("{freed} blocks {name}"), |bench| {
                let ids: Vec<u32> = (0..freed).map(|block| block * stride).collect();
                bench.iter_batched_ref(
                    || {
                        let mut live = layer(Box::new(ClassMap::lachesis_deterministic()));
                        live.open(&Opening::new(&1, SegmentClass::Worker, &1)).expect("it is new");
                        live.commit(Named::present(&1), &ids, None).expect("they are free");
                        live
                    },
                    |live| {
                        live.boundary(&Boundary {
                            kind: BoundaryKind::SubagentReturn,
                            session: &1,
                            segment: Some(Named::present(&1)),
                            event: None,
                        })
                        .expect("it is live")
                    },
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

/// A sub-agent opens and returns, ranked against a thousand live ones.
fn spawn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("live spawn");
    group.bench_function("open and close a ranked worker among 1,000", |bench| {
        let mut live = layer(Box::new(Lachesis::new("lachesis", LachesisOptions::default())));
        let score = |segment: u64| to_f64(i128::from(segment * 7_919 % 1_000));
        let open = |live: &mut Live<u64>, segment: u64| {
            let opening = Opening::new(&segment, SegmentClass::Worker, &0);
            live.open(&Opening { score: Some(score(segment)), ..opening }).expect("it is new");
        };
        (0..1_000).for_each(|segment| open(&mut live, segment));
        let mut segment = 1_000_u64;
        bench.iter(|| {
            segment += 1;
            open(&mut live, segment);
            live.boundary(&Boundary {
                kind: BoundaryKind::SubagentReturn,
                session: &0,
                segment: Some(Named::present(&segment)),
                event: None,
            })
            .expect("it is live")
        });
    });
    group.finish();
}

criterion_group!(benches, append, boundary, spawn);
criterion_main!(benches);
