"""A flash device trace: what a replay writes to the flash of its GPUs, and what it frees there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from lachesis.errors import InputError
from lachesis.simulation import Comparison, Journal, Load, Plan, compare
from lachesis.simulation.journal import Columns
from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace import Trace

HEADER = b"timestamp_ns,op,address,size,stream\n"
OPERATIONS = ("trim", "write")
_CLASSES = tuple(str(name) for name in SegmentClass)


@dataclass
class FlashTotals:
    """What went into the file.

    Attributes:
        records: lines by operation.
        bytes_by_class: bytes written, by segment class.
        trimmed_bytes: bytes of the blocks that were freed.
    """

    records: Counter[str] = field(default_factory=Counter)
    bytes_by_class: Counter[str] = field(default_factory=Counter)
    trimmed_bytes: int = 0

    @property
    def written_bytes(self) -> int:
        """Bytes written."""
        return sum(self.bytes_by_class.values())


def write_flash_trace(
    trace: Trace, plan: Plan, policy: str, load: Load, path: Path, *, gpu: int | None = None
) -> tuple[FlashTotals, Comparison]:
    """Replay, and write every operation on flash as it happens.

    A line is a write or a trim of neighbouring bytes at one time: of the tokens of one request in
    one block, or of several blocks of a suffix. Addresses are block number x bytes of a block; GPU
    g's flash begins at g x its KV capacity. The blocks of an aged memory were written before the
    run: they are trimmed without a write.

    Args:
        trace: what is replayed.
        plan: presets, seed, stopping.
        policy: placement policy.
        load: closed, Poisson or recorded.
        path: where to.
        gpu: only this GPU's flash, from address 0; all if None.

    Raises:
        InputError: whatever `lachesis.simulation.compare` refuses, a load that is a search, or a
            GPU that the node does not have.
    """
    if load.is_searched:
        raise InputError("must be N, poisson:RATE or recorded: an export searches for no load",
                         field="--load", value=load.kind)  # fmt: skip
    if plan.settings.memory.hbf_stacks == 0:
        raise InputError("has no flash to write to", field="--memory",
                         value=str(plan.settings.memory))  # fmt: skip
    gpus = plan.gpus
    if gpu is not None and not 0 <= gpu < gpus:
        raise InputError(f"must be a GPU of the node, from 0 to {gpus - 1}", field="--gpu",
                         value=gpu)  # fmt: skip
    with path.open("wb") as file:
        file.write(HEADER)
        writer = _Writer(file, plan, gpu)
        journal = Journal(deliver=writer.write, flash=True)
        told = compare(trace, plan.with_journal(journal), [policy], load)
    return writer.totals, told


class _Writer:
    """Turns records of the engine into lines."""

    def __init__(self, file: BinaryIO, plan: Plan, gpu: int | None) -> None:
        capacity = plan.settings.kv_capacity()
        self.file = file
        self.gpu = gpu
        self.block_tokens = plan.settings.node.block_tokens
        self.block_bytes = round(capacity.block_bytes)
        self.gpu_bytes = 0 if gpu is not None else capacity.hbf_blocks * self.block_bytes
        self.totals = FlashTotals()

    def write(self, tables: dict[str, Columns]) -> None:
        """Append the lines of some records."""
        flash = tables["flash"]
        if self.gpu is not None:
            own = flash["gpu"] == self.gpu
            flash = {name: column[own] for name, column in flash.items()}
        first = flash["address_tokens"].astype(np.int64)
        start = first * self.block_bytes // self.block_tokens
        end = (first + flash["tokens"].astype(np.int64)) * self.block_bytes // self.block_tokens
        writes = flash["is_write"]
        size = end - start
        for number, name in enumerate(_CLASSES):
            self.totals.bytes_by_class[name] += int(size[writes & (flash["class"] == number)].sum())
        self.totals.trimmed_bytes += int(size[~writes].sum())
        for number, name in enumerate(OPERATIONS):
            self.totals.records[name] += int((writes == bool(number)).sum())
        table = pa.table(
            {
                "timestamp_ns": flash["time_ps"] // 1000,
                "op": _words(OPERATIONS, writes),
                "address": start + flash["gpu"].astype(np.int64) * self.gpu_bytes,
                "size": size,
                "stream": _words(_CLASSES, flash["class"]),
            }
        )
        csv.write_csv(
            table, self.file, csv.WriteOptions(include_header=False, quoting_style="none")
        )


def _words(words: tuple[str, ...], numbers: np.ndarray) -> pa.Array:
    return pa.array(words).take(pa.array(numbers.astype(np.int8)))
