//! The live placement layer for Python: one lock around the core, the GIL released while waiting for it and in long calls.

mod convert;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use lachesis_core::placement::live::{Boundary, Live, LiveConfig, Named, Opening, PlacementError};
use lachesis_core::units::{PerTier, SegmentClass, Tier};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use convert::{block_ids, boundary_kind, class, count, named, released, to_python};

use crate::config::RunPolicy;
use crate::name::{BlockIds, Name, Whole};
use crate::python_policy::{Fault, name_of_tier};

/// From so many block ids on a call releases the GIL.
const LONG: usize = 256;

/// The live layer; see `_engine.pyi`.
#[pyclass(frozen, module = "lachesis._engine")]
pub(crate) struct Placement {
    core: Mutex<Live<Name>>,
    /// The thread that holds the lock: a policy in Python could call back.
    holder: AtomicU64,
    fault: Fault,
}

/// A number for this thread, from 1.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

impl Placement {
    /// Runs `work` under the lock. A short call keeps the GIL unless it has to wait.
    fn locked<R: Send>(
        &self,
        py: Python<'_>,
        is_long: bool,
        now_s: Option<f64>,
        work: impl FnOnce(&mut Live<Name>) -> Result<R, PlacementError> + Send,
    ) -> PyResult<R> {
        let thread = thread_number();
        self.refuse_reentry()?;
        let work = |core: &mut Live<Name>| {
            self.holder.store(thread, Ordering::Relaxed);
            let result = now_s.map_or(Ok(()), |now_s| core.advance(now_s)).and_then(|()| work(core));
            self.holder.store(0, Ordering::Relaxed);
            result
        };
        let damaged = || PyRuntimeError::new_err("an earlier fault has damaged this placement");
        let at_once = if is_long { Err(TryLockError::WouldBlock) } else { self.core.try_lock() };
        let result = match at_once {
            Ok(mut core) => work(&mut core),
            Err(TryLockError::Poisoned(_)) => return Err(damaged()),
            Err(TryLockError::WouldBlock) => {
                py.detach(|| self.core.lock().ok().map(|mut core| work(&mut core))).ok_or_else(damaged)?
            }
        };
        result.map_err(|error| {
            let raised = matches!(error, PlacementError::Policy(_)).then(|| self.fault.take(py)).flatten();
            raised.unwrap_or_else(|| to_python(&error))
        })
    }
}

#[pymethods]
#[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
impl Placement {
    #[new]
    #[pyo3(signature = (hbm_blocks, hbf_blocks, *, policy, turn_end_strips=true, keeps_prompts=false, reap_after_s=None))]
    fn new(
        hbm_blocks: Whole,
        hbf_blocks: Whole,
        policy: RunPolicy,
        turn_end_strips: bool,
        keeps_prompts: bool,
        reap_after_s: Option<f64>,
    ) -> PyResult<Self> {
        let (policy, fault) = policy.into_core()?;
        let blocks = PerTier([count("hbm_blocks", hbm_blocks)?, count("hbf_blocks", hbf_blocks)?]);
        let config = LiveConfig { blocks, turn_end_strips, keeps_prompts, reap_after_s };
        let core = Live::new(config, policy).map_err(|error| to_python(&error))?;
        Ok(Self { core: Mutex::new(core), holder: AtomicU64::new(0), fault })
    }

    #[pyo3(signature = (segment, kind, session, *, closes=None, parent=None, score=None, is_spawn=false, event=None, now_s=None))]
    #[expect(clippy::too_many_arguments, reason = "one argument a fact of the segment")]
    fn open(
        &self,
        py: Python<'_>,
        segment: Name,
        kind: &str,
        session: Name,
        closes: Option<&str>,
        parent: Option<Name>,
        score: Option<f64>,
        is_spawn: bool,
        event: Option<Name>,
        now_s: Option<f64>,
    ) -> PyResult<(u32, Py<PyAny>, u32)> {
        let class = class(kind)?;
        let closes = closes.map(boundary_kind).transpose()?;
        let (opened, position) = self.locked(py, false, now_s, |core| {
            let position = core.spawns(&session);
            let opened = core.open(&Opening {
                segment: &segment,
                class,
                session: &session,
                closes,
                parent: parent.as_ref(),
                score,
                is_spawn,
                event: event.as_ref(),
            })?;
            Ok((opened, position))
        })?;
        Ok((opened.generation, name_of_tier(py, opened.tier).clone().into_any().unbind(), position))
    }

