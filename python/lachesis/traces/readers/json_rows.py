"""Typed JSON from files: documents, and lines that stream.

A line that is no JSON at the very end of a file is what a crash leaves: it is dropped, and the
caller counts it. Anywhere else, and where a field has the wrong type, the error names file, line,
field and value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain, islice
from typing import Final, TypeVar

import msgspec

from lachesis.errors import InputError
from lachesis.traces.readers.json_fault import MALFORMED, field_fault
from lachesis.traces.readers.protocol import SourceFile

#: The reason under which a cut-off last line is counted as dropped.
TRUNCATED: Final = "truncated last line"

_LINES_AT_ONCE: Final = 1024

T = TypeVar("T")


def decoded_lines(
    file: SourceFile, decoder: msgspec.json.Decoder[T], dropped: list[str]
) -> Iterator[tuple[int, bytes, T]]:
    """Yield number, bytes and decoded value of every line; a cut-off last one is put in `dropped`.

    Raises `InputError` for any other line that is no JSON or has not the decoder's shape.
    """
    return _decoded(file, file.lines(), decoder, dropped)


def decoded_blocks(
    file: SourceFile, decoder: msgspec.json.Decoder[T], dropped: list[str]
) -> Iterator[tuple[list[int], list[T]]]:
    """As `decoded_lines`, many lines at once: their numbers and their values."""
    number = 1
    blocks = file.line_blocks()
    for block in blocks:
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        values = _decoded_at_once(block, lines, decoder)
        if values is None:
            # An odd line, which few files have: from here on one by one.
            rest = (line for each in chain([block], blocks) for line in BytesIO(each))
            numbered = ((at, line) for at, line in enumerate(rest, number) if not line.isspace())
            decoded = _decoded(file, numbered, decoder, dropped)
            while taken := list(islice(decoded, _LINES_AT_ONCE)):
                yield [at for at, _, _ in taken], [value for _, _, value in taken]
            return
        yield list(range(number, number + lines)), values
        number += lines


def _decoded_at_once(block: bytes, lines: int, decoder: msgspec.json.Decoder[T]) -> list[T] | None:
    """The values of lines that are an object each; None where any may be something else."""
    if not block.startswith(b"{") or block.count(b"\n{") != lines - 1:
        return None
    try:
        values = decoder.decode_lines(block)
    except (msgspec.MsgspecError, *MALFORMED):
        return None
    return values if len(values) == lines else None


def _decoded(
    file: SourceFile,
    lines: Iterable[tuple[int, bytes]],
    decoder: msgspec.json.Decoder[T],
    dropped: list[str],
) -> Iterator[tuple[int, bytes, T]]:
    fault: tuple[int, Exception] | None = None
    for number, line in lines:
        if fault is not None:
            raise InputError(f"not valid JSON: {fault[1]}", path=file.name, row=fault[0])
        try:
            value = decoder.decode(line)
        except msgspec.ValidationError as wrong:
            raise field_fault(wrong, line, name=file.name, row=number) from wrong
        except MALFORMED as wrong:
            mended = without_half_surrogates(line)
            if mended is None:
                fault = (number, wrong)
                continue
            line, value = mended, decoded_part(mended, decoder, file, number)
        yield number, line, value
    if fault is not None:
        dropped.append(TRUNCATED)


def decoded_part(
    raw: msgspec.Raw | bytes,
    decoder: msgspec.json.Decoder[T],
    file: SourceFile,
    row: int | str,
    field: str | None = None,
) -> T:
    """Decode a value that was left undecoded; raises `InputError` naming `row` and the field."""
    content = bytes(raw)
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as wrong:
        fault = field_fault(wrong, content, name=file.name)
        named = ".".join(part for part in (field, fault.field) if part) or None
        raise InputError(
            fault.rule, path=file.name, row=row, field=named, value=fault.value
        ) from wrong
    except MALFORMED as wrong:
        raise InputError(
            f"not valid JSON: {wrong}", path=file.name, row=row, field=field
        ) from wrong


def decoded_document(file: SourceFile, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a whole file; raises `InputError` for what is no JSON or has another shape."""
    content = file.read_bytes()
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as wrong:
        raise field_fault(wrong, content, name=file.name) from wrong
    except MALFORMED:
        mended = without_half_surrogates(content)
    if mended is None:
        file.json()  # says where the fault is
        mended = content
    try:
        return decoder.decode(mended)
    except msgspec.ValidationError as wrong:
        raise field_fault(wrong, mended, name=file.name) from wrong
    except MALFORMED as wrong:
        raise InputError(f"not valid JSON: {wrong}", path=file.name) from wrong


def without_half_surrogates(content: bytes) -> bytes | None:
    """Return the JSON with half surrogate pairs, which cut-off texts end in, as question marks.

    None where it is no JSON for another reason.
    """
    if b"\\ud" not in content and b"\\uD" not in content:
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
