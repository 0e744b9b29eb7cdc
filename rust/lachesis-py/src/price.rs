//! Pricing and wear arithmetic for Python.

use lachesis_core::hw::{
    Attention, AttentionGroup, GpuSpec, GroupedQuery, Latent, ModelSpec, ReadPath, SparseIndex, TierReads,
    Window, WindowKind,
};
use lachesis_core::units::Picos;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::picos;
use crate::door::to_python;

/// The cost of a decode step; see `_engine.pyi`.
#[pyclass(frozen, module = "lachesis._engine")]
pub(crate) struct StepCost {
    pub(crate) core: lachesis_core::hw::StepCost,
}

fn window_kind(name: &str) -> PyResult<WindowKind> {
    match name {
        "sliding" => Ok(WindowKind::Sliding),
        "chunked" => Ok(WindowKind::Chunked),
        other => Err(PyValueError::new_err(format!("unknown window kind {other:?}"))),
    }
}

#[pymethods]
impl StepCost {
    #[new]
    #[pyo3(signature = (*, local_ps, shared_ps, context_ps=0, window_ps=0, window=0, window_kind="sliding", flush_ps=0,
        overhead_ps=0))]
    #[expect(clippy::too_many_arguments, reason = "one argument a coefficient")]
    fn new(
        local_ps: Vec<Picos>,
        shared_ps: Vec<Picos>,
        context_ps: Picos,
        window_ps: Picos,
        window: u32,
        window_kind: &str,
        flush_ps: Picos,
        overhead_ps: Picos,
    ) -> PyResult<Self> {
        let window_kind = self::window_kind(window_kind)?;
        let core = lachesis_core::hw::StepCost {
            local_ps,
            shared_ps,
            context_ps,
            window_ps,
            window,
            window_kind,
            flush_ps,
            overhead_ps,
            tier_reads: None,
        };
        Ok(Self { core })
    }

    /// A step that always takes the same time.
    #[staticmethod]
    fn constant(step_s: f64, slots: u32, gpus: usize) -> PyResult<Self> {
        let core = lachesis_core::hw::StepCost::constant(picos("step_time_s", step_s)?, slots, gpus);
        core.validate(slots, gpus).map_err(|error| to_python(&error))?;
        Ok(Self { core })
    }

    /// The price where each simulated GPU stands for `gpus` of the node; see `_engine.pyi`.
    fn of_a_part(&self, gpus: usize, slowest: f64) -> PyResult<Self> {
        if gpus == 0 {
            return Err(PyValueError::new_err("gpus must be at least 1"));
        }
        if !(1.0..=10.0).contains(&slowest) {
            return Err(PyValueError::new_err("slowest must be from 1 to 10"));
        }
        Ok(Self { core: self.core.of_a_part(gpus, slowest) })
    }

    #[getter]
    fn local_ps(&self) -> Vec<Picos> {
        self.core.local_ps.clone()
    }

    #[getter]
    fn shared_ps(&self) -> Vec<Picos> {
        self.core.shared_ps.clone()
    }

    #[getter]
    fn context_ps(&self) -> Picos {
        self.core.context_ps
    }

    #[getter]
    fn window_ps(&self) -> Picos {
        self.core.window_ps
    }

    #[getter]
    fn window(&self) -> u32 {
        self.core.window
    }

    #[getter]
    fn flush_ps(&self) -> Picos {
        self.core.flush_ps
    }

    #[getter]
    fn overhead_ps(&self) -> Picos {
        self.core.overhead_ps
    }

    /// (HBM, HBF) picoseconds a token where each tier is read at its own stacks: of full and of windowed layers.
    #[getter]
    fn tier_reads_ps(&self) -> Option<([Picos; 2], [Picos; 2])> {
        self.core.tier_reads.map(|TierReads { context_ps, window_ps }| (context_ps, window_ps))
    }
}

/// `model` of `price`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PriceModel {
    hidden: f64,
    vocab: f64,
    groups: Vec<PriceGroup>,
    dense_layers: f64,
    dense_ffn: f64,
    moe_layers: f64,
    experts: f64,
    experts_per_token: f64,
    expert_ffn: f64,
    shared_ffn: f64,
    up_matrices: f64,
    weight_bytes: f64,
    kv_bytes: f64,
    kv_bytes_per_token: f64,
}

/// `model["groups"]`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PriceGroup {
    layers: f64,
    heads: f64,
    kv_heads: f64,
    head_dim: f64,
    kv_projections: f64,
    window: u32,
    window_kind: String,
    latent: Option<PriceLatent>,
}

