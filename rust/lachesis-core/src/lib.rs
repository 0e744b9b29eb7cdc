//! The engine of Lachesis: a trace-driven simulator of KV placement across HBM and high-bandwidth flash, and the placement
//! layer that a serving engine can embed. No Python, no files, no wall clock.
//!
//! One way down: engine → journal → scheduler, result → placement → policy → kv, workload → hw, event → rng, boundary, units, error.

pub mod boundary;
pub mod engine;
pub mod error;
pub mod event;
pub mod hw;
pub mod journal;
pub mod kv;
pub mod placement;
pub mod policy;
pub mod predict;
pub mod result;
pub mod rng;
pub mod scheduler;
pub mod units;
pub mod workload;
