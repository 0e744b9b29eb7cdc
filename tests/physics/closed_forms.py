"""What a decode step costs, written down apart from the engine: shapes from the models' published
configurations, formulas as the field writes them (one GPU of the paper: 4,000 TFLOPS, 12.8 TB/s).

Nothing here is read from the presets or computed by the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

FLOPS = 4000e12
READ = 8 * 1.6e12  # eight stacks of either kind
HBF_WRITE = 16e9  # a stack
LINK, LINK_LATENCY_S = 1800e9, 0.8e-6
GPUS = 8


@dataclass(frozen=True)
class Attention:
    """Layers of one kind: heads of `width` values; keys and values in `kv_heads` of them."""

    layers: int
    heads: int
    kv_heads: int
    width: int
    window: int = 0
    kv_projections: int = 2


@dataclass(frozen=True)
class Latent:
    """Latent attention of the DeepSeek kind, with a sparse index where `top_k` is above 0."""

    layers: int
    heads: int = 128
    rank: int = 512
    rope: int = 64
    nope: int = 128
    value: int = 128
    query_rank: int = 1536
    top_k: int = 0
    index_heads: int = 64
    index_width: int = 128


@dataclass(frozen=True)
class Shape:
    """A model: hidden size, vocabulary, attention, feed-forward widths."""

    hidden: int
    vocab: int
    attention: tuple[Attention | Latent, ...]
    dense: tuple[int, int] = (0, 0)  # layers, width
    moe: tuple[int, int, int, int] = (0, 0, 0, 0)  # layers, experts, experts a token, width
    shared: int = 0  # width of the experts that every token meets
    kv_bytes: float = 2.0
    efficiency: tuple[float, float] = (1.0, 1.0)  # of arithmetic, of bandwidth


MODELS = {
    "llama-4-maverick": Shape(
        hidden=5120,
        vocab=202_048,
        attention=(Attention(36, 40, 8, 128, window=8192), Attention(12, 40, 8, 128)),
        dense=(24, 16_384),
        moe=(24, 128, 1, 8192),
        shared=8192,
    ),
    "qwen3-235b-a22b": Shape(
        hidden=4096,
        vocab=151_936,
        attention=(Attention(94, 64, 4, 128),),
        moe=(94, 128, 8, 1536),
    ),
    "deepseek-v3": Shape(
        hidden=7168,
        vocab=129_280,
        attention=(Latent(61),),
        dense=(3, 18_432),
        moe=(58, 256, 8, 2048),
        shared=2048,
    ),
    "deepseek-v3.2": Shape(
        hidden=7168,
        vocab=129_280,
        attention=(Latent(61, top_k=2048),),
        dense=(3, 18_432),
        moe=(58, 256, 8, 2048),
        shared=2048,
    ),
    "llama-3.1-70b": Shape(
        hidden=8192,
        vocab=128_256,
        attention=(Attention(80, 64, 8, 128),),
        dense=(80, 28_672),
    ),
    "gemma-4-31b": Shape(
        hidden=5376,
        vocab=262_144,
        attention=(
            Attention(50, 32, 16, 256, window=1024),
            Attention(10, 32, 4, 512, kv_projections=1),
        ),
        dense=(60, 21_504),
    ),
}


def roof_s(shape: Shape, flops: float, bytes_read: float, bandwidth: float = READ) -> float:
    compute, memory = shape.efficiency
    return max(flops / (compute * FLOPS), bytes_read / (memory * bandwidth))


def product_s(shape: Shape, m: int, k: int, n: int) -> float:
    """A matrix product m x k by k x n in BF16: both operands and the result cross the bus once."""
    return roof_s(shape, 2.0 * m * k * n, 2.0 * (m * k + k * n + m * n))


def attention_projections_s(shape: Shape, batch: int) -> float:
    total = 0.0
    for a in shape.attention:
        if isinstance(a, Attention):
            wide = a.heads * a.width
            total += a.layers * (
                product_s(
                    shape, batch, shape.hidden, wide + a.kv_projections * a.kv_heads * a.width
                )
                + product_s(shape, batch, wide, shape.hidden)
            )
            continue
        per_layer = (
            product_s(shape, batch, shape.hidden, a.query_rank)
            + product_s(shape, batch, a.query_rank, a.heads * (a.nope + a.rope))
            + product_s(shape, batch, shape.hidden, a.rank + a.rope)
            # Keys and values are never expanded: each head's query goes down to the latent, and
            # its result comes up from it.
            + a.heads * product_s(shape, batch, a.nope, a.rank)
            + a.heads * product_s(shape, batch, a.rank, a.value)
            + product_s(shape, batch, a.heads * a.value, shape.hidden)
        )
        if a.top_k:
            per_layer += product_s(shape, batch, a.query_rank, a.index_heads * a.index_width)
            per_layer += product_s(shape, batch, shape.hidden, a.index_width + a.index_heads)
        total += a.layers * per_layer
    return total


def feed_forward_s(shape: Shape, batch: int) -> float:
    """Gated blocks: gate and up side by side, then down. Dense layers, router, shared experts."""

    def gated(width: int) -> float:
        up = product_s(shape, batch, shape.hidden, 2 * width)
        return up + product_s(shape, batch, width, shape.hidden)

    layers, width = shape.dense
    total = layers * gated(width) if layers else 0.0
    moe_layers, experts, _, _ = shape.moe
    if moe_layers:
        total += moe_layers * product_s(shape, batch, shape.hidden, experts)
        total += moe_layers * gated(shape.shared) if shape.shared else 0.0
    return total


def all_to_all_s(shape: Shape, batch: int) -> float:
    """Tokens go to their experts' GPUs and come back: two exchanges a layer."""
    layers, _, per_token, _ = shape.moe
    if not layers:
        return 0.0
    away = batch * per_token * (GPUS - 1) / GPUS * shape.hidden * 2.0
    return 2 * layers * (away / LINK + LINK_LATENCY_S)


