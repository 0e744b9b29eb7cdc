"""The decode node: how many GPUs, and how KV is counted on them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lachesis.presets.base import Efficiency, PositiveInt, Preset, SizeBytes
from lachesis.presets.loader import load_preset

DEFAULT_NODE = "paper"

WindowedKv = Literal["full", "trim"]
ReadPath = Literal["pooled", "per-tier"]
Landing = Literal["async", "sync"]
TurnEnd = Literal["last-output", "next-message"]
ChunkReads = Literal["last-window", "aligned"]
WindowedReads = Literal["window", "full"]


class NodePreset(Preset, frozen=True, kw_only=True):
    """GPUs that decode in lock step, and the unit in which their KV is counted.

    `windowed_kv` says whether windowed and chunked layers keep KV for every token (``full``) or
    for their window only (``trim``). A block has one size for all contexts, so ``trim`` spreads
    what a context of `trim_context_tokens` keeps evenly over its tokens: exact at that length,
    too small below it and too large above it.

    `read_path` says whether reads use the aggregate of all stacks (``pooled``) or each tier its own
    stacks, overlapped (``per-tier``); `landing` whether prefilled KV that lands in flash is charged
    to the next step (``sync``) or to nobody (``async``); `turn_end` when a turn's context ends and
    what it carries forward is written: at its ``last-output``, or at the ``next-message``.
    `chunk_reads` says whether layers with chunked attention read the ``last-window`` of tokens, or
    back to the start of the current chunk only (``aligned``: c mod window of a context of c).
    `windowed_reads` says whether layers with a window read no more than it (``window``), or the
    whole context as all others do (``full``: what a simulator without windows prices).
    `duty_cycle` is the share of time in which the node serves at the rate that is measured; in the
    rest it writes nothing. It changes device-years alone.
    """

    gpus: Annotated[int, Meta(ge=1, le=256)]
    block_tokens: Annotated[int, Meta(ge=1, le=1024)]
    activation_reserve_bytes_per_gpu: SizeBytes
    windowed_kv: WindowedKv
    trim_context_tokens: PositiveInt
    read_path: ReadPath
    landing: Landing
    turn_end: TurnEnd
    chunk_reads: ChunkReads
    windowed_reads: WindowedReads
    duty_cycle: Efficiency


def load_node(name: str = DEFAULT_NODE) -> NodePreset:
    """Load a node by name, or from a TOML file of the user's.

    Raises:
        InputError: unknown name, or a file that is missing, broken or out of range.

    Example:
        >>> node = load_node()
        >>> node.gpus, node.block_tokens, node.windowed_kv
        (8, 16, 'full')
    """
    return load_preset("node", name, NodePreset)
