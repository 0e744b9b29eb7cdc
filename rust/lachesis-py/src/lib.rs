//! The Python extension module `lachesis._engine`.
use pyo3::prelude::*;

#[pymodule]
mod _engine {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
