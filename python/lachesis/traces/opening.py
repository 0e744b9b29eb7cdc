"""From what a user writes (a path, or the name of a built-in corpus) to a trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lachesis.errors import InputError, printable
from lachesis.traces.batches import Part, TraceBatches
from lachesis.traces.readers.protocol import ReadOptions
from lachesis.traces.readers.registry import read_batches
from lachesis.traces.trace import Trace


def open_trace(
    *names: str | Path,
    format: str | None = None,
    options: ReadOptions | None = None,
) -> Trace:
    """One trace of all `names`: paths, or names of built-in corpora.

    A name counts as a path only if it has a separator or an ending (``./logs``, ``run.jsonl``).
    All paths are read together, so that files which belong to one session can be joined.

    Raises `InputError` for an unknown name, listing the known ones, and for whatever cannot be
    read.
    """
    return open_batches(*names, format=format, options=options).whole()


def open_batches(
    *names: str | Path,
    format: str | None = None,
    options: ReadOptions | None = None,
) -> TraceBatches:
    """What `open_trace` gives, in batches of sessions, which need not fit into memory."""
    if not names:
        raise InputError("name at least one trace")
    paths = [name for name in names if is_path(name)]
    if not paths and format is not None:
        raise InputError("has no effect on built-in corpora", field="format", value=format)
    if not paths and options is not None and options.columns:
        value = next(iter(options.columns))
        raise InputError("has no effect on built-in corpora", field="map", value=value)
    parts: list[Part] = [_corpus(str(name)) for name in dict.fromkeys(names) if not is_path(name)]
    if paths:
        logs = read_batches(paths, format=format, options=options)
        if not parts:
            return logs
        parts.append(logs)
    return TraceBatches(parts, _joined(names))


def is_path(name: str | Path) -> bool:
    """Whether `name` is a path rather than the name of a corpus.

    Example:
        >>> is_path("multi-agent"), is_path("./logs"), is_path("run.jsonl")
        (False, True, True)
    """
    if isinstance(name, Path):
        return True
    separators = {"/", os.sep, os.altsep} - {None}
    return any(mark in name for mark in separators if mark) or bool(Path(name).suffix)


def _corpus(name: str) -> Trace:
    # Imported here, since the corpora need the builder and nobody who reads a file needs them.
    from lachesis.traces.generator import corpora

    known = corpora.names()
    if name not in known:
        hint = f"; for the file or folder here write ./{name}" if Path(name).exists() else ""
        raise InputError(
            f"no such built-in corpus; there are {', '.join(known)}{hint}",
            field="trace",
            value=name,
        )
    return corpora.load(name)


def _joined(names: Sequence[str | Path]) -> str:
    return ", ".join(printable(str(name)) for name in names)
