"""The command line: ``lachesis``."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from lachesis.cli.termination import interruption, sigterm_interrupts


def main() -> None:
    """Run the command line and end the process with its exit code."""
    with sigterm_interrupts() as terminated:
        # Imported here, so that an interrupt while modules load is answered like any other.
        try:
            from lachesis.cli.entry import execute
        except KeyboardInterrupt:
            said, code = interruption(terminated())
            sys.stderr.write(f"lachesis: {said}\n")
            sys.exit(code)
        _end(execute(sys.argv[1:], terminated))


def _end(code: int) -> NoReturn:
    """End the process with an exit code.

    Where Ray was used everything has been shut down and written by now, and its library takes a
    further second to take itself down within the process: nobody has to wait for that.
    """
    if "ray" in sys.modules:
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
