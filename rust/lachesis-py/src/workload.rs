//! Columns from numpy to the core.

use lachesis_core::workload::Columns;
use numpy::{Element, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::door::to_python;

/// A validated workload; see `_engine.pyi`.
#[pyclass(frozen, module = "lachesis._engine")]
pub(crate) struct Workload {
    pub(crate) core: lachesis_core::workload::Workload,
}

fn copy<T: Element + Copy>(array: &PyReadonlyArray1<'_, T>) -> Vec<T> {
    array.as_array().iter().copied().collect()
}

#[pymethods]
impl Workload {
    #[new]
    #[pyo3(signature = (*, session_request_offsets, session_segment_offsets, session_start_s, edge_offsets, edge_request,
        edge_kind, edge_delay_s, use_offsets, use_segment, use_written, output_segment, output_tokens, tool_offsets,
        tool_class, segment_class, segment_prefix, segment_closed_by, segment_closed_after))]
    #[expect(clippy::too_many_arguments, reason = "one argument a column")]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
    fn new(
        session_request_offsets: PyReadonlyArray1<'_, i64>,
        session_segment_offsets: PyReadonlyArray1<'_, i64>,
        session_start_s: PyReadonlyArray1<'_, f64>,
        edge_offsets: PyReadonlyArray1<'_, i64>,
        edge_request: PyReadonlyArray1<'_, i32>,
        edge_kind: PyReadonlyArray1<'_, u8>,
        edge_delay_s: PyReadonlyArray1<'_, f64>,
        use_offsets: PyReadonlyArray1<'_, i64>,
        use_segment: PyReadonlyArray1<'_, i32>,
        use_written: PyReadonlyArray1<'_, i64>,
        output_segment: PyReadonlyArray1<'_, i32>,
        output_tokens: PyReadonlyArray1<'_, i64>,
        tool_offsets: PyReadonlyArray1<'_, i64>,
        tool_class: PyReadonlyArray1<'_, u8>,
        segment_class: PyReadonlyArray1<'_, u8>,
        segment_prefix: PyReadonlyArray1<'_, i32>,
        segment_closed_by: PyReadonlyArray1<'_, u8>,
        segment_closed_after: PyReadonlyArray1<'_, i32>,
    ) -> PyResult<Self> {
        let columns = Columns {
            session_request_offsets: copy(&session_request_offsets),
            session_segment_offsets: copy(&session_segment_offsets),
            session_start_s: copy(&session_start_s),
            edge_offsets: copy(&edge_offsets),
            edge_request: copy(&edge_request),
            edge_kind: copy(&edge_kind),
            edge_delay_s: copy(&edge_delay_s),
            use_offsets: copy(&use_offsets),
            use_segment: copy(&use_segment),
            use_written: copy(&use_written),
            output_segment: copy(&output_segment),
            output_tokens: copy(&output_tokens),
            tool_offsets: copy(&tool_offsets),
            tool_class: copy(&tool_class),
            segment_class: copy(&segment_class),
            segment_prefix: copy(&segment_prefix),
            segment_closed_by: copy(&segment_closed_by),
            segment_closed_after: copy(&segment_closed_after),
        };
        let core = lachesis_core::workload::Workload::new(&columns).map_err(|error| to_python(&error))?;
        Ok(Self { core })
    }

    #[getter]
    fn sessions(&self) -> usize {
        self.core.len()
    }

    #[getter]
    fn requests(&self) -> usize {
        self.core.request_count()
    }

    /// Mean time that a session takes when every step takes `tpot_s` and every delay its mean.
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
    fn mean_duration_s(&self, tpot_s: f64, ttft_s: f64, tool_mean_s: Vec<f64>, user_mean_s: f64) -> f64 {
        self.core.mean_duration_s(tpot_s, ttft_s, &tool_mean_s, user_mean_s)
    }

    /// The order in which sessions are drawn.
    fn draw_order(&self, seed: u64, epoch: u64) -> Vec<u32> {
        self.core.draw_order(seed, epoch)
    }
}
