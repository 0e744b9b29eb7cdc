"""How much KV a GPU holds in each tier, once the weights lie in their place."""

from __future__ import annotations

import msgspec

from lachesis.errors import InfeasibleError, InputError
from lachesis.presets.hardware import HardwarePreset
from lachesis.presets.memory import MemorySplit
from lachesis.presets.model import ModelPreset
from lachesis.presets.node import WindowedKv

# The engine counts bytes in signed 64-bit integers.
_BYTES_LIMIT = 2**62


class KvCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of one GPU. `hbm_bytes` and `hbf_bytes` are whole tiers, weights area included."""

    hbm_bytes: int
    hbf_bytes: int
    weights_bytes_per_gpu: int
    weights_in_hbf: bool
    activation_reserve_bytes: int
    block_bytes: int
    hbm_blocks: int
    hbf_blocks: int

    @property
    def hbm_share(self) -> float:
        """HBM's share of the KV capacity, counted in blocks."""
        return self.hbm_blocks / (self.hbm_blocks + self.hbf_blocks)


def kv_capacity(
    model: ModelPreset,
    hardware: HardwarePreset,
    memory: MemorySplit,
    *,
    block_tokens: int = 16,
    gpus: int = 8,
    activation_reserve_bytes: int = 0,
    windowed_kv: WindowedKv = "full",
    trim_context_tokens: int = 20_000,
) -> KvCapacity:
    """Blocks of KV in each tier of one GPU.

    Weights lie in HBF where there is any, and in HBM on a GPU without HBF; they are never split
    over both tiers. Whatever they leave of their tier is KV. With ``trim`` a block's size is what
    a context of `trim_context_tokens` keeps, spread evenly over its tokens and rounded up.

    Args:
        model: gives weights and KV bytes a token.
        hardware: gives the stacks.
        memory: which stacks the slots carry.
        block_tokens: tokens a block.
        gpus: GPUs over which the routed experts are dealt out.
        activation_reserve_bytes: HBM a GPU kept free of KV.
        windowed_kv: whether windowed layers keep everything (``full``) or their window (``trim``).
        trim_context_tokens: context length at which ``trim`` is exact.

    Raises:
        InfeasibleError: the split does not suit the GPU, the weights (or the reserve) do not fit,
            or no block is left in either tier.
        InputError: a count is below 1, or the memory is larger than can be counted.

    Example:
        >>> from lachesis.presets import load_hardware, load_model
        >>> gpu, model = load_hardware(), load_model()
        >>> capacity = kv_capacity(model, gpu, MemorySplit.parse("2/6"))
        >>> capacity.hbm_blocks, capacity.hbf_blocks
        (22888, 936837)
    """
    hardware.check_memory(memory)
    counts = {
        "block_tokens": block_tokens,
        "gpus": gpus,
        "trim_context_tokens": trim_context_tokens,
    }
    for field, value in counts.items():
        if value < 1:
            raise InputError("must be at least 1", field=field, value=value)
    hbm_bytes, hbf_bytes = hardware.hbm_bytes(memory), hardware.hbf_bytes(memory)
    if hbm_bytes + hbf_bytes >= _BYTES_LIMIT:
        raise InputError(
            "memory of a GPU must stay below 2**62 bytes", field="memory", value=str(memory)
        )
    weights = model.weight_bytes_per_gpu(gpus)
    in_hbf = memory.hbf_stacks > 0
    hbm_kv = hbm_bytes - activation_reserve_bytes - (0 if in_hbf else weights)
    hbf_kv = hbf_bytes - weights if in_hbf else 0
    if hbf_kv < 0:
        raise InfeasibleError(
            _too_large(model, weights, gpus, "HBF", hbf_bytes), field="memory", value=str(memory)
        )
    if hbm_kv < 0:
        room = hbm_bytes - activation_reserve_bytes
        rule = (
            f"the activation reserve of {_gb(activation_reserve_bytes)} exceeds the HBM of "
            f"{_gb(hbm_bytes)} a GPU"
            if in_hbf or room < 0
            else _too_large(model, weights, gpus, "HBM", room)
        )
        raise InfeasibleError(rule, field="memory", value=str(memory))
    block_bytes = _block_bytes(model, block_tokens, windowed_kv, trim_context_tokens)
    hbm_blocks, hbf_blocks = hbm_kv // block_bytes, hbf_kv // block_bytes
    if hbm_blocks + hbf_blocks == 0:
        raise InfeasibleError(
            f"weights of {model.name} leave no room for one block of {block_tokens} tokens",
            field="memory",
            value=str(memory),
        )
    return KvCapacity(
        hbm_bytes=hbm_bytes,
        hbf_bytes=hbf_bytes,
        weights_bytes_per_gpu=weights,
        weights_in_hbf=in_hbf,
        activation_reserve_bytes=activation_reserve_bytes,
        block_bytes=block_bytes,
        hbm_blocks=hbm_blocks,
        hbf_blocks=hbf_blocks,
    )


def _block_bytes(
    model: ModelPreset, block_tokens: int, windowed_kv: WindowedKv, trim_context_tokens: int
) -> int:
    if windowed_kv == "full":
        return block_tokens * model.stored_bytes_per_token
    kept = model.stored_bytes(trim_context_tokens, "trim")
    return -(-block_tokens * kept // trim_context_tokens)


def _too_large(model: ModelPreset, weights: int, gpus: int, tier: str, room: int) -> str:
    return (
        f"weights of {model.name} take {_gb(weights)} a GPU over {gpus} GPUs, "
        f"more than the {tier} of {_gb(room)}"
    )


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB"
