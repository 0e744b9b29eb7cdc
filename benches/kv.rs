//! Benchmarks of blocks: drawing and freeing in runs and one by one.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lachesis_core::kv::{BlockPool, Fate, Memory};
use lachesis_core::units::{PerTier, SegmentClass, Tier};

const BLOCKS: u32 = 1 << 20;

/// A segment of 256 blocks written and freed: extents.
fn extents(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("extents");
    group.throughput(Throughput::Elements(256));
    group.bench_function("write and free a segment of 256 blocks", |bench| {
        let mut memory = Memory::new(1, PerTier([BLOCKS, BLOCKS]), 16, true);
        bench.iter(|| {
            let id = memory.open(0, SegmentClass::Worker, Tier::Hbm);
            memory.append(id, 256 * 16, |_, _| {}).expect("there is room");
            memory.end(id, Fate::Free);
        });
    });
    group.finish();
}

/// Real block ids.
fn ids(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("block ids");
    group.throughput(Throughput::Elements(256));
    group.bench_function("draw and free 256 blocks in one call each", |bench| {
        let mut pool = BlockPool::new(BLOCKS, BLOCKS).expect("a valid size");
        let mut drawn = Vec::new();
        let mut blocks = Vec::new();
        bench.iter(|| {
            drawn.clear();
            blocks.clear();
            pool.alloc(Tier::Hbm, 256, true, None, &mut drawn).expect("there is room");
            blocks.extend(drawn.iter().flat_map(|run| run.start..run.start + run.blocks));
            pool.free(&blocks).expect("they are held");
        });
    });
    group.throughput(Throughput::Elements(1024));
    group.bench_function("draw 1024 blocks one by one", |bench| {
        let pool = BlockPool::new(BLOCKS, BLOCKS).expect("a valid size");
        let mut drawn = Vec::with_capacity(1024);
        bench.iter_batched_ref(
            || pool.clone(),
            |pool| {
                drawn.clear();
                for _ in 0..1024 {
                    pool.alloc(Tier::Hbm, 1, true, None, &mut drawn).expect("there is room");
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("free 1024 blocks one by one", |bench| {
        let mut pool = BlockPool::new(BLOCKS, BLOCKS).expect("a valid size");
        let mut drawn = Vec::new();
        pool.alloc(Tier::Hbm, 1024, true, None, &mut drawn).expect("there is room");
        bench.iter_batched_ref(
            || pool.clone(),
            |pool| {
                for block in 0..1024 {
                    pool.free(&[block]).expect("it is held");
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, extents, ids);
criterion_main!(benches);
