"""What the head of a file tells of JSON in it, for recognising formats."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from lachesis.traces.readers.json_fault import MALFORMED
from lachesis.traces.readers.protocol import SourceFile

_KEY: Final = re.compile(rb'"([A-Za-z_][\w.]*)"\s*:')


def begins_with(file: SourceFile, mark: bytes) -> bool:
    """Whether the first character that is not blank is `mark`."""
    return file.start.startswith(mark)


def first_object(file: SourceFile) -> dict[str, Any] | None:
    """The first line of a JSONL file, if it is an object and the head holds it whole."""
    line = file.start.partition(b"\n")[0]
    if not line.startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(line)
    except MALFORMED:
        return None
    return value if isinstance(value, dict) else None


def words_in_head(file: SourceFile) -> frozenset[bytes]:
    """Quoted words that a colon follows; for documents, and for first lines longer than the head.

    Example:
        >>> from pathlib import Path
        >>> sorted(words_in_head(SourceFile("a", "a", b'{"id": 1, "rows": [{"t": ')))
        [b'id', b'rows', b't']
    """
    return frozenset(_KEY.findall(file.head))
