"""Which rollout files belong to one session, seen from their heads, before any is read whole.

A sub-agent's head names its parent, and a fork's its origin. A review's names nothing; where there
is one, the other files are searched for the event that started it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from lachesis.traces.readers.claude_code_rows import seconds
from lachesis.traces.readers.codex_rows import Meta, Row
from lachesis.traces.readers.json_fault import MALFORMED
from lachesis.traces.readers.protocol import SourceFile

_ROW: Final = msgspec.json.Decoder(Row)
_META: Final = msgspec.json.Decoder(Meta)
_REVIEW: Final = b'"entered_review_mode"'


def rollout_families(files: Sequence[SourceFile], window_s: float) -> list[list[SourceFile]]:
    """Group files that may belong to one session; families in order of their first file.

    `window_s`: how near to a review's start the event must be. A head that cannot be read makes a
    family of its own: what is wrong with it is said when it is read.
    """
    heads = [_head(file) for file in files]
    root = list(range(len(files)))

    def find(index: int) -> int:
        while root[index] != index:
            root[index] = root[root[index]]
            index = root[index]
        return index

    def join(one: int, other: int) -> None:
        low, high = sorted((find(one), find(other)))
        root[high] = low

    by_thread: dict[str, int] = {}
    for index, (meta, _) in enumerate(heads):
        if meta.id:
            join(by_thread.setdefault(meta.id, index), index)
    starts: list[tuple[int, float]] = []
    for index, (meta, start_s) in enumerate(heads):
        for named in (meta.parent, meta.forked_from_id):
            if named in by_thread:
                join(by_thread[named], index)
        if meta.subagent == "review" and meta.parent is None and start_s is not None:
            starts.append((index, start_s))
    if starts:
        for index, file in enumerate(files):
            for time_s in _reviews(file):
                for child, start_s in starts:
                    if abs(start_s - time_s) <= window_s:
                        join(index, child)
    families: dict[int, list[SourceFile]] = {}
    for index, file in enumerate(files):
        families.setdefault(find(index), []).append(file)
    return [families[index] for index in sorted(families)]


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
