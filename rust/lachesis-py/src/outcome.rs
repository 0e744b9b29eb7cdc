//! A run's outcome as a dictionary of plain numbers.

use lachesis_core::engine::Outcome;
use lachesis_core::result::{Histogram, Snapshot, TimelineRow};
use lachesis_core::units::{PerClassTier, SegmentClass, Tier, picos_to_seconds, to_f64};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

fn by_class<'py>(py: Python<'py>, tokens: &PerClassTier<u64>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for class in SegmentClass::ALL {
        dict.set_item(class.name(), (tokens[(class, Tier::Hbm)], tokens[(class, Tier::Hbf)]))?;
    }
    Ok(dict)
}

fn counts<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("time_ps", snapshot.time)?;
    dict.set_item("time_s", picos_to_seconds(snapshot.time))?;
    dict.set_item("steps", snapshot.steps)?;
    dict.set_item("requests", snapshot.requests)?;
    dict.set_item("sessions", snapshot.sessions)?;
    dict.set_item("output_tokens", snapshot.output_tokens)?;
    dict.set_item("timed_ttft", snapshot.timed_ttft)?;
    dict.set_item("timed_tpot", snapshot.timed_tpot)?;
    dict.set_item("over_ttft", snapshot.over_ttft)?;
    dict.set_item("over_tpot", snapshot.over_tpot)?;
    dict.set_item("preemptions", snapshot.preemptions)?;
    dict.set_item("session_losses", snapshot.session_losses)?;
    dict.set_item("fallback_blocks", snapshot.fallbacks)?;
    dict.set_item("reclaimed_blocks", snapshot.reclaimed_blocks)?;
    dict.set_item("landed_tokens", snapshot.landed_tokens)?;
    let time = to_f64(i128::from(snapshot.time.max(1)));
    let mean = |tier: Tier| to_f64(snapshot.block_time[tier].cast_signed()) / time;
    dict.set_item("blocks_in_use_mean", (mean(Tier::Hbm), mean(Tier::Hbf)))?;
    dict.set_item("materialised_tokens", by_class(py, &snapshot.materialised)?)?;
    dict.set_item("rematerialised_tokens", by_class(py, &snapshot.rematerialised)?)?;
    Ok(dict)
}

/// Columns of the timeline, as numpy arrays.
fn timeline_to_dict<'py>(py: Python<'py>, rows: &[TimelineRow]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let column = |name: String, value: &dyn Fn(&TimelineRow) -> u64| {
        let values: Vec<u64> = rows.iter().map(value).collect();
        dict.set_item(name, values.into_pyarray(py))
    };
    column("steps".into(), &|row| row.steps)?;
    column("requests".into(), &|row| row.requests)?;
    column("sessions".into(), &|row| row.sessions.into())?;
    column("running".into(), &|row| row.running.into())?;
    column("waiting".into(), &|row| row.waiting.into())?;
    for (tier, name) in Tier::ALL.into_iter().zip(["hbm", "hbf"]) {
        column(format!("{name}_blocks"), &|row| row.used_blocks[tier])?;
        for class in SegmentClass::ALL {
            let place = (class, tier);
            column(format!("{name}_blocks {}", class.name()), &|row| row.held_blocks[place])?;
            column(format!("{name}_tokens {}", class.name()), &|row| row.written[place])?;
        }
    }
    let times: Vec<f64> = rows.iter().map(|row| picos_to_seconds(row.time)).collect();
    dict.set_item("time_s", times.into_pyarray(py))?;
    Ok(dict)
}

fn quantile(histogram: &Histogram, numerator: u64) -> Option<f64> {
    histogram.quantile(numerator, 100).map(picos_to_seconds)
}

/// Everything that Python's results need.
pub(crate) fn outcome_to_dict<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let window = &outcome.window;
    dict.set_item("whole", counts(py, &outcome.whole)?)?;
    dict.set_item("window", counts(py, &window.counts)?)?;
    dict.set_item("settled", window.settled)?;
    dict.set_item("stuck", window.stuck)?;
    dict.set_item("window_start_s", picos_to_seconds(window.start))?;
    dict.set_item("batches", window.batches)?;
    dict.set_item("turnovers", window.turnovers)?;
    let rate = |tier: Tier| (window.write_rate[tier].mean, window.write_rate[tier].half_width);
    dict.set_item("hbm_tokens_per_s", rate(Tier::Hbm))?;
    dict.set_item("hbf_tokens_per_s", rate(Tier::Hbf))?;
    for (name, histogram) in [("ttft", &window.ttft), ("tpot", &window.tpot)] {
        for percent in [50, 90, 99] {
            dict.set_item(format!("{name}_p{percent}_s"), quantile(histogram, percent))?;
        }
    }
    dict.set_item("landing_duty", outcome.landing_duty)?;
    dict.set_item("repeats", outcome.repeats)?;
    dict.set_item("live_segments", outcome.live_segments)?;
    let free: Vec<(u32, u32)> =
        outcome.free_blocks.iter().map(|free| (free[Tier::Hbm], free[Tier::Hbf])).collect();
    dict.set_item("free_blocks", free)?;
    dict.set_item("timeline", timeline_to_dict(py, &outcome.timeline)?)?;
    let times =
        outcome.requests.iter().map(|r| (r.draw, r.request, r.ready, r.admitted, r.first_token, r.end));
    dict.set_item("requests", PyList::new(py, times.collect::<Vec<_>>())?)?;
    Ok(dict)
}
