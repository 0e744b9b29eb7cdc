//! Hardware: what a decode step costs and what a write wears.

mod roofline;
mod step_cost;
mod wear;

pub use roofline::{
    Attention, AttentionGroup, GpuSpec, GroupedQuery, Latent, ModelSpec, Operator, ReadPath, SparseIndex,
    Window, operators, price,
};
pub use step_cost::{GpuLoad, NodeLoad, StepCost, TierReads, WindowKind, price_seconds, round_price};
pub use wear::{SECONDS_PER_YEAR, WearMeter, device_years};
