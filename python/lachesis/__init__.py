"""Lachesis: place KV cache by how long it will live, and learn how long the flash lasts.

Example:
    >>> import lachesis
    >>> trace = lachesis.open_trace("tau3-airline")
    >>> len(trace), trace.requests.num_rows
    (58, 709)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lachesis._engine import __version__

if TYPE_CHECKING:
    from lachesis.api import Result, Results, read_results, simulate, sweep
    from lachesis.errors import InputError, LachesisError
    from lachesis.placement import Placement
    from lachesis.traces import Trace, open_trace

#: Where each public name lives; it is imported when first asked for, so that `import lachesis`
#: does not wait for Arrow.
_HOMES = {
    "InputError": "lachesis.errors",
    "LachesisError": "lachesis.errors",
    "Placement": "lachesis.placement",
    "Result": "lachesis.api",
    "Results": "lachesis.api",
    "Trace": "lachesis.traces",
    "open_trace": "lachesis.traces",
    "read_results": "lachesis.api",
    "simulate": "lachesis.api",
    "sweep": "lachesis.api",
}

__all__ = [
    "InputError",
    "LachesisError",
    "Placement",
    "Result",
    "Results",
    "Trace",
    "__version__",
    "open_trace",
    "read_results",
    "simulate",
    "sweep",
]


def __getattr__(name: str) -> object:
    """Import a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lachesis' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
