"""Says what a command is at, on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lachesis.cli.terminal import console


@contextmanager
def waiting(first: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line with a spinner, removed at the end; the function given changes what it says."""
    screen = console(stderr=True)
    if quiet or not screen.is_terminal:
        yield lambda stage: None
        return
    with screen.status(first) as status:
        yield status.update
