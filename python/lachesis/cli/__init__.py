"""The command line: ``lachesis``."""

from __future__ import annotations

import sys

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
        sys.exit(execute(sys.argv[1:], terminated))
