//! Roofline pricing: t = max(FLOPs/(η_c·F), bytes/(η_m·BW)), summed over operators and layers.
//!
//! `docs/pricing.md` lists every operator; `operators` returns them, so that a test can add them up by hand.

use crate::error::{Error, Result};
use crate::hw::spec::{Attention, AttentionGroup, GpuSpec, Latent, ModelSpec, ReadPath, Window};
use crate::hw::step_cost::{StepCost, TierReads, WindowKind, round_price};
use crate::units::Picos;

/// One operator of one step on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// What it is.
    pub name: &'static str,
    /// How many times it runs a step.
    pub times: f64,
    /// Arithmetic of one run.
    pub flops: f64,
    /// Bytes of one run.
    pub bytes: f64,
}

impl Operator {
    /// GEMM m×k→n: 2mkn FLOPs, e(mk + kn + mn) bytes.
    fn gemm(name: &'static str, times: f64, e: f64, m: f64, k: f64, n: f64) -> Self {
        Self { name, times, flops: 2.0 * m * k * n, bytes: e * (m * k + k * n + m * n) }
    }

    /// Its time over all runs.
    #[must_use]
    pub fn seconds(&self, gpu: &GpuSpec) -> f64 {
        let compute = self.flops / (gpu.compute_efficiency * gpu.flops);
        let memory = self.bytes / (gpu.memory_efficiency * gpu.read_bandwidth());
        self.times * compute.max(memory)
    }
}

/// The GPU-local operators of a step with batch `b` that depend on the batch alone.
#[must_use]
pub fn operators(model: &ModelSpec, b: f64) -> Vec<Operator> {
    let (e, d) = (model.weight_bytes, model.hidden);
    let mut list = Vec::new();
    for group in &model.groups {
        let times = group.layers;
        match group.attention {
            Attention::GroupedQuery(a) => {
                list.push(Operator::gemm(
                    "qkv projection",
                    times,
                    e,
                    b,
                    d,
                    (a.heads + a.kv_projections * a.kv_heads) * a.head_dim,
                ));
                list.push(Operator::gemm("output projection", times, e, b, a.heads * a.head_dim, d));
            }
            Attention::Latent(a) => {
                let query = a.heads * (a.qk_nope_dim + a.qk_rope_dim);
                list.push(Operator::gemm("query down projection", times, e, b, d, a.q_lora_rank));
                list.push(Operator::gemm("query up projection", times, e, b, a.q_lora_rank, query));
                list.push(Operator::gemm(
                    "latent projection",
                    times,
                    e,
                    b,
                    d,
                    a.kv_lora_rank + a.qk_rope_dim,
                ));
                // The up projections of keys and values are absorbed: one small GEMM a head.
                let heads = times * a.heads;
                list.push(Operator::gemm(
                    "absorbed key projection",
                    heads,
                    e,
                    b,
                    a.qk_nope_dim,
                    a.kv_lora_rank,
                ));
                list.push(Operator::gemm("absorbed value projection", heads, e, b, a.kv_lora_rank, a.v_dim));
                list.push(Operator::gemm("output projection", times, e, b, a.heads * a.v_dim, d));
                if let Some(i) = a.index {
                    list.push(Operator::gemm(
                        "index query projection",
                        times,
                        e,
                        b,
                        a.q_lora_rank,
                        i.heads * i.head_dim,
                    ));
                    list.push(Operator::gemm("index key projection", times, e, b, d, i.head_dim + i.heads));
                }
            }
        }
    }
    if model.dense_layers > 0.0 {
        list.push(Operator::gemm(
            "dense up projection",
            model.dense_layers,
            e,
            b,
            d,
            model.up_matrices * model.dense_ffn,
        ));
        list.push(Operator::gemm("dense down projection", model.dense_layers, e, b, model.dense_ffn, d));
    }
    if model.moe_layers > 0.0 {
        list.push(Operator::gemm("router", model.moe_layers, e, b, d, model.experts));
        if model.shared_ffn > 0.0 {
            list.push(Operator::gemm(
                "shared expert up projection",
                model.moe_layers,
                e,
                b,
                d,
                model.up_matrices * model.shared_ffn,
            ));
            list.push(Operator::gemm(
                "shared expert down projection",
                model.moe_layers,
                e,
                b,
                model.shared_ffn,
                d,
            ));
        }
    }
    list.push(Operator::gemm("language model head", 1.0, e, b, d, model.vocab));
    list
}

/// All-to-all, twice a MoE layer: B·topk·((G − 1)/G)·d_m·e / BW_link + latency.
fn all_to_all(model: &ModelSpec, gpu: &GpuSpec, b: f64) -> f64 {
    if model.moe_layers <= 0.0 || gpu.gpus <= 1.0 {
        return 0.0;
    }
    let bytes =
        b * model.experts_per_token * ((gpu.gpus - 1.0) / gpu.gpus) * model.hidden * model.weight_bytes;
    2.0 * model.moe_layers * (bytes / gpu.link + gpu.link_latency)
}

