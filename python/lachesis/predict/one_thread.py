"""Sums that round alike on every machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

#: The limit is the process's: one that ends would lift another's that goes on.
_LIMITED = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra in one thread: sums split among several round differently.

    Whoever comes second waits.

    Example:
        >>> import numpy as np
        >>> with one_thread():
        ...     float(np.ones(3) @ np.ones(3))
        3.0
    """
    with _LIMITED, threadpool_limits(limits=1):
        yield