    /// Raises if this thread is inside a call already, which is a policy in Python calling back: whoever takes a lock of its own asks first.
    fn refuse_reentry(&self) -> PyResult<()> {
        if self.holder.load(Ordering::Relaxed) == thread_number() {
            return Err(PyRuntimeError::new_err("a policy cannot call the placement that is asking it"));
        }
        Ok(())
    }

    #[pyo3(signature = (session))]
    fn spawns(&self, py: Python<'_>, session: Name) -> PyResult<u32> {
        self.locked(py, false, None, |core| Ok(core.spawns(&session)))
    }

    #[pyo3(signature = (segment, blocks, *, generation=None, engine_free=None))]
    fn plan<'py>(
        &self,
        py: Python<'py>,
        segment: Name,
        blocks: Whole,
        generation: Option<Whole>,
        engine_free: Option<(u32, u32)>,
    ) -> PyResult<Bound<'py, PyList>> {
        let blocks = count("blocks", blocks)?;
        let limit = engine_free.map(|(hbm, hbf)| PerTier([hbm, hbf]));
        let plan = self
            .locked(py, false, None, |core| core.plan_within(named(&segment, generation), blocks, limit))?;
        let tiers = PyList::empty(py);
        for (tier, blocks) in plan.runs() {
            let name = name_of_tier(py, tier);
            for _ in 0..blocks {
                tiers.append(name)?;
            }
        }
        Ok(tiers)
    }

    #[pyo3(signature = (segment, blocks, *, generation=None, event=None, now_s=None))]
    fn commit(
        &self,
        py: Python<'_>,
        segment: Name,
        blocks: BlockIds,
        generation: Option<Whole>,
        event: Option<Name>,
        now_s: Option<f64>,
    ) -> PyResult<()> {
        let blocks = block_ids(&blocks.0)?;
        self.locked(py, blocks.len() >= LONG, now_s, |core| {
            core.commit(named(&segment, generation), &blocks, event.as_ref())
        })
    }

    #[pyo3(signature = (segment, blocks, *, generation=None, cached=false, event=None, now_s=None))]
    #[expect(clippy::too_many_arguments, reason = "one argument a fact of the call")]
    fn adopt(
        &self,
        py: Python<'_>,
        segment: Name,
        blocks: BlockIds,
        generation: Option<Whole>,
        cached: bool,
        event: Option<Name>,
        now_s: Option<f64>,
    ) -> PyResult<()> {
        let blocks = block_ids(&blocks.0)?;
        self.locked(py, blocks.len() >= LONG, now_s, |core| {
            core.adopt(named(&segment, generation), &blocks, cached, event.as_ref())
        })
    }

    #[pyo3(signature = (segment, blocks, *, generation=None, now_s=None))]
    fn free<'py>(
        &self,
        py: Python<'py>,
        segment: Name,
        blocks: BlockIds,
        generation: Option<Whole>,
        now_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let blocks = block_ids(&blocks.0)?;
        let freed = self.locked(py, blocks.len() >= LONG, now_s, |core| {
            core.free(named(&segment, generation), &blocks)
        })?;
        released(py, &freed)
    }

    #[pyo3(signature = (kind, session, *, segment=None, generation=None, event=None, now_s=None))]
    #[expect(clippy::too_many_arguments, reason = "one argument a fact of the boundary")]
    fn boundary<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        session: Name,
        segment: Option<Name>,
        generation: Option<Whole>,
        event: Option<Name>,
        now_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let kind = boundary_kind(kind)?;
        let result = self.locked(py, true, now_s, |core| {
            let segment = segment.as_ref().map(|segment| named(segment, generation));
            core.boundary(&Boundary { kind, session: &session, segment, event: event.as_ref() })
        })?;
        released(py, &result)
    }

    #[pyo3(signature = (request, segments, *, now_s=None))]
    fn start_request(
        &self,
        py: Python<'_>,
        request: Name,
        segments: Vec<Name>,
        now_s: Option<f64>,
    ) -> PyResult<()> {
        self.locked(py, false, now_s, |core| {
            let segments: Vec<_> = segments.iter().map(Named::present).collect();
            core.start_request(&request, &segments)
        })
    }

    #[pyo3(signature = (request, *, aborted=false, now_s=None))]
    fn finish_request<'py>(
        &self,
        py: Python<'py>,
        request: Name,
        aborted: bool,
        now_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let result = self.locked(py, true, now_s, |core| {
            if aborted { core.abort(&request) } else { core.finish_request(&request) }
        })?;
        released(py, &result)
    }

    #[pyo3(signature = (*, now_s=None))]
    fn reap<'py>(&self, py: Python<'py>, now_s: Option<f64>) -> PyResult<Bound<'py, PyDict>> {
        released(py, &self.locked(py, true, now_s, Live::reap)?)
    }

    #[pyo3(signature = (blocks, *, tier=None))]
    fn reclaim<'py>(
        &self,
        py: Python<'py>,
        blocks: Whole,
        tier: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let blocks = count("blocks", blocks)?;
        let tier = tier.map(convert::tier).transpose()?;
        released(py, &self.locked(py, true, None, |core| Ok(core.reclaim(blocks, tier)))?)
    }

    #[pyo3(signature = (segment, *, generation=None))]
    fn blocks<'py>(
        &self,
        py: Python<'py>,
        segment: Name,
        generation: Option<Whole>,
    ) -> PyResult<Bound<'py, PyList>> {
        let ranges = self.locked(py, true, None, |core| core.blocks_of(named(&segment, generation)))?;
        PyList::new(py, ranges.iter().flat_map(|run| run.start..run.start + run.blocks).collect::<Vec<u32>>())
    }

    fn tier_of(&self, py: Python<'_>, block: Whole) -> PyResult<Py<PyAny>> {
        let block = block_ids(&[block.0])?[0];
        let tier = self.locked(py, false, None, |core| core.tier_of(block))?;
        Ok(name_of_tier(py, tier).clone().into_any().unbind())
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.locked(py, true, None, |core| core.check())
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (stats, policy) =
            self.locked(py, false, None, |core| Ok((core.stats(), core.policy_name().to_owned())))?;
        let per_tier = |values: PerTier<u64>| -> PyResult<Bound<'py, PyDict>> {
            let by_tier = PyDict::new(py);
            for tier in Tier::ALL {
                by_tier.set_item(name_of_tier(py, tier), values[tier])?;
            }
            Ok(by_tier)
        };
        let wide = |values: PerTier<u32>| PerTier(values.0.map(u64::from));
        let (segments, written) = (PyDict::new(py), PyDict::new(py));
        for class in SegmentClass::ALL {
            segments.set_item(class.name(), stats.segments[class as usize])?;
            written.set_item(class.name(), per_tier(stats.written_blocks.0[class as usize])?)?;
        }
        let counters = stats.counters;
        let result = PyDict::new(py);
        result.set_item("policy", policy)?;
        result.set_item("total_blocks", per_tier(wide(stats.total))?)?;
        result.set_item("free_blocks", per_tier(wide(stats.free))?)?;
        result.set_item("kept_blocks", per_tier(wide(stats.kept_blocks))?)?;
        result.set_item("shared_blocks", stats.shared_blocks)?;
        result.set_item("written_blocks", written)?;
        result.set_item("segments", segments)?;
        result.set_item("sessions", stats.sessions)?;
        result.set_item("running_requests", stats.running_requests)?;
        result.set_item("extents", stats.extents)?;
        for (name, value) in [
            ("closed", counters.closed),
            ("deferred", counters.deferred),
            ("reopened", counters.reopened),
            ("reaped", counters.reaped),
            ("late_events", counters.late_events),
            ("repeated_events", counters.repeated_events),
            ("turn_ends_kept", counters.turn_ends_kept),
            ("requests", counters.requests),
            ("aborted", counters.aborted),
            ("fallback_blocks", counters.fallbacks),
            ("adopted_blocks", counters.adopted),
            ("reclaimed_blocks", counters.reclaimed),
        ] {
            result.set_item(name, value)?;
        }
        Ok(result)
    }

    /// Bytes of the segment table.
    #[getter]
    fn table_bytes(&self) -> usize {
        self.core.lock().unwrap_or_else(PoisonError::into_inner).table_bytes()
    }
}