def local_s(shape: Shape, batch: int) -> float:
    """What depends on a GPU's batch alone; nothing for an idle GPU."""
    if batch == 0:
        return 0.0
    return (
        attention_projections_s(shape, batch)
        + feed_forward_s(shape, batch)
        + product_s(shape, batch, shape.hidden, shape.vocab)
        + all_to_all_s(shape, batch)
    )


def experts_s(shape: Shape, node_batch: int) -> float:
    """Routed experts: a GPU reads those that at least one of the node's tokens is sent to."""
    layers, experts, per_token, width = shape.moe
    if not layers:
        return 0.0
    untouched = (1.0 - per_token / experts) ** node_batch
    expert = 3 * shape.hidden * width  # gate, up, down
    bytes_read = experts / GPUS * (1.0 - untouched) * expert * 2.0
    flops = 2.0 * expert * per_token * node_batch / GPUS
    return layers * roof_s(shape, flops, bytes_read)


def context_token(shape: Shape, a: Attention | Latent) -> list[tuple[float, float]]:
    """FLOPs and bytes of one context token in one layer: read in full, and through a window."""
    nothing = (0.0, 0.0)
    if isinstance(a, Attention):
        read = (4.0 * a.heads * a.width, 2.0 * a.kv_heads * a.width * shape.kv_bytes)
        return [nothing, read] if a.window else [read, nothing]
    wide = a.rank + a.rope
    latent = (2.0 * a.heads * (wide + a.rank), wide * shape.kv_bytes)
    if not a.top_k:
        return [latent, nothing]
    # Index keys are kept in one byte a value and all of them are scored.
    return [(2.0 * a.index_heads * a.index_width, float(a.index_width)), latent]


def context_s(shape: Shape) -> float:
    """Of every token in full reach."""
    return sum(a.layers * roof_s(shape, *context_token(shape, a)[0]) for a in shape.attention)


def window_s(shape: Shape) -> float:
    """Of every token that windowed layers, or sparse ones, still read."""
    return sum(a.layers * roof_s(shape, *context_token(shape, a)[1]) for a in shape.attention)


def tier_s(shape: Shape, part: int, stacks: int) -> float:
    """Bytes alone of one token, at the stacks of one tier; `part` 0: full reach, 1: windowed."""
    bandwidth = shape.efficiency[1] * stacks * 1.6e12
    return sum(a.layers * context_token(shape, a)[part][1] / bandwidth for a in shape.attention)


def arithmetic_s(shape: Shape, part: int) -> float:
    rate = shape.efficiency[0] * FLOPS
    return sum(a.layers * context_token(shape, a)[part][0] / rate for a in shape.attention)


def stored_bytes(shape: Shape) -> float:
    """What a token adds to the cache: keys and values, or the latent and the index key."""
    total = 0.0
    for a in shape.attention:
        if isinstance(a, Attention):
            total += a.layers * 2 * a.kv_heads * a.width * shape.kv_bytes
        else:
            total += a.layers * (
                (a.rank + a.rope) * shape.kv_bytes + (a.index_width if a.top_k else 0)
            )
    return total
