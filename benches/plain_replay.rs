//! Replays W1 of `plain_workloads.py` in the core alone, so that its instructions can be counted:
//!
//! `cargo build --release -p lachesis-core --example plain_replay`, then
//! `valgrind --tool=callgrind target/release/examples/plain_replay REQUESTS INPUT OUTPUT REPEATS`.
//!
//! One GPU with a constant part of a step and a price a token read; Poisson arrivals of four requests a second. With REPEATS 0 only
//! the workload is made: what is left when its instructions are subtracted is the replay.

use std::error::Error;
use std::time::Instant;

use lachesis_core::engine::{Config, Delays, Engine, Landing, ToolLatency, TurnEnd};
use lachesis_core::hw::StepCost;
use lachesis_core::policy::HbmFirst;
use lachesis_core::result::Stop;
use lachesis_core::rng::{Stream, exponential};
use lachesis_core::scheduler::Load;
use lachesis_core::units::{PICOS_PER_SECOND, PerTier, SegmentClass, to_f64};
use lachesis_core::workload::{Columns, Workload};

/// Arrivals a second.
const PER_S: f64 = 4.0;
const SLOTS: u32 = 2048;
/// 196,608 bytes of KV a token at 12.8 TB/s.
const CONTEXT_PS: i64 = 15_360;
const STEP_PS: i64 = 30_000_000_000;

/// Every request a session of its own, with one segment that its input and output go to.
fn workload(requests: usize, input: i64, output: i64) -> Result<Workload, lachesis_core::error::Error> {
    let rows = i64::try_from(requests).unwrap_or(i64::MAX);
    let offsets: Vec<i64> = (0..=rows).collect();
    let mut time = 0.0;
    let starts = (0..requests as u64).map(|request| {
        time += exponential(1, Stream::Arrival, [request, 0, 0]) / PER_S;
        time
    });
    Workload::new(&Columns {
        session_request_offsets: offsets.clone(),
        session_segment_offsets: offsets.clone(),
        session_start_s: starts.collect(),
        edge_offsets: vec![0; requests + 1],
        use_offsets: offsets,
        use_segment: vec![0; requests],
        use_written: vec![input; requests],
        output_segment: vec![0; requests],
        output_tokens: vec![output; requests],
        tool_offsets: vec![0; requests + 1],
        segment_class: vec![SegmentClass::Lead as u8; requests],
        segment_prefix: vec![-1; requests],
        segment_closed_by: vec![2; requests],
        segment_closed_after: vec![0; requests],
        ..Columns::default()
    })
}

fn config() -> Config {
    let mut cost = StepCost::constant(STEP_PS, SLOTS, 1);
    cost.context_ps = CONTEXT_PS;
    Config {
        gpus: 1,
        blocks: PerTier([20_000, 700_000]),
        block_tokens: 16,
        slots: SLOTS,
        #[expect(clippy::cast_possible_truncation, reason = "a second is a whole number of picoseconds")]
        ttft_reference: PICOS_PER_SECOND as i64,
        cost,
        load: Load::Recorded,
        draws: None,
        scores: Vec::new(),
        seed: 1,
        delays: Delays {
            tool_mean_s: Vec::new(),
            tool_latency: ToolLatency::Exponential,
            user_median_s: 0.0,
            user_sigma: 0.0,
        },
        turn_end: TurnEnd::LastOutput,
        landing: Landing::Async,
        aged: false,
        limits: (1, 1),
        timeline: None,
        keep_requests: false,
        check_blocks: false,
    }
}

#[expect(clippy::print_stdout, reason = "a program's output")]
fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let &[requests, input, output, repeats] = numbers.as_slice() else {
        return Err("give REQUESTS INPUT OUTPUT REPEATS".into());
    };
    let workload = workload(requests, i64::try_from(input)?, i64::try_from(output)?)?;
    for _ in 0..repeats {
        let started = Instant::now();
        let engine = Engine::new(&workload, config(), Box::new(HbmFirst))?;
        let outcome = engine.run(Stop::Drained, &mut |_| true)?;
        let ended = outcome.whole.requests;
        let rate = to_f64(i128::from(ended)) / started.elapsed().as_secs_f64();
        println!("{ended} requests, {} steps, {rate:.0} requests/s", outcome.whole.steps);
    }
    Ok(())
}
