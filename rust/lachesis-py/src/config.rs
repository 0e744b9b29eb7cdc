//! Settings of a run from Python's dictionaries.

use lachesis_core::engine::{Config, Delays, Landing, ToolLatency, TurnEnd};
use lachesis_core::policy::{
    Capacity, ClassMap, HbfOnly, HbmFirst, HbmOnly, Lachesis, LachesisOptions, Policy, RankedAgainst, Reserve,
};
use lachesis_core::result::Stop;
use lachesis_core::scheduler::Load;
use lachesis_core::units::{CLASSES, PerTier, Tier};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::picos;
use crate::price::StepCost;
use crate::python_policy::{Fault, PythonPolicy};

/// `config` of `replay`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunConfig {
    gpus: usize,
    hbm_blocks: u32,
    hbf_blocks: u32,
    block_tokens: u32,
    slots: u32,
    ttft_reference_s: f64,
    cost: Py<StepCost>,
    load: RunLoad,
    draws: Option<Vec<u32>>,
    scores: Option<PyScores>,
    seed: u64,
    tool_mean_s: Vec<f64>,
    tool_sigma: Option<f64>,
    user_median_s: f64,
    user_sigma: f64,
    turn_end: String,
    landing: String,
    aged: bool,
    ttft_limit_s: f64,
    tpot_limit_s: f64,
    timeline_interval_s: Option<f64>,
    keep_requests: bool,
    check_blocks: bool,
}

/// `config["scores"]`: a float64 array.
struct PyScores(Vec<f64>);

impl<'py> FromPyObject<'_, 'py> for PyScores {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array: PyReadonlyArray1<'py, f64> = object.extract()?;
        Ok(Self(array.as_array().iter().copied().collect()))
    }
}

/// `config["load"]`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RunLoad {
    kind: String,
    sessions: u32,
    ramp_s: f64,
    sessions_per_s: f64,
}

fn unknown<T>(what: &str, value: &str) -> PyResult<T> {
    Err(PyValueError::new_err(format!("unknown {what} {value:?}")))
}

impl RunConfig {
    pub(crate) fn into_core(self) -> PyResult<Config> {
        let load = match self.load.kind.as_str() {
            "closed" => {
                Load::Closed { sessions: self.load.sessions, ramp: picos("ramp_s", self.load.ramp_s)? }
            }
            "poisson" => Load::Poisson { sessions_per_s: self.load.sessions_per_s },
            "recorded" => Load::Recorded,
            other => return unknown("load", other),
        };
        Ok(Config {
            gpus: self.gpus,
            blocks: PerTier([self.hbm_blocks, self.hbf_blocks]),
            block_tokens: self.block_tokens,
            slots: self.slots,
            ttft_reference: picos("ttft_reference_s", self.ttft_reference_s)?,
            cost: self.cost.get().core.clone(),
            load,
            draws: self.draws,
            scores: self.scores.map_or_else(Vec::new, |scores| scores.0),
            seed: self.seed,
            delays: Delays {
                tool_mean_s: self.tool_mean_s,
                tool_latency: self.tool_sigma.map_or(ToolLatency::Exponential, ToolLatency::LogNormal),
                user_median_s: self.user_median_s,
                user_sigma: self.user_sigma,
            },
            turn_end: match self.turn_end.as_str() {
                "last-output" => TurnEnd::LastOutput,
                "next-message" => TurnEnd::NextMessage,
                other => return unknown("turn end", other),
            },
            landing: match self.landing.as_str() {
                "async" => Landing::Async,
                "sync" => Landing::Sync,
                other => return unknown("landing", other),
            },
            aged: self.aged,
            limits: (picos("ttft_limit_s", self.ttft_limit_s)?, picos("tpot_limit_s", self.tpot_limit_s)?),
            timeline: self
                .timeline_interval_s
                .map(|seconds| picos("timeline_interval_s", seconds))
                .transpose()?,
            keep_requests: self.keep_requests,
            check_blocks: self.check_blocks,
        })
    }
}

/// `policy` of `replay`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunPolicy {
    name: String,
    /// Tiers by class, for policies that place by class alone.
    targets: Option<Vec<u8>>,
    /// Options of the predictive path.
    options: Option<RankOptions>,
    /// The object that decides, for a policy in Python.
    #[pyo3(default)]
    python: Option<Py<PyAny>>,
}

/// `policy["options"]`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RankOptions {
    ranked_against: String,
    capacity: String,
    reserve: String,
    margin: f64,
}

impl RankOptions {
    fn into_core(self) -> PyResult<LachesisOptions> {
        Ok(LachesisOptions {
            ranked_against: match self.ranked_against.as_str() {
                "live-workers" => RankedAgainst::LiveWorkers,
                "workers-in-hbm" => RankedAgainst::WorkersInHbm,
                other => return unknown("ranked_against", other),
            },
            capacity: match self.capacity.as_str() {
                "total" => Capacity::Total,
                "free" => Capacity::Free,
                other => return unknown("capacity", other),
            },
            reserve: match self.reserve.as_str() {
                "expected" => Reserve::Expected,
                "live" => Reserve::Live,
                "nothing" => Reserve::Nothing,
                other => return unknown("reserve", other),
            },
            margin: self.margin,
        })
    }
}

impl RunPolicy {
    /// The policy, and where errors of a policy in Python wait.
    pub(crate) fn into_core(self) -> PyResult<(Box<dyn Policy>, Fault)> {
        let fault = Fault::default();
        if let Some(object) = &self.python {
            let policy = Python::attach(|py| PythonPolicy::new(self.name, object.bind(py), fault.clone()))?;
            return Ok((Box::new(policy), fault));
        }
        Ok((self.of_the_core()?, fault))
    }

    fn of_the_core(self) -> PyResult<Box<dyn Policy>> {
        if let Some(options) = self.options {
            return Ok(Box::new(Lachesis::new(self.name, options.into_core()?)));
        }
        if let Some(targets) = self.targets {
            let tiers: Option<Vec<Tier>> =
                targets.iter().map(|&tier| Tier::ALL.get(usize::from(tier)).copied()).collect();
            let tiers: Option<[Tier; CLASSES]> = tiers.and_then(|tiers| tiers.try_into().ok());
            let tiers = tiers
                .ok_or_else(|| PyValueError::new_err("targets must be 0 or 1 for each of the 7 classes"))?;
            return Ok(Box::new(ClassMap::new(self.name, tiers)));
        }
        Ok(match self.name.as_str() {
            "hbm-first" => Box::new(HbmFirst),
            "hbf-only" => Box::new(HbfOnly),
            "hbm-only" => Box::new(HbmOnly),
            "lachesis-deterministic" => Box::new(ClassMap::lachesis_deterministic()),
            other => return unknown("policy", other),
        })
    }
}

/// `stop` of `replay`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunStop {
    kind: String,
    precision: f64,
    warm_up_turnovers: f64,
    measured_turnovers: f64,
    horizon_s: f64,
    fail_fast: bool,
}

impl RunStop {
    pub(crate) fn into_core(self) -> PyResult<Stop> {
        let horizon = picos("horizon_s", self.horizon_s)?;
        Ok(match self.kind.as_str() {
            "drained" => Stop::Drained,
            "settled" => Stop::Settled {
                precision: self.precision,
                horizon_turnovers: self.measured_turnovers,
                horizon,
            },
            "fixed" => Stop::Fixed {
                warm_up: self.warm_up_turnovers,
                measured: self.measured_turnovers,
                horizon,
                fail_fast: self.fail_fast,
            },
            other => return unknown("stop", other),
        })
    }
}
