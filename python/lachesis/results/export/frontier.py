"""Request CSVs of Frontier, which vidur reads too."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from lachesis.results.export.requests import ExportedRequest

COLUMNS = (
    "arrived_at",
    "num_prefill_tokens",
    "num_decode_tokens",
    "session_id",
    "tool_call_latency",
    "block_hash_ids",
)


def frontier_lines(requests: Iterator[ExportedRequest]) -> Iterator[bytes]:
    """The header and a line a request; an agent is a session, since the format knows no other."""
    yield (",".join(COLUMNS) + "\n").encode()
    for request in requests:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(
            (
                f"{request.start_s:.9f}",
                request.input_tokens,
                request.output_tokens,
                request.agent,
                f"{request.wait_s:.9f}",
                "|".join(map(str, request.hash_ids)),
            )
        )
        yield text.getvalue().encode()
