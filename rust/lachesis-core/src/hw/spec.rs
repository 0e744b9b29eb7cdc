//! What pricing needs to know of a model and of a GPU.

use crate::hw::step_cost::WindowKind;

/// A window on attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Tokens.
    pub tokens: u32,
    /// How it moves.
    pub kind: WindowKind,
}

/// Grouped-query attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupedQuery {
    /// Query heads H.
    pub heads: f64,
    /// Key/value heads h_kv.
    pub kv_heads: f64,
    /// Values a head d.
    pub head_dim: f64,
    /// Projections that make keys and values: 2, or 1 where they share one.
    pub kv_projections: f64,
}

/// The index that selects what sparse latent attention reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseIndex {
    /// Latents read at most.
    pub top_k: u32,
    /// Index heads.
    pub heads: f64,
    /// Values an index key.
    pub head_dim: f64,
    /// Bytes an index value.
    pub bytes: f64,
}

/// Multi-head latent attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latent {
    /// Query heads.
    pub heads: f64,
    /// Rank of the cached latent.
    pub kv_lora_rank: f64,
    /// Rank of the query's projection.
    pub q_lora_rank: f64,
    /// Cached rotary values.
    pub qk_rope_dim: f64,
    /// Query/key values without position.
    pub qk_nope_dim: f64,
    /// Value dimension.
    pub v_dim: f64,
    /// Sparse selection, if any.
    pub index: Option<SparseIndex>,
}

/// How a group of layers attends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Attention {
    /// Grouped-query attention.
    GroupedQuery(GroupedQuery),
    /// Latent attention.
    Latent(Latent),
}

/// Layers with the same attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionGroup {
    /// How many layers.
    pub layers: f64,
    /// How they attend.
    pub attention: Attention,
    /// Their window, if any.
    pub window: Option<Window>,
}

/// A model, as far as pricing needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// Hidden size d_m.
    pub hidden: f64,
    /// Vocabulary.
    pub vocab: f64,
    /// Attention, by group of layers.
    pub groups: Vec<AttentionGroup>,
    /// Layers with a dense feed-forward network.
    pub dense_layers: f64,
    /// Its width.
    pub dense_ffn: f64,
    /// Layers with experts.
    pub moe_layers: f64,
    /// Routed experts E.
    pub experts: f64,
    /// Experts a token (topk).
    pub experts_per_token: f64,
    /// Width of an expert d_ff.
    pub expert_ffn: f64,
    /// Width of all shared experts together.
    pub shared_ffn: f64,
    /// Matrices of a feed-forward network before its last: 2 with a gate, else 1.
    pub up_matrices: f64,
    /// Bytes a weight and an activation value.
    pub weight_bytes: f64,
    /// Bytes a cached value.
    pub kv_bytes: f64,
    /// Bytes written to the cache a token, all layers.
    pub kv_bytes_per_token: f64,
}

/// How the tiers' bandwidth serves reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadPath {
    /// The accelerator uses the aggregate of all stacks, wherever the data lies.
    Pooled,
    /// Each tier is read at its own stacks, the two overlapped.
    PerTier,
}

/// A GPU and its links, as far as pricing needs them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuSpec {
    /// GPUs in the node.
    pub gpus: f64,
    /// Arithmetic rate F, FLOP/s.
    pub flops: f64,
    /// Read bandwidth of the HBM stacks together, bytes/s.
    pub hbm_read: f64,
    /// Read bandwidth of the HBF stacks together, bytes/s.
    pub hbf_read: f64,
    /// Write bandwidth of the HBF stacks together, bytes/s.
    pub hbf_write: f64,
    /// Link bandwidth a direction, bytes/s.
    pub link: f64,
    /// Link latency, s.
    pub link_latency: f64,
    /// Share of the arithmetic rate reached, η_c.
    pub compute_efficiency: f64,
    /// Share of the bandwidth reached, η_m.
    pub memory_efficiency: f64,
    /// Fixed time a step, s.
    pub step_overhead: f64,
    /// How reads are served.
    pub read_path: ReadPath,
}

impl GpuSpec {
    /// The aggregate of all stacks.
    #[must_use]
    pub fn read_bandwidth(&self) -> f64 {
        self.hbm_read + self.hbf_read
    }
}
