"""SIGTERM is answered as Ctrl-C is: what was begun is cleaned up, then the process ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


def interruption(terminated: bool) -> tuple[str, int]:
    """What to say of an interrupt, and the exit code: of SIGTERM, else of Ctrl-C."""
    return ("terminated", EXIT_TERMINATED) if terminated else ("interrupted", EXIT_INTERRUPTED)


@contextmanager
def sigterm_interrupts() -> Iterator[Callable[[], bool]]:
    """Within the block SIGTERM raises `KeyboardInterrupt`; the function given says whether it came.

    A second one is ignored, so that it cannot stop the cleaning up. Nothing is changed outside the
    main thread, where no handler can be set, or where whoever started us has set SIGTERM aside.

    Example:
        >>> import os
        >>> with sigterm_interrupts() as came:
        ...     try:
        ...         os.kill(os.getpid(), signal.SIGTERM)
        ...     except KeyboardInterrupt:
        ...         print(came())
        True
    """
    came = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if ours:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield lambda: came
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
