"""Writes the formats that are one row a request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lachesis.results.export.arrivals import RequestTimes
from lachesis.results.export.formats import ExportFormat
from lachesis.results.export.frontier import frontier_lines
from lachesis.results.export.matching import Matching
from lachesis.results.export.mooncake import agentic_row, json_lines, mooncake_row
from lachesis.results.export.requests import ExportedRequest, exported_requests
from lachesis.traces.trace import Trace


def write_requests(
    name: ExportFormat, trace: Trace, times: RequestTimes, path: Path, *, block_tokens: int
) -> Matching:
    """Write every request in the order of starts, and say how much of the matching it says.

    Args:
        name: agentic Mooncake, Mooncake or Frontier.
        trace: what is exported.
        times: when requests start.
        path: where to.
        block_tokens: tokens of a block.
    """
    matching = Matching(block_tokens, says_resets=name is ExportFormat.AGENTIC_MOONCAKE)

    def requests() -> Iterator[ExportedRequest]:
        for request in exported_requests(trace, times, block_tokens):
            matching.add(request)
            yield request

    if name is ExportFormat.FRONTIER:
        lines = frontier_lines(requests())
    elif name is ExportFormat.MOONCAKE:
        lines = json_lines(map(mooncake_row, requests()))
    else:
        lines = json_lines(map(agentic_row, requests()))
    with path.open("wb") as file:
        file.writelines(lines)
    return matching
