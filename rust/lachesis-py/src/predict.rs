//! Spawn records to features, and features to scores.

use lachesis_core::predict::{
    Features, LIFETIME_FLOOR_S, Linear, Online, OnlineState, Predictor as CorePredictor, SpawnRecord,
    log_lifetime,
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::door::to_python;

/// Which features a predictor reads; see `_engine.pyi`.
#[pyclass(frozen, from_py_object, module = "lachesis._engine")]
#[derive(Clone, Copy)]
pub(crate) struct FeatureSpec {
    core: lachesis_core::predict::FeatureSpec,
}

#[pymethods]
impl FeatureSpec {
    #[new]
    #[pyo3(signature = (*, words, word_buckets, tool_buckets))]
    fn new(words: bool, word_buckets: u32, tool_buckets: u32) -> PyResult<Self> {
        let core = lachesis_core::predict::FeatureSpec::new(words, word_buckets, tool_buckets)
            .map_err(|error| to_python(&error))?;
        Ok(Self { core })
    }

    #[getter]
    fn width(&self) -> usize {
        self.core.width()
    }

    /// Extracts the features of many records; see `_engine.pyi`.
    #[pyo3(signature = (*, instruction, context, instruction_tokens, context_tokens, tools, position))]
    #[expect(clippy::too_many_arguments, reason = "one argument a column of the spawn table")]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
    fn extract(
        &self,
        py: Python<'_>,
        instruction: Vec<Option<String>>,
        context: Vec<Option<String>>,
        instruction_tokens: Vec<Option<u64>>,
        context_tokens: Vec<Option<u64>>,
        tools: Vec<Vec<String>>,
        position: Vec<u32>,
    ) -> PyResult<SpawnFeatures> {
        let rows = position.len();
        let lengths =
            [instruction.len(), context.len(), instruction_tokens.len(), context_tokens.len(), tools.len()];
        if lengths.iter().any(|&length| length != rows) {
            return Err(PyValueError::new_err("columns of spawn records must be of one length"));
        }
        let spec = self.core;
        let features = py.detach(|| {
            (0..rows)
                .map(|row| {
                    let tools: Vec<&str> = tools[row].iter().map(String::as_str).collect();
                    spec.extract(&SpawnRecord {
                        instruction: instruction[row].as_deref(),
                        context: context[row].as_deref(),
                        instruction_tokens: instruction_tokens[row],
                        context_tokens: context_tokens[row],
                        tools: &tools,
                        position: position[row],
                    })
                })
                .collect()
        });
        Ok(SpawnFeatures { spec, features })
    }
}

/// Features of many records; see `_engine.pyi`.
#[pyclass(frozen, module = "lachesis._engine")]
pub(crate) struct SpawnFeatures {
    spec: lachesis_core::predict::FeatureSpec,
    features: Vec<Features>,
}

type Csr<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl SpawnFeatures {
    fn __len__(&self) -> usize {
        self.features.len()
    }

    fn csr<'py>(&self, py: Python<'py>) -> PyResult<Csr<'py>> {
        let mut offsets = vec![0_i64];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for features in &self.features {
            indices.extend_from_slice(features.indices());
            values.extend_from_slice(features.values());
            offsets.push(i64::try_from(indices.len())?);
        }
        Ok((offsets.into_pyarray(py), indices.into_pyarray(py), values.into_pyarray(py)))
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
    fn take(&self, rows: Vec<usize>) -> PyResult<Self> {
        let pick = |&row: &usize| {
            self.features.get(row).cloned().ok_or_else(|| PyValueError::new_err(format!("no row {row}")))
        };
        Ok(Self { spec: self.spec, features: rows.iter().map(pick).collect::<PyResult<_>>()? })
    }
}

/// A predictor with fixed weights or weights that learn; see `_engine.pyi`.
#[pyclass(module = "lachesis._engine")]
pub(crate) struct Predictor {
    pub(crate) core: CorePredictor,
}

type State<'py> = ((f64, f64), Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, u64);

impl Predictor {
    fn check(&self, features: &SpawnFeatures) -> PyResult<()> {
        if *self.core.spec() == features.spec {
            return Ok(());
        }
        Err(PyValueError::new_err("the features were extracted by another specification"))
    }
}

#[pymethods]
impl Predictor {
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
    fn linear(spec: FeatureSpec, intercept: f64, weights: PyReadonlyArray1<'_, f64>) -> PyResult<Self> {
        let weights = weights.as_array().to_vec();
        let core = Linear::new(spec.core, intercept, weights).map_err(|error| to_python(&error))?;
        Ok(Self { core: CorePredictor::Linear(core) })
    }

    #[staticmethod]
    fn online(spec: FeatureSpec, alpha: f64) -> PyResult<Self> {
        let core = Online::new(spec.core, alpha).map_err(|error| to_python(&error))?;
        Ok(Self { core: CorePredictor::Online(core) })
    }

    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
    fn online_from(
        spec: FeatureSpec,
        intercept: (f64, f64),
        weights: PyReadonlyArray1<'_, f64>,
        variances: PyReadonlyArray1<'_, f64>,
        workers: u64,
    ) -> PyResult<Self> {
        let state = OnlineState {
            intercept,
            weights: weights.as_array().to_vec(),
            variances: variances.as_array().to_vec(),
            workers,
        };
        let core = Online::from_state(spec.core, state).map_err(|error| to_python(&error))?;
        Ok(Self { core: CorePredictor::Online(core) })
    }

    fn linear_state<'py>(&self, py: Python<'py>) -> Option<(f64, Bound<'py, PyArray1<f64>>)> {
        let CorePredictor::Linear(linear) = &self.core else { return None };
        let (intercept, weights) = linear.state();
        Some((intercept, weights.to_vec().into_pyarray(py)))
    }

    fn online_state<'py>(&self, py: Python<'py>) -> Option<State<'py>> {
        let CorePredictor::Online(online) = &self.core else { return None };
        let state = online.state();
        let weights = state.weights.clone().into_pyarray(py);
        Some((state.intercept, weights, state.variances.clone().into_pyarray(py), state.workers))
    }

    fn score<'py>(
        &self,
        py: Python<'py>,
        features: &Bound<'py, SpawnFeatures>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let features = features.get();
        self.check(features)?;
        let scores: Vec<f64> =
            py.detach(|| features.features.iter().map(|each| self.core.score(each)).collect());
        Ok(scores.into_pyarray(py))
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
    fn learn(
        &mut self,
        features: &Bound<'_, SpawnFeatures>,
        lifetime_s: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        let features = features.get();
        self.check(features)?;
        let lifetime_s = lifetime_s.as_array();
        if lifetime_s.len() != features.features.len() {
            return Err(PyValueError::new_err("must be one lifetime a worker"));
        }
        // All are checked before the first is taken in, so that an error changes nothing.
        for &lifetime_s in lifetime_s {
            log_lifetime(lifetime_s).map_err(|error| to_python(&error))?;
        }
        for (each, &lifetime_s) in features.features.iter().zip(lifetime_s) {
            self.core.learn(each, lifetime_s).map_err(|error| to_python(&error))?;
        }
        Ok(())
    }
}

pub(crate) fn add_constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LIFETIME_FLOOR_S", LIFETIME_FLOOR_S)
}
