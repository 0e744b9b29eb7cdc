"""The decode node: how many GPUs, and how KV is counted on them."""

from __future__ import annotations

from typing import Literal

from lachesis.presets.base import PositiveInt, Preset, SizeBytes
from lachesis.presets.loader import load_preset

DEFAULT_NODE = "paper"

WindowedKv = Literal["full", "trim"]


class NodePreset(Preset, frozen=True, kw_only=True):
    """GPUs that decode in lock step, and the unit in which their KV is counted.

    `windowed_kv` says whether windowed and chunked layers keep KV for every token (``full``) or
    for their window only (``trim``). A block has one size for all contexts, so ``trim`` spreads
    what a context of `trim_context_tokens` keeps evenly over its tokens: exact at that length,
    too small below it and too large above it.
    """

    gpus: PositiveInt
    block_tokens: PositiveInt
    activation_reserve_bytes_per_gpu: SizeBytes
    windowed_kv: WindowedKv
    trim_context_tokens: PositiveInt


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
