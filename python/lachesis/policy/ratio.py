"""The threshold of `read-write-ratio`, fixed from the trace before the run.

Kyung et al. (IEEE CAL 25(1) 210-213) send to flash what is read often for each time it is written.
Here the unit is the segment class: classes whose mean ratio lies above the threshold go to HBF. The
lower the ratios of what stays in HBM, the more of the reads flash serves and the fewer of the
writes; the threshold is therefore raised as far as HBM has room for what stays below it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lachesis.characterise.ratio import ClassFootprint, footprints, mean_read_write_ratio
from lachesis.characterise.reference_clock import schedule
from lachesis.errors import InputError
from lachesis.policy.policies import Policy
from lachesis.presets import LatencyPreset, Settings
from lachesis.traces.trace import Trace


@dataclass(frozen=True)
class ClassReads:
    """What the threshold needs to know of a trace, whatever the load and the memory.

    Attributes:
        footprints: by class, per live session, in blocks of `block_tokens`.
        ratios: by class, the mean read-to-write ratio.
        block_tokens: tokens a block.
    """

    footprints: dict[str, ClassFootprint]
    ratios: dict[str, float]
    block_tokens: int


def class_reads(
    trace: Trace, latency: LatencyPreset, *, block_tokens: int, seed: int = 0
) -> ClassReads:
    """Measure a trace for `fix_threshold`.

    Args:
        trace: what will be replayed.
        latency: of the reference clock.
        block_tokens: tokens a block.
        seed: of the reference clock's delays.
    """
    clock = schedule(trace, latency, seed)
    held = footprints(trace, clock, latency, block_tokens=block_tokens)
    return ClassReads(held, mean_read_write_ratio(trace), block_tokens)


def fix_threshold(
    policy: Policy,
    trace: Trace,
    settings: Settings,
    load_sessions: int,
    *,
    seed: int = 0,
    reads: ClassReads | None = None,
) -> Policy:
    """`read-write-ratio` with the classes that go to HBM, for one load and memory.

    The threshold is a class's mean ratio: the largest such that all classes at or below it have,
    together, a mean footprint that fits the HBM of the node's GPUs. It is 0 where not even the
    class with the lowest ratio fits, and everything goes to flash. Classes with equal ratios are
    not told apart: they fit together or not at all.

    Args:
        policy: `read-write-ratio`.
        trace: what will be replayed.
        settings: gives HBM blocks of a GPU, GPUs, and the reference clock's latencies.
        load_sessions: live sessions of the node.
        seed: of the reference clock's delays.
        reads: of the trace, where the caller has measured it already, with these latencies and
            blocks of this size.

    Returns:
        The policy with `classes_in_hbm`, and in `chosen_for` the threshold (reads per write), the
        ratio and mean blocks of each class, and the blocks of HBM that they were compared with.

    Raises:
        InputError: the load is below 1.

    Example:
        >>> from lachesis.policy import choose_policy
        >>> from lachesis.traces import open_trace
        >>> policy, trace = choose_policy("read-write-ratio"), open_trace("tau3-airline")
        >>> chosen = fix_threshold(policy, trace, Settings.choose(), 400)
        >>> dict(chosen.chosen_for)["threshold_rho"] > 0
        True
    """
    if load_sessions < 1:
        raise InputError("must be at least 1", field="load_sessions", value=load_sessions)
    node = settings.node
    if reads is None:
        reads = class_reads(trace, settings.latency, block_tokens=node.block_tokens, seed=seed)
    assert reads.block_tokens == node.block_tokens, "Invariant: footprints are in these blocks"
    held, ratios = reads.footprints, reads.ratios
    blocks = {name: held[name].node_blocks(load_sessions, node.gpus) for name in held}
    hbm_blocks = settings.kv_capacity().hbm_blocks * node.gpus
    threshold, below = _largest_threshold(ratios, blocks, hbm_blocks)
    return replace(
        policy,
        classes_in_hbm=below,
        chosen_for=(
            ("threshold_rho", threshold),
            ("mean_rho_by_class", ratios),
            ("mean_blocks_by_class", blocks),
            ("hbm_blocks", hbm_blocks),
            ("load_sessions", load_sessions),
        ),
    )


def _largest_threshold(
    ratios: dict[str, float], blocks: dict[str, float], hbm_blocks: int
) -> tuple[float, frozenset[str]]:
    """The largest of the ratios up to which everything fits, and the classes up to it."""
    threshold, below = 0.0, frozenset[str]()
    for candidate in sorted(set(ratios.values())):
        names = frozenset(name for name, ratio in ratios.items() if ratio <= candidate)
        if math.fsum(blocks[name] for name in names) > hbm_blocks:
            break
        threshold, below = candidate, names
    return threshold, below
