"""Traces of agent sessions: canonical form, builder, validation, readers and corpora.

Example:
    >>> from lachesis.traces import TraceBuilder
    >>> builder = TraceBuilder(source="example")
    >>> session = builder.session("a", workload="demo", harness="none")
    >>> handle = session.request(input_tokens=12, output_tokens=3)
    >>> len(builder.build())
    1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD, Edge, Part, PartKind, Stripping, content_key
from lachesis.traces.quality import Quality
from lachesis.traces.schema import (
    SCHEMA_VERSION,
    TABLES,
    TOKENS_MAX,
    Boundary,
    EdgeKind,
    Role,
    SegmentClass,
    Status,
    ToolClass,
    UsageSource,
)
from lachesis.traces.session_builder import SessionBuilder
from lachesis.traces.trace import Trace, concat
from lachesis.traces.validate import validate

if TYPE_CHECKING:
    from lachesis.traces.opening import open_trace
    from lachesis.traces.read_watcher import ReadWatcher
    from lachesis.traces.readers.protocol import ReadOptions
    from lachesis.traces.readers.registry import read
    from lachesis.traces.tokenizers import load_tokenizer

__all__ = [
    "LEAD",
    "SCHEMA_VERSION",
    "TABLES",
    "TOKENS_MAX",
    "Boundary",
    "Edge",
    "EdgeKind",
    "Part",
    "PartKind",
    "Quality",
    "ReadOptions",
    "ReadWatcher",
    "Role",
    "SegmentClass",
    "SessionBuilder",
    "Status",
    "Stripping",
    "ToolClass",
    "Trace",
    "TraceBuilder",
    "UsageSource",
    "concat",
    "content_key",
    "load_tokenizer",
    "open_trace",
    "read",
    "validate",
]

# The readers import the builder from this package, so they are imported when first asked for.
_LATE = {
    "open_trace": "lachesis.traces.opening",
    "read": "lachesis.traces.readers.registry",
    "ReadOptions": "lachesis.traces.readers.protocol",
    "ReadWatcher": "lachesis.traces.read_watcher",
    "load_tokenizer": "lachesis.traces.tokenizers",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
