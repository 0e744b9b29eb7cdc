"""What a decode step costs under some settings: presets in, the engine's integers out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lachesis import _engine
from lachesis.errors import InfeasibleError
from lachesis.presets import LayerGroup, ModelPreset, Settings
from lachesis.simulation.faults import engine_errors


@dataclass(frozen=True)
class NodePart:
    """GPUs that stand for all of a node, at their share of its load: faster and less precise.

    Attributes:
        gpus: how many are simulated; a divisor of the node's.
        slowest: how much longer the slowest of all GPUs takes for its own part of a step than the
            slowest of these.
        slowest_writes: the same for its writes to flash, which are few and large (a prompt at a
            time) where reads are many; as `slowest` if None.
    """

    gpus: int
    slowest: float = 1.0
    slowest_writes: float | None = None


def step_cost(
    settings: Settings, step_time_s: float | None = None, part: NodePart | None = None
) -> _engine.StepCost:
    """Price a step by roofline (``docs/pricing.md``), or as a constant of `step_time_s`.

    Args:
        settings: model, GPU, node.
        step_time_s: seconds that every step takes.
        part: of the node, if not all its GPUs are simulated.

    Raises:
        InputError: the model cannot be priced, or the constant is not above 0.
        InfeasibleError: there is no price for this read path on this memory.

    Example:
        >>> cost = step_cost(Settings.choose(model="llama-4-maverick", memory="2/6"))
        >>> cost.context_ps  # 12 full layers x 2 x 8 heads x 128 values x 2 bytes at 12.8 TB/s
        3840
    """
    with engine_errors("pricing"):
        return _price(settings, step_time_s, part)


# A sweep asks for the price of the same settings once a cell.
@lru_cache(maxsize=64)
def _price(
    settings: Settings, step_time_s: float | None, part: NodePart | None
) -> _engine.StepCost:
    slots = settings.hardware.max_sequences
    if step_time_s is not None:
        whole = _engine.StepCost.constant(step_time_s, slots, settings.node.gpus)
    else:
        rates = gpu_rates(settings)
        if part is not None and part.slowest_writes is not None:
            # A write is priced as 1 over this rate, and becomes `slowest` times as dear below.
            rates["hbf_write"] *= part.slowest / part.slowest_writes
        whole = _engine.price(model_shape(settings.model, settings), rates, slots)
    if part is None:
        return whole
    return whole.of_a_part(settings.node.gpus // part.gpus, part.slowest)


def stored_bytes_per_token(settings: Settings) -> float:
    """Bytes that one token of KV occupies and writes, as blocks are counted."""
    capacity = settings.kv_capacity()
    return capacity.block_bytes / settings.node.block_tokens


def model_shape(model: ModelPreset, settings: Settings) -> dict[str, Any]:
    """The shape of a model as `_engine.price` takes it: numbers of values, layers and bytes."""
    return {
        "hidden": float(model.hidden),
        "vocab": float(model.vocab),
        "groups": [_group_shape(model, group, settings) for group in model.layer_groups],
        "dense_layers": float(model.dense_layers),
        "dense_ffn": float(model.dense_ffn),
        "moe_layers": float(model.moe_layers),
        "experts": float(model.experts),
        "experts_per_token": float(model.experts_per_token),
        "expert_ffn": float(model.expert_ffn),
        "shared_ffn": float(model.shared_experts * model.shared_ffn),
        "up_matrices": 2.0 if model.gated_ffn else 1.0,
        "weight_bytes": float(model.weight_bytes_per_value),
        "kv_bytes": float(model.kv_bytes_per_value),
        "kv_bytes_per_token": stored_bytes_per_token(settings),
    }


def _group_shape(model: ModelPreset, group: LayerGroup, settings: Settings) -> dict[str, Any]:
    latent = None
    if model.mla is not None:
        dsa = model.dsa
        latent = {
            "kv_lora_rank": float(model.mla.kv_lora_rank),
            "q_lora_rank": float(model.mla.q_lora_rank),
            "qk_rope_dim": float(model.mla.qk_rope_dim),
            "qk_nope_dim": float(model.mla.qk_nope_dim),
            "v_dim": float(model.mla.v_dim),
            "index_top_k": 0 if dsa is None else dsa.top_k_tokens,
            "index_heads": 0.0 if dsa is None else float(dsa.indexer_heads),
            "index_head_dim": 0.0 if dsa is None else float(dsa.indexer_head_dim),
            "index_bytes": 0.0 if dsa is None else float(dsa.index_key_bytes_per_value),
        }
    chunk_aligned = group.window_kind == "chunked" and settings.node.chunk_reads == "aligned"
    return {
        "layers": float(group.layers),
        "heads": float(model.heads),
        "kv_heads": float(group.kv_heads),
        "head_dim": float(group.head_dim),
        "kv_projections": 2.0 if group.value_projection else 1.0,
        "window": 0 if settings.node.windowed_reads == "full" else group.window or 0,
        "window_kind": "chunked" if chunk_aligned else "sliding",
        "latent": latent,
    }


def gpu_rates(settings: Settings) -> dict[str, Any]:
    """The rates of one GPU as `_engine.price` takes them: bytes and FLOPs a second, seconds."""
    gpu, memory = settings.hardware, settings.memory
    if memory.chain and settings.node.read_path == "per-tier":
        raise InfeasibleError(
            "on the daisy chain flash is read through HBM: there are no stacks of its own to price",
            field="node.read_path",
            value="per-tier",
        )
    return {
        "gpus": float(settings.node.gpus),
        "flops": gpu.bf16_flops,
        "hbm_read": gpu.hbm_read_bytes_per_s(memory),
        "hbf_read": gpu.pooled_read_bytes_per_s(memory) - gpu.hbm_read_bytes_per_s(memory),
        "hbf_write": gpu.hbf_write_bytes_per_s(memory),
        "link": gpu.nvlink_bytes_per_s,
        "link_latency_s": gpu.nvlink_latency_s,
        "compute_efficiency": gpu.compute_efficiency,
        "memory_efficiency": gpu.memory_efficiency,
        "step_overhead_s": gpu.step_overhead_s,
        "read_path": settings.node.read_path,
    }