/// The routed experts of a step in which the node runs `sum_b` requests.
///
/// D = (E/G)·(1 − (1 − topk/E)^ΣB) experts a GPU; bytes D·3·d_m·d_ff·e; FLOPs 6·d_m·d_ff·topk·ΣB/G (2 and 4 without a gate).
fn experts(model: &ModelSpec, gpu: &GpuSpec, sum_b: f64) -> f64 {
    if model.moe_layers <= 0.0 {
        return 0.0;
    }
    let missed = libm::pow(1.0 - model.experts_per_token / model.experts, sum_b);
    let touched = model.experts / gpu.gpus * (1.0 - missed);
    Operator {
        name: "routed experts",
        times: model.moe_layers,
        flops: 2.0
            * (model.up_matrices + 1.0)
            * model.hidden
            * model.expert_ffn
            * model.experts_per_token
            * sum_b
            / gpu.gpus,
        bytes: touched * (model.up_matrices + 1.0) * model.hidden * model.expert_ffn * model.weight_bytes,
    }
    .seconds(gpu)
}

/// Arithmetic and bytes that one token of context costs a layer: (FLOPs, bytes) read in full, and read through the window or the sparse selection.
fn per_context_token(model: &ModelSpec, group: &AttentionGroup) -> [(f64, f64); 2] {
    match group.attention {
        Attention::GroupedQuery(a) => {
            let read = (4.0 * a.heads * a.head_dim, 2.0 * a.kv_heads * a.head_dim * model.kv_bytes);
            if group.window.is_some() { [(0.0, 0.0), read] } else { [read, (0.0, 0.0)] }
        }
        Attention::Latent(a) => {
            let latent = a.kv_lora_rank + a.qk_rope_dim;
            let read = (2.0 * a.heads * (latent + a.kv_lora_rank), latent * model.kv_bytes);
            match a.index {
                None => [read, (0.0, 0.0)],
                Some(i) => [(2.0 * i.heads * i.head_dim, i.head_dim * i.bytes), read],
            }
        }
    }
}

/// The window that the model's windowed layers share, sparse selection included.
fn single_window(model: &ModelSpec) -> Result<Window> {
    let mut found: Option<Window> = None;
    for group in &model.groups {
        let sparse = match group.attention {
            Attention::Latent(Latent { index: Some(i), .. }) => {
                Some(Window { tokens: i.top_k, kind: WindowKind::Sliding })
            }
            _ => None,
        };
        for window in group.window.into_iter().chain(sparse) {
            if found.is_some_and(|other| other != window) {
                return Err(Error::Setting {
                    name: "window",
                    value: window.tokens.to_string(),
                    rule: "all windowed layers of a model must share one window",
                });
            }
            found = Some(window);
        }
    }
    Ok(found.unwrap_or(Window { tokens: 0, kind: WindowKind::Sliding }))
}

/// Prices a model on a GPU for up to `slots` requests a GPU.
///
/// # Errors
/// `Error::Setting` if the model has windows of different lengths: a step's cost tracks one.
pub fn price(model: &ModelSpec, gpu: &GpuSpec, slots: u32) -> Result<StepCost> {
    let node = f64::from(slots) * gpu.gpus;
    let local = |b: u32| {
        let b = f64::from(b);
        operators(model, b).iter().map(|operator| operator.seconds(gpu)).sum::<f64>()
            + all_to_all(model, gpu, b)
    };
    let local_ps = (0..=slots).map(|b| if b == 0 { 0 } else { round_price(local(b)) }).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "slots × GPUs is a small whole number"
    )]
    let most = node as u32;
    let shared_ps = (0..=most).map(|b| round_price(experts(model, gpu, f64::from(b)))).collect();

    let window = single_window(model)?;
    // Seconds a token by [full, windowed] × [arithmetic, HBM stacks, HBF stacks, all stacks].
    let mut seconds = [[0.0_f64; 4]; 2];
    for group in &model.groups {
        for (part, (flops, bytes)) in per_context_token(model, group).into_iter().enumerate() {
            let compute = group.layers * flops / (gpu.compute_efficiency * gpu.flops);
            let memory = |bandwidth: f64| group.layers * bytes / (gpu.memory_efficiency * bandwidth);
            match gpu.read_path {
                ReadPath::Pooled => seconds[part][0] += compute.max(memory(gpu.read_bandwidth())),
                ReadPath::PerTier => {
                    seconds[part][0] += compute;
                    seconds[part][1] += memory(gpu.hbm_read);
                    seconds[part][2] += memory(gpu.hbf_read);
                }
            }
        }
    }
    let ps = |part: usize, which: usize| -> Picos { round_price(seconds[part][which]) };
    Ok(StepCost {
        local_ps,
        shared_ps,
        context_ps: ps(0, 0),
        window_ps: ps(1, 0),
        window: window.tokens,
        window_kind: window.kind,
        flush_ps: if gpu.hbf_write > 0.0 { round_price(model.kv_bytes_per_token / gpu.hbf_write) } else { 0 },
        overhead_ps: round_price(gpu.step_overhead),
        tier_reads: (gpu.read_path == ReadPath::PerTier)
            .then(|| TierReads { context_ps: [ps(0, 1), ps(0, 2)], window_ps: [ps(1, 1), ps(1, 2)] }),
    })
}
