//! Single draws of delays: what a replay draws, told beforehand.

use lachesis_core::engine::{Delays, ToolLatency};
use lachesis_core::units::Picos;
use pyo3::prelude::*;

use crate::door::to_python;

/// Latency of the `call`-th tool that `request` of a draw calls, in picoseconds.
#[pyfunction]
#[pyo3(signature = (seed, draw, request, call, *, mean_s, sigma = None))]
pub(crate) fn tool_delay_ps(
    seed: u64,
    draw: u64,
    request: u32,
    call: usize,
    mean_s: f64,
    sigma: Option<f64>,
) -> PyResult<Picos> {
    let delays = Delays {
        tool_mean_s: vec![mean_s],
        tool_latency: sigma.map_or(ToolLatency::Exponential, ToolLatency::LogNormal),
        user_median_s: 0.0,
        user_sigma: 0.0,
    };
    delays.validate().map_err(|error| to_python(&error))?;
    Ok(delays.tool(seed, draw, request, call, 0))
}

/// The user's delay before `request` of a draw, in picoseconds.
#[pyfunction]
#[pyo3(signature = (seed, draw, request, *, median_s, sigma))]
pub(crate) fn user_delay_ps(
    seed: u64,
    draw: u64,
    request: u32,
    median_s: f64,
    sigma: f64,
) -> PyResult<Picos> {
    let delays = Delays {
        tool_mean_s: Vec::new(),
        tool_latency: ToolLatency::Exponential,
        user_median_s: median_s,
        user_sigma: sigma,
    };
    delays.validate().map_err(|error| to_python(&error))?;
    Ok(delays.user(seed, draw, request))
}
