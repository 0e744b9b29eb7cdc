//! Hardware: what a decode step costs and what a write wears.

mod roofline;
mod spec;
mod step_cost;
mod wear;

pub use roofline::{Operator, operators, price};
pub use spec::{
    Attention, AttentionGroup, GpuSpec, GroupedQuery, Latent, ModelSpec, ReadPath, SparseIndex, Window,
};
pub use step_cost::{GpuLoad, StepCost, TierReads, WindowKind, round_price};
pub use wear::{SECONDS_PER_YEAR, WearMeter, device_years};
