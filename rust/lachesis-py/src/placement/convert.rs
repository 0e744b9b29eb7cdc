//! What Python gives the live placement layer and gets from it: names and numbers in, errors and dicts out.

use lachesis_core::kv::BlockRange;
use lachesis_core::placement::live::{BoundaryKind, Ignored, Named, PlacementError, Released};
use lachesis_core::units::{SegmentClass, Tier};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::door::EngineError;
use crate::name::{Name, Whole};
use crate::python_policy::tier_of_name;

pub(super) fn to_python(error: &PlacementError) -> PyErr {
    let kind = match error {
        PlacementError::UnknownSegment(_) => "UnknownSegment",
        PlacementError::DuplicateSegment(_) => "DuplicateSegment",
        PlacementError::SegmentClosed(_) => "SegmentClosed",
        PlacementError::UnknownSession(_) => "UnknownSession",
        PlacementError::WrongSession { .. } => "WrongSession",
        PlacementError::UnknownRequest(_) => "UnknownRequest",
        PlacementError::DuplicateRequest(_) => "DuplicateRequest",
        PlacementError::TooManyRequests { .. } => "TooManyRequests",
        PlacementError::WrongBoundary { .. } | PlacementError::SegmentNeeded(_) => "WrongBoundary",
        PlacementError::UnknownBlock { .. }
        | PlacementError::EmptyBlock(_)
        | PlacementError::UnheldBlock(_) => "UnknownBlock",
        PlacementError::DoubleFree(_) => "DoubleFree",
        PlacementError::BlockHeld { .. } | PlacementError::TooShared(_) => "BlockHeld",
        PlacementError::WrongTier { .. } => "WrongTier",
        PlacementError::OutOfBlocks { .. } => "OutOfBlocks",
        PlacementError::Census { .. } | PlacementError::Miscount { .. } => "Census",
        PlacementError::Policy(_) => "Policy",
        PlacementError::Value { .. } => "Value",
    };
    EngineError::new_err((kind, error.to_string(), None::<()>))
}

/// Block ids; an id that no block can have is unknown.
pub(super) fn block_ids(blocks: &[i64]) -> PyResult<Vec<u32>> {
    blocks
        .iter()
        .map(|&block| {
            u32::try_from(block).map_err(|_| {
                let message = format!("block {block} is unknown: ids run from 0");
                EngineError::new_err(("UnknownBlock", message, None::<()>))
            })
        })
        .collect()
}

pub(super) fn count(name: &'static str, Whole(value): Whole) -> PyResult<u32> {
    u32::try_from(value).map_err(|_| {
        to_python(&PlacementError::Value {
            name,
            value: value.to_string(),
            rule: "must be at least 0 and below 2^32",
        })
    })
}

pub(super) fn class(kind: &str) -> PyResult<SegmentClass> {
    let known = SegmentClass::ALL.into_iter().find(|class| class.name() == kind);
    known.ok_or_else(|| {
        let names = SegmentClass::ALL.map(SegmentClass::name).join(", ");
        let message = format!("kind = {kind:?}, must be one of {names}");
        EngineError::new_err(("Value", message, None::<()>))
    })
}

pub(super) fn boundary_kind(kind: &str) -> PyResult<BoundaryKind> {
    BoundaryKind::from_name(kind).ok_or_else(|| {
        let names = BoundaryKind::ALL.map(BoundaryKind::name).join(", ");
        let message = format!("boundary = {kind:?}, must be one of {names}");
        EngineError::new_err(("Value", message, None::<()>))
    })
}

pub(super) fn tier(name: &str) -> PyResult<Tier> {
    tier_of_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("unknown tier {name:?}: must be 'hbm' or 'hbf'")))
}

/// Block ids of runs, ascending.
pub(super) fn flat<'py>(py: Python<'py>, ranges: &[BlockRange]) -> PyResult<Bound<'py, PyList>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|run| run.start);
    let ids: Vec<u32> = sorted.iter().flat_map(|run| run.start..run.start + run.blocks).collect();
    PyList::new(py, ids)
}

pub(super) fn released<'py>(py: Python<'py>, released: &Released<Name>) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("freed", flat(py, &released.freed)?)?;
    result.set_item("deferred", flat(py, &released.deferred)?)?;
    result.set_item("still_shared", flat(py, &released.shared)?)?;
    result.set_item("closed", PyList::new(py, &released.closed)?)?;
    result.set_item("waiting", PyList::new(py, &released.waiting)?)?;
    result.set_item("kept_blocks", released.kept_blocks)?;
    let ignored = released.ignored.map(|why| match why {
        Ignored::Late => "late",
        Ignored::Repeated => "repeated",
        Ignored::KeepsReasoning => "keeps-reasoning",
    });
    result.set_item("ignored", ignored)?;
    Ok(result)
}

pub(super) fn named(segment: &Name, generation: Option<Whole>) -> Named<'_, Name> {
    // A number that no opening can have is of the future.
    let generation = generation.map(|number| u32::try_from(number.0).unwrap_or(u32::MAX));
    Named { segment, generation }
}
