"""Where ``--json`` goes."""

from __future__ import annotations

import sys

from rich.console import Console

from lachesis.cli.terminal import console
from lachesis.errors import InputError

STDOUT = "-"


def check_json(target: str | None) -> None:
    """Refuse a place that cannot be written, before the work.

    Raises:
        InputError: an option in place of a file, or a place that cannot be written.
    """
    from lachesis.results.files import check_output

    if target is None or target == STDOUT:
        return
    if target.startswith("-"):
        raise InputError("must be a file, or - for standard output", field="--json", value=target)
    check_output(target)


def write_json(target: str | None, text: str) -> None:
    """Write a document where ``--json`` says; nowhere if it was not given."""
    from lachesis.results.files import write_text

    if target == STDOUT:
        sys.stdout.write(text)
    elif target is not None:
        write_text(target, text)


def table_console(target: str | None) -> Console:
    """Where tables go: standard output, or standard error where that holds JSON."""
    return console(stderr=target == STDOUT)
