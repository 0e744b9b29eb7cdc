//! Small conversions between Python's numbers and the core's.

use lachesis_core::units::{Picos, seconds_to_picos};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Picoseconds of a setting in seconds.
pub(crate) fn picos(name: &str, seconds: f64) -> PyResult<Picos> {
    seconds_to_picos(seconds).ok_or_else(|| {
        PyValueError::new_err(format!("{name} = {seconds}, must be from 0 to 9.2e6 seconds (106 days)"))
    })
}
