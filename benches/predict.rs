//! Benchmarks of the predictor: what a spawn costs, with and without the hashing of its text.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lachesis_core::predict::{FeatureSpec, Features, Linear, Online, SpawnRecord};

const VOCABULARY: u32 = 5_000;
const TOOLS: [&str; 12] = [
    "shell",
    "read_file",
    "write_file",
    "search",
    "browse",
    "list_apps",
    "execute_code",
    "show_api_doc",
    "read_history",
    "complete_task",
    "plan",
    "ask",
];

/// Words of a text by their number, common ones more often: the square of a uniform draw from a fixed sequence.
fn text(words: u32) -> String {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let uniform = f64::from(state >> 8) / f64::from(1_u32 << 24);
        format!("word{:.0}", uniform * uniform * f64::from(VOCABULARY))
    };
    (0..words).map(|_| next()).collect::<Vec<_>>().join(" ")
}

/// An instruction of 60 words with a context of 250 (the corpora's workers), and ten times as much.
fn spawns(criterion: &mut Criterion) {
    let spec = FeatureSpec::new(true, 4096, 256).expect("valid");
    let weights: Vec<f64> =
        (0..spec.width()).map(|at| (f64::from(u32::try_from(at).expect("small"))).sin()).collect();
    let linear = Linear::new(spec, 6.0, weights).expect("valid");
    for (instruction_words, context_words) in [(60, 250), (600, 2_500)] {
        let (instruction, context) = (text(instruction_words), text(context_words));
        let record = SpawnRecord {
            instruction: Some(&instruction),
            context: Some(&context),
            instruction_tokens: Some(u64::from(instruction_words)),
            context_tokens: Some(u64::from(context_words)),
            tools: &TOOLS,
            position: 3,
        };
        let features = spec.extract(&record);
        let words = instruction_words + context_words;
        let mut group = criterion.benchmark_group(format!("spawn, {words} words"));
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("score {} features", features.indices().len()), |bench| {
            bench.iter(|| linear.score(black_box(&features)));
        });
        group.bench_function("hash the text into features", |bench| {
            let mut features = Features::default();
            bench.iter(|| spec.extract_into(black_box(&record), &mut features));
        });
        group.bench_function("learn a return", |bench| {
            let mut online = Online::new(spec, 10.0).expect("valid");
            bench.iter(|| online.learn(black_box(&features), 300.0).expect("a lifetime"));
        });
        group.finish();
    }
}

criterion_group!(benches, spawns);
criterion_main!(benches);
