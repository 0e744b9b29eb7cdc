//! A placement policy written in Python, behind the core's trait: asked when a segment opens, told when one ends, never a token.

use std::sync::{Arc, Mutex, PoisonError};

use lachesis_core::policy::{AtBoundary, NodeView, Policy, SegmentFacts, WhenEmpty};
use lachesis_core::units::Tier;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::door::EngineError;

/// What a policy is told of a segment; see `_engine.pyi`.
#[pyclass(frozen, get_all, module = "lachesis._engine")]
pub(crate) struct PolicySegment {
    kind: &'static str,
    gpu: u16,
    session: u64,
    number: u32,
    score: Option<f64>,
}

/// What a policy may look at; see `_engine.pyi`.
#[pyclass(frozen, get_all, module = "lachesis._engine")]
pub(crate) struct PolicyNode {
    hbm_free: u32,
    hbf_free: u32,
    hbm_total: u32,
    hbf_total: u32,
    node_hbm_free: u64,
    node_hbf_free: u64,
    gpus: usize,
}

/// Where a policy's error waits until a caller can raise it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<PyErr>>>);

impl Fault {
    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Whether an error waits.
    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The error that waits, as the cause of an `EngineError` of kind `Policy`.
    pub(crate) fn take(&self, py: Python<'_>) -> Option<PyErr> {
        let cause = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let error = EngineError::new_err(("Policy", cause.to_string(), None::<()>));
        error.set_cause(py, Some(cause));
        Some(error)
    }
}

/// The adapter.
#[derive(Debug)]
pub(crate) struct PythonPolicy {
    name: String,
    segment_opened: Py<PyAny>,
    boundary: Py<PyAny>,
    at_boundary: AtBoundary,
    when_empty: WhenEmpty,
    fault: Fault,
}

/// The tier of its name.
pub(crate) fn tier_of_name(name: &str) -> Option<Tier> {
    match name {
        "hbm" => Some(Tier::Hbm),
        "hbf" => Some(Tier::Hbf),
        _ => None,
    }
}

/// The name of a tier.
pub(crate) fn name_of_tier(py: Python<'_>, tier: Tier) -> &Bound<'_, PyString> {
    match tier {
        Tier::Hbm => pyo3::intern!(py, "hbm"),
        Tier::Hbf => pyo3::intern!(py, "hbf"),
    }
}

fn describe(segment: &SegmentFacts) -> PolicySegment {
    PolicySegment {
        kind: segment.class.name(),
        gpu: segment.gpu,
        session: segment.draw,
        number: segment.segment,
        score: segment.score,
    }
}

/// File and line of a method, for messages.
fn place_of(method: &Bound<'_, PyAny>) -> String {
    let place = || -> PyResult<String> {
        let code = method.getattr("__code__")?;
        Ok(format!("{}:{}", code.getattr("co_filename")?, code.getattr("co_firstlineno")?))
    };
    // What has no code of its own (a built-in) is named as it prints.
    place().unwrap_or_else(|_| method.to_string())
}

impl PythonPolicy {
    /// Takes an object with `segment_opened`, `boundary`, `pressure` and `keeps_past_boundaries`; asks it now for what may not change.
    pub(crate) fn new(name: String, object: &Bound<'_, PyAny>, fault: Fault) -> PyResult<Self> {
        let pressure: String = object.call_method0("pressure")?.extract()?;
        let keeps: bool = object.getattr("keeps_past_boundaries")?.extract()?;
        Ok(Self {
            name,
            segment_opened: object.getattr("segment_opened")?.unbind(),
            boundary: object.getattr("boundary")?.unbind(),
            at_boundary: if keeps { AtBoundary::Keep } else { AtBoundary::Free },
            when_empty: match pressure.as_str() {
                "fall-back" => WhenEmpty::FallBack,
                "refuse" => WhenEmpty::Refuse,
                other => {
                    let message = format!("pressure returned {other:?}, must be 'fall-back' or 'refuse'");
                    let place = place_of(&object.getattr("pressure")?);
                    fault.set(PyValueError::new_err((message, place)));
                    return Err(fault.take(object.py()).unwrap_or_else(|| PyValueError::new_err("pressure")));
                }
            },
            fault,
        })
    }

    fn ask(&self, segment: &SegmentFacts, node: &NodeView) -> PyResult<Tier> {
        Python::attach(|py| {
            let node = PolicyNode {
                hbm_free: node.gpu_free[Tier::Hbm],
                hbf_free: node.gpu_free[Tier::Hbf],
                hbm_total: node.gpu_total[Tier::Hbm],
                hbf_total: node.gpu_total[Tier::Hbf],
                node_hbm_free: node.node_free[Tier::Hbm],
                node_hbf_free: node.node_free[Tier::Hbf],
                gpus: node.gpus,
            };
            let answer = self.segment_opened.bind(py).call1((describe(segment), node))?;
            let tier = answer.cast::<PyString>().ok().and_then(|name| tier_of_name(&name.to_cow().ok()?));
            tier.ok_or_else(|| {
                let message = format!("segment_opened returned {answer:?}, must be 'hbm' or 'hbf'");
                PyValueError::new_err((message, place_of(self.segment_opened.bind(py))))
            })
        })
    }
}

impl Policy for PythonPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self, segment: &SegmentFacts, node: &NodeView) -> Tier {
        // After an error nothing that it answers counts: the caller ends the run, or undoes the call.
        if self.fault.is_set() {
            return Tier::Hbf;
        }
        self.ask(segment, node).unwrap_or_else(|error| {
            self.fault.set(error);
            Tier::Hbf
        })
    }

    fn closed(&mut self, segment: &SegmentFacts, target: Tier, final_blocks: u32) {
        if self.fault.is_set() {
            return;
        }
        let told = Python::attach(|py| {
            let arguments = (describe(segment), name_of_tier(py, target), final_blocks);
            self.boundary.bind(py).call1(arguments).map(drop)
        });
        if let Err(error) = told {
            self.fault.set(error);
        }
    }

    fn take_fault(&mut self) -> Option<String> {
        self.fault.is_set().then(|| "the policy raised an error".to_owned())
    }

    fn at_boundary(&self) -> AtBoundary {
        self.at_boundary
    }

    fn when_empty(&self) -> WhenEmpty {
        self.when_empty
    }
}
