"""Reader of the Azure LLM inference traces (2023 and 2024): CSV, one request a row.

`TIMESTAMP` (when it came in, UTC), `ContextTokens` (input) and `GeneratedTokens` (output). Nothing
says which requests belong together, so each is a session of its own, counted, and nothing matches.

**Left out**, counted: requests without output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.request_rows import LoneColumns, has_columns, push_lone

_DESCRIPTION: Final = __doc__ or ""
_COLUMNS: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_LONE: Final = LoneColumns("ContextTokens", "GeneratedTokens", "TIMESTAMP")


class AzureReader:
    """Azure LLM inference traces."""

    name = "azure-llm"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """A table with the three columns."""
        return has_columns(file, *_COLUMNS)

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every request as a session."""
        for file in files:
            push_lone(file, _COLUMNS, _LONE, builder, harness="azure")


READER = AzureReader()
