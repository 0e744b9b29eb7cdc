//! Arguments of the placement layer: names, which are numbers or text as the engine has them, and whole numbers of any size.

use std::fmt;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::door::EngineError;

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
            return object.extract().map(Self::Number).map_err(|_| {
                let message = format!("name = {}, must fit in 64 bits", object.to_owned());
                EngineError::new_err(("Value", message, None::<()>))
            });
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

/// A whole number; one beyond 64 bits counts as the largest, which breaks every rule on size that there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole(pub(crate) i64);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Ok(number) => Ok(Self(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(Self(i64::MAX)),
            Err(error) => Err(error),
        }
    }
}

/// Block ids, checked to fit 32 bits by whoever takes them.
#[derive(Debug)]
pub(crate) struct BlockIds(pub(crate) Vec<i64>);

impl<'py> FromPyObject<'_, 'py> for BlockIds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // The common case in one go; a list with an id beyond 64 bits is read again, number by number.
        if let Ok(blocks) = object.extract() {
            return Ok(Self(blocks));
        }
        let blocks: Vec<Whole> = object.extract()?;
        Ok(Self(blocks.into_iter().map(|block| block.0).collect()))
    }
}
