"""Where ``--json`` goes."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console

from lachesis.cli.terminal import console
from lachesis.errors import InputError

STDOUT = "-"


def check_json(target: str | None, inputs: Iterable[str] = (), **outputs: str | None) -> None:
    """Refuse a place that cannot be written, before the work.

    Args:
        target: what ``--json`` was given.
        inputs: paths that the command reads, which no output may overwrite.
        outputs: what other options write, by the option's name; they must be apart too.

    Raises:
        InputError: an option in place of a file, a place that cannot be written, or two of the
            same name.
    """
    from lachesis.results.files import check_apart, check_output

    check_apart(inputs, {"--json": target} | {f"--{key}": to for key, to in outputs.items()})
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
