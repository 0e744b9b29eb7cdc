//! The Python extension module `lachesis._engine`: thin bindings over `lachesis-core`, typed in `_engine.pyi`.

mod config;
mod convert;
mod delay;
mod door;
mod journal;
mod name;
mod outcome;
mod placement;
mod pool;
mod predict;
mod price;
mod python_policy;
mod workload;

use pyo3::prelude::*;

#[pymodule]
mod _engine {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::delay::{tool_delay_ps, user_delay_ps};
    #[pymodule_export]
    use super::door::{EngineError, replay};
    #[pymodule_export]
    use super::placement::Placement;
    #[pymodule_export]
    use super::pool::BlockPool;
    #[pymodule_export]
    use super::predict::{FeatureSpec, Predictor, SpawnFeatures};
    #[pymodule_export]
    use super::price::{StepCost, device_years, operators, price};
    #[pymodule_export]
    use super::python_policy::{PolicyNode, PolicySegment};
    #[pymodule_export]
    use super::workload::Workload;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::predict::add_constants(module)
    }
}