/// `model["groups"][i]["latent"]`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PriceLatent {
    kv_lora_rank: f64,
    q_lora_rank: f64,
    qk_rope_dim: f64,
    qk_nope_dim: f64,
    v_dim: f64,
    index_top_k: u32,
    index_heads: f64,
    index_head_dim: f64,
    index_bytes: f64,
}

impl PriceGroup {
    fn into_core(self) -> PyResult<AttentionGroup> {
        let attention = match self.latent {
            None => Attention::GroupedQuery(GroupedQuery {
                heads: self.heads,
                kv_heads: self.kv_heads,
                head_dim: self.head_dim,
                kv_projections: self.kv_projections,
            }),
            Some(latent) => Attention::Latent(Latent {
                heads: self.heads,
                kv_lora_rank: latent.kv_lora_rank,
                q_lora_rank: latent.q_lora_rank,
                qk_rope_dim: latent.qk_rope_dim,
                qk_nope_dim: latent.qk_nope_dim,
                v_dim: latent.v_dim,
                index: (latent.index_top_k > 0).then_some(SparseIndex {
                    top_k: latent.index_top_k,
                    heads: latent.index_heads,
                    head_dim: latent.index_head_dim,
                    bytes: latent.index_bytes,
                }),
            }),
        };
        let kind = window_kind(&self.window_kind)?;
        let window = (self.window > 0).then_some(Window { tokens: self.window, kind });
        Ok(AttentionGroup { layers: self.layers, attention, window })
    }
}

impl PriceModel {
    fn into_core(self) -> PyResult<ModelSpec> {
        Ok(ModelSpec {
            hidden: self.hidden,
            vocab: self.vocab,
            groups: self.groups.into_iter().map(PriceGroup::into_core).collect::<PyResult<_>>()?,
            dense_layers: self.dense_layers,
            dense_ffn: self.dense_ffn,
            moe_layers: self.moe_layers,
            experts: self.experts,
            experts_per_token: self.experts_per_token,
            expert_ffn: self.expert_ffn,
            shared_ffn: self.shared_ffn,
            up_matrices: self.up_matrices,
            weight_bytes: self.weight_bytes,
            kv_bytes: self.kv_bytes,
            kv_bytes_per_token: self.kv_bytes_per_token,
        })
    }
}

/// `gpu` of `price`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PriceGpu {
    gpus: f64,
    flops: f64,
    hbm_read: f64,
    hbf_read: f64,
    hbf_write: f64,
    link: f64,
    link_latency_s: f64,
    compute_efficiency: f64,
    memory_efficiency: f64,
    step_overhead_s: f64,
    read_path: String,
}

impl PriceGpu {
    fn into_core(self) -> PyResult<GpuSpec> {
        Ok(GpuSpec {
            gpus: self.gpus,
            flops: self.flops,
            hbm_read: self.hbm_read,
            hbf_read: self.hbf_read,
            hbf_write: self.hbf_write,
            link: self.link,
            link_latency: self.link_latency_s,
            compute_efficiency: self.compute_efficiency,
            memory_efficiency: self.memory_efficiency,
            step_overhead: self.step_overhead_s,
            read_path: match self.read_path.as_str() {
                "pooled" => ReadPath::Pooled,
                "per-tier" => ReadPath::PerTier,
                other => return Err(PyValueError::new_err(format!("unknown read path {other:?}"))),
            },
        })
    }
}

/// Prices a model on a GPU; see `_engine.pyi`.
#[pyfunction]
pub(crate) fn price(model: PriceModel, gpu: PriceGpu, slots: u32) -> PyResult<StepCost> {
    let core = lachesis_core::hw::price(&model.into_core()?, &gpu.into_core()?, slots)
        .map_err(|error| to_python(&error))?;
    Ok(StepCost { core })
}

/// Operators of a step: (name, runs, FLOPs, bytes) of each; see `_engine.pyi`.
#[pyfunction]
pub(crate) fn operators(model: PriceModel, batch: u32) -> PyResult<Vec<(&'static str, f64, f64, f64)>> {
    let model = model.into_core()?;
    let list = lachesis_core::hw::operators(&model, f64::from(batch));
    Ok(list
        .into_iter()
        .map(|operator| (operator.name, operator.times, operator.flops, operator.bytes))
        .collect())
}

/// Device-years; see `_engine.pyi`.
#[pyfunction]
pub(crate) fn device_years(
    capacity_bytes: f64,
    pe_cycles: f64,
    write_amplification: f64,
    bytes_per_second: f64,
) -> f64 {
    lachesis_core::hw::device_years(capacity_bytes, pe_cycles, write_amplification, bytes_per_second)
}
