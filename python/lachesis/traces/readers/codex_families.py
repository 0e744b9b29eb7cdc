"""Which rollout files belong to one session, seen from their heads, before any is read whole.

A sub-agent's head names its parent, and a fork's its origin. A review's names nothing; where there
is one, the other files are searched for the event that started it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from lachesis.traces.readers.claude_code_rows import seconds
from lachesis.traces.readers.codex_rows import Meta, Row
from lachesis.traces.readers.json_fault import MALFORMED
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.record_groups import NameNumbers

_ROW: Final = msgspec.json.Decoder(Row)
_META: Final = msgspec.json.Decoder(Meta)
_REVIEW: Final = b'"entered_review_mode"'


def rollout_families(files: Sequence[SourceFile], window_s: float) -> Iterator[list[SourceFile]]:
    """Group files that may belong to one session; families in order of their first file.

    `window_s`: how near to a review's start the event must be. A head that cannot be read makes a
    family of its own: what is wrong with it is said when it is read. Of each file memory holds a
    few numbers.
    """
    root = array("q", range(len(files)))

    def find(index: int) -> int:
        while root[index] != index:
            root[index] = root[root[index]]
            index = root[index]
        return index

    def join(one: int, other: int) -> None:
        low, high = sorted((find(one), find(other)))
        root[high] = low

    threads = NameNumbers()
    first_of = array("q")  # of each thread the first file; -1 where it was only named so far
    named = array("q")  # a file, and a thread that it names; and so on
    starts: list[tuple[int, float]] = []

    def number(thread: str) -> int:
        found = threads.of(thread)
        if found == len(first_of):
            first_of.append(-1)
        return found

    for index, file in enumerate(files):
        meta, start_s = _head(file)
        if meta.id:
            thread = number(meta.id)
            if first_of[thread] < 0:
                first_of[thread] = index
            join(first_of[thread], index)
        for other in (meta.parent, meta.forked_from_id):
            if other:
                named.extend((index, number(other)))
        if meta.subagent == "review" and meta.parent is None and start_s is not None:
            starts.append((index, start_s))
    for index, thread in zip(named[::2], named[1::2], strict=True):
        if first_of[thread] >= 0:
            join(first_of[thread], index)
    if starts:
        for index, file in enumerate(files):
            for time_s in _reviews(file):
                for child, start_s in starts:
                    if abs(start_s - time_s) <= window_s:
                        join(index, child)
    roots = np.array([find(index) for index in range(len(files))], np.int64)
    order = np.argsort(roots, kind="stable")
    ends = np.flatnonzero(np.diff(roots[order], append=-1)) + 1
    begin = 0
    for end in ends.tolist():
        yield [files[index] for index in order[begin:end].tolist()]
        begin = end


def _head(file: SourceFile) -> tuple[Meta, float | None]:
    first = file.start.partition(b"\n")[0]
    try:
        row = _ROW.decode(first)
        if row.type == "session_meta":
            return _META.decode(row.payload), seconds(row.timestamp)
        return _META.decode(first), seconds(row.timestamp)
    except MALFORMED:
        return Meta(), None


def _reviews(file: SourceFile) -> list[float]:
    """Return when the harness started reviews, by a plain search of the file's lines."""
    times = []
    for _, line in file.peeked().lines():
        if _REVIEW in line:
            try:
                time_s = seconds(_ROW.decode(line).timestamp)
            except MALFORMED:
                continue
            if time_s is not None:
                times.append(time_s)
    return times
