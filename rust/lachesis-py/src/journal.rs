//! Records of a run's journal as columns of numbers, handed to a callable of Python.

use lachesis_core::error::Error;
use lachesis_core::journal::{Instant, Journal, Phase, Records, SegmentEvent};
use lachesis_core::kv::FlashOp;
use lachesis_core::units::Tier;
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::picos;

/// `journal` of `replay`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunJournal {
    flash: bool,
    segments: bool,
    window_s: Option<(f64, f64)>,
    deliver: Py<PyAny>,
}

impl RunJournal {
    /// The core's journal; what `deliver` raises goes to `fail`.
    pub(crate) fn into_core<'d>(self, fail: impl Fn(PyErr) + Send + 'd) -> PyResult<Journal<'d>> {
        let window = self
            .window_s
            .map(|(from, to)| -> PyResult<_> { Ok((picos("window_s", from)?, picos("window_s", to)?)) })
            .transpose()?;
        let deliver = self.deliver;
        Ok(Journal::new(
            self.flash,
            self.segments,
            window,
            Box::new(move |records| {
                let told = Python::attach(|py| deliver.call1(py, (to_dict(py, records)?,)).map(drop));
                told.map_err(|error| {
                    fail(error);
                    Error::Interrupted
                })
            }),
        ))
    }
}

fn column<R, T: Element>(
    dict: &Bound<'_, PyDict>,
    name: &str,
    rows: &[R],
    value: impl Fn(&R) -> T,
) -> PyResult<()> {
    dict.set_item(name, rows.iter().map(value).collect::<Vec<T>>().into_pyarray(dict.py()))
}

/// A table of columns for each kind of record.
fn to_dict<'py>(py: Python<'py>, records: &Records) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let flash = PyDict::new(py);
    column(&flash, "time_ps", &records.flash, |row| row.0)?;
    column(&flash, "is_write", &records.flash, |row| row.1.op == FlashOp::Write)?;
    column(&flash, "class", &records.flash, |row| row.1.class as u8)?;
    column(&flash, "gpu", &records.flash, |row| row.1.gpu)?;
    column(&flash, "address_tokens", &records.flash, |row| row.1.address)?;
    column(&flash, "tokens", &records.flash, |row| row.1.tokens)?;
    all.set_item("flash", flash)?;

    let slices = PyDict::new(py);
    column(&slices, "phase", &records.slices, |row| match row.phase {
        Phase::Prefill => 0_u8,
        Phase::Waiting => 1,
        Phase::Decode => 2,
    })?;
    column(&slices, "begin_ps", &records.slices, |row| row.begin)?;
    column(&slices, "end_ps", &records.slices, |row| row.end)?;
    column(&slices, "ready_ps", &records.slices, |row| row.ready)?;
    column(&slices, "gpu", &records.slices, |row| row.gpu)?;
    column(&slices, "draw", &records.slices, |row| row.draw)?;
    column(&slices, "session", &records.slices, |row| row.session)?;
    column(&slices, "request", &records.slices, |row| row.request)?;
    column(&slices, "is_cut", &records.slices, |row| row.is_cut)?;
    all.set_item("slices", slices)?;

    let instants = PyDict::new(py);
    column(&instants, "what", &records.instants, |row| match row.what {
        Instant::Boundary(_) => 0_u8,
        Instant::Preemption => 1,
        Instant::BlocksLost => 2,
        Instant::SessionStart => 3,
        Instant::SessionEnd => 4,
    })?;
    column(&instants, "class", &records.instants, |row| match row.what {
        Instant::Boundary(class) => class as u8,
        _ => u8::MAX,
    })?;
    column(&instants, "time_ps", &records.instants, |row| row.time)?;
    column(&instants, "gpu", &records.instants, |row| row.gpu)?;
    column(&instants, "draw", &records.instants, |row| row.draw)?;
    column(&instants, "number", &records.instants, |row| row.number)?;
    all.set_item("instants", instants)?;

    let steps = PyDict::new(py);
    column(&steps, "time_ps", &records.steps, |row| row.time)?;
    column(&steps, "duration_ps", &records.steps, |row| row.duration)?;
    column(&steps, "gpu", &records.steps, |row| row.gpu)?;
    column(&steps, "running", &records.steps, |row| row.running)?;
    column(&steps, "waiting", &records.steps, |row| row.waiting)?;
    column(&steps, "hbm_blocks", &records.steps, |row| row.used_blocks[Tier::Hbm])?;
    column(&steps, "hbf_blocks", &records.steps, |row| row.used_blocks[Tier::Hbf])?;
    all.set_item("steps", steps)?;

    let segments = PyDict::new(py);
    column(&segments, "what", &records.segments, |row| match row.what {
        SegmentEvent::Open => 0_u8,
        SegmentEvent::Start => 1,
        SegmentEvent::Write => 2,
        SegmentEvent::Draw(_) => 3,
        SegmentEvent::Evict => 4,
        SegmentEvent::End => 5,
        SegmentEvent::Boundary(_) => 6,
        SegmentEvent::Close(_) => 7,
    })?;
    column(&segments, "boundary", &records.segments, |row| match row.what {
        SegmentEvent::Boundary(kind) | SegmentEvent::Close(kind) => kind as u8,
        _ => u8::MAX,
    })?;
    column(&segments, "tier", &records.segments, |row| match row.what {
        SegmentEvent::Draw(tier) => tier as u8,
        _ => row.target as u8,
    })?;
    column(&segments, "time_ps", &records.segments, |row| row.time)?;
    column(&segments, "gpu", &records.segments, |row| row.gpu)?;
    column(&segments, "draw", &records.segments, |row| row.draw)?;
    column(&segments, "session", &records.segments, |row| row.session)?;
    column(&segments, "segment", &records.segments, |row| row.segment)?;
    column(&segments, "number", &records.segments, |row| row.number)?;
    for (name, tier) in [("hbm", Tier::Hbm), ("hbf", Tier::Hbf)] {
        column(&segments, &format!("{name}_blocks"), &records.segments, |row| row.blocks[tier])?;
        column(&segments, &format!("{name}_free"), &records.segments, |row| row.free[tier])?;
    }
    all.set_item("segments", segments)?;
    Ok(all)
}
