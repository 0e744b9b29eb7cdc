"""Consoles for standard output and standard error."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from rich.console import Console

EXIT_BROKEN_PIPE = 141
_WIDTH_UNKNOWN = 80


def silence_stdout() -> None:
    """Send what is still buffered for standard output nowhere, so that closing it cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class _Console(Console):
    """A console whose reader may leave at any time, as ``head`` does."""

    def on_broken_pipe(self) -> NoReturn:
        self.quiet = True
        silence_stdout()
        raise SystemExit(EXIT_BROKEN_PIPE)


def console(*, stderr: bool = False) -> Console:
    """A console that prints texts as they are: no markup, no emoji, no highlighting."""
    made = _Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if made.width < 1:  # what some that start us say of a terminal that they do not know
        made.width = _WIDTH_UNKNOWN
    return made
