//! Names of segments, sessions, requests and events: numbers or text, as the engine has them.

use std::fmt;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// A name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Name {
    Number(i64),
    Text(Box<str>),
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Text(text) => write!(formatter, "{text:?}"),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self::Text(text.to_cow()?.into()));
        }
        if object.cast::<PyInt>().is_ok() {
            return object.extract().map(Self::Number);
        }
        let kind = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("a name must be an int or a str, not {kind}")))
    }
}

impl<'py> IntoPyObject<'py> for &Name {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(match self {
            Name::Number(number) => number.into_pyobject(py)?.into_any(),
            Name::Text(text) => PyString::new(py, text).into_any(),
        })
    }
}
