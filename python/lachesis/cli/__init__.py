"""The command line: ``lachesis``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # Imported here, so that an interrupt while modules load is answered like any other.
    try:
        from lachesis.cli.entry import execute
    except KeyboardInterrupt:
        sys.stderr.write("lachesis: interrupted\n")
        sys.exit(130)
    sys.exit(execute(sys.argv[1:]))
