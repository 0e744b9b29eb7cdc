//! The one door through which long calls go: releases the GIL, watches for Ctrl-C, converts errors with one match.

use std::sync::{Mutex, PoisonError};

use lachesis_core::engine::{Engine, Progress};
use lachesis_core::error::Error;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::config::{RunConfig, RunPolicy, RunStop};
use crate::journal::RunJournal;
use crate::outcome::outcome_to_dict;
use crate::workload::Workload;

pyo3::create_exception!(
    _engine,
    EngineError,
    PyException,
    "An error of the core: `kind` names it, `fields` say where."
);

/// Converts an error of the core; Python's layer adds file and session names.
pub(crate) fn to_python(error: &Error) -> PyErr {
    let kind = match error {
        Error::Workload { .. } => "Workload",
        Error::Columns(_) => "Columns",
        Error::Setting { .. } => "Setting",
        Error::SessionTooLarge { .. } => "SessionTooLarge",
        Error::Overrun { .. } => "Overrun",
        Error::ClockRange => "ClockRange",
        Error::UnknownBlock(_) => "UnknownBlock",
        Error::DoubleFree(_) => "DoubleFree",
        Error::BlockHeld { .. } => "BlockHeld",
        Error::NotOfSegment { .. } => "NotOfSegment",
        Error::OutOfBlocks { .. } => "OutOfBlocks",
        Error::Census { .. } => "Census",
        Error::Interrupted => return PyKeyboardInterrupt::new_err("interrupted"),
    };
    let place = match error {
        Error::Workload { session, field, row, .. } => Some((*session, (*field).to_owned(), *row)),
        Error::SessionTooLarge { session, request, .. } => Some((*session, "request".to_owned(), *request)),
        _ => None,
    };
    EngineError::new_err((kind, error.to_string(), place))
}

/// Replays a workload; see `_engine.pyi`.
#[pyfunction]
#[pyo3(signature = (workload, config, policy, stop, observe=None, journal=None))]
#[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    workload: Bound<'py, Workload>,
    config: RunConfig,
    policy: RunPolicy,
    stop: RunStop,
    observe: Option<Py<PyAny>>,
    journal: Option<RunJournal>,
) -> PyResult<Bound<'py, PyDict>> {
    let config = config.into_core()?;
    let (policy, fault) = policy.into_core()?;
    let stop = stop.into_core()?;
    let workload = workload.get();
    // What a callable of Python raised.
    let raised = Mutex::new(None);
    let fail = |error: PyErr| {
        raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    };
    let journal = journal.map(|journal| journal.into_core(fail)).transpose()?;
    let result = py.detach(|| {
        config.validate_draws(&workload.core)?;
        let mut engine = Engine::new(&workload.core, config, policy)?;
        if let Some(journal) = journal {
            engine.listen(journal)?;
        }
        engine.run(stop, &mut |progress: Progress| {
            let asked = Python::attach(|py| -> PyResult<()> {
                py.check_signals()?;
                if let Some(observe) = &observe {
                    observe.call1(py, (progress.simulated_s, progress.requests, progress.share))?;
                }
                Ok(())
            });
            match asked {
                Ok(()) => !fault.is_set(),
                Err(error) => {
                    fail(error);
                    false
                }
            }
        })
    });
    if let Some(error) =
        raised.into_inner().unwrap_or_else(PoisonError::into_inner).or_else(|| fault.take(py))
    {
        return Err(error);
    }
    outcome_to_dict(py, &result.map_err(|error| to_python(&error))?)
}
