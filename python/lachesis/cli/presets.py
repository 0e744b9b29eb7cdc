"""``lachesis presets``: what can be named, with every value's unit and source."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import Debug


def presets(
    kind: Annotated[
        str | None,
        Parameter(help="model, hardware, memory, flash, latency, slo, node, policy or corpus."),
    ] = None,
    name: Annotated[
        str | None, Parameter(help="Show all values of this one, with units and sources.")
    ] = None,
    /,
    *,
    debug: Debug = False,
) -> None:
    """List models, GPUs, memory splits, flash, latencies, SLOs, policies and corpora."""
    from lachesis.cli.presets_list import show_presets

    show_presets(kind, name)
