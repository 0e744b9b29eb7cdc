"""OpenTelemetry spans in the forms in which they are stored, brought into one.

- A JSON document, or JSONL of documents, with a list `spans`: names in snake case, attributes as an
  object, times as ISO 8601 (what Python exporters and the public agent traces write).
- OTLP as JSON, a document or JSONL: `resourceSpans` → `scopeSpans` → `spans`: names in camel case,
  attributes as a list of keys and typed values, times in nanoseconds since the epoch.
- JSONL of single spans of either kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from lachesis.errors import InputError
from lachesis.traces.readers.json_head import begins_with
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.protocol import SourceFile

Json = dict[str, Any]
_ANY: Final = msgspec.json.Decoder()
_VALUES: Final = ("stringValue", "intValue", "doubleValue", "boolValue")
_ERROR_CODES: Final = frozenset({2, "2", "ERROR", "STATUS_CODE_ERROR"})


@dataclass(slots=True)
class Span:
    """One span. `attributes` have plain values; `row` says where in its file it stands."""

    row: str
    trace: str
    id: str
    parent: str | None
    name: str
    start_s: float
    end_s: float | None
    failed: bool
    attributes: Json
    resource: Json

    def text(self, *names: str) -> str | None:
        """The first of these attributes that is a non-empty text (or a number, as text)."""
        for name in names:
            value = self.attributes.get(name)
            if isinstance(value, str) and value:
                return value
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
        return None


def spans_of(file: SourceFile, dropped: list[str]) -> Iterator[Span]:
    """All spans of a file; raises `InputError` for what breaks a rule.

    A last line of JSONL that is cut off is put in `dropped`.
    """
    for place, document in _documents(file, dropped):
        yield from _Reader(file).spans(document, place)


def _documents(file: SourceFile, dropped: list[str]) -> Iterator[tuple[str, Any]]:
    """Documents of a file, one or one a line."""
    first = file.start.partition(b"\n")[0].rstrip()
    several = file.ending in (".jsonl", ".ndjson") or (
        len(first) > 2 and first.endswith(b"}") and b"\n" in file.head.strip()
    )
    if not several or not begins_with(file, b"{"):
        yield "", file.json()
        return
    for number, _, value in decoded_lines(file, _ANY, dropped):
        yield f"line {number}", value


class _Reader:
    def __init__(self, file: SourceFile) -> None:
        self.file = file

    def spans(self, document: object, place: str) -> Iterator[Span]:
        if isinstance(document, list):
            for index, each in enumerate(document):
                yield from self.spans(each, f"{place}[{index}]")
            return
        if not isinstance(document, dict):
            raise InputError("must be an object", path=self.file.name, row=place or None,
                             value=document)  # fmt: skip
        if "resourceSpans" in document or "resource_spans" in document:
            yield from self._otlp(document, place)
        elif "spans" in document:
            shared = {key: document[key] for key in ("trace_id", "traceId") if key in document}
            for index, span in enumerate(self._list(document, "spans", place)):
                yield self._span(span, f"{place} spans[{index}]".strip(), shared, {})
        else:
            yield self._span(document, place, {}, {})

    def _otlp(self, document: Json, place: str) -> Iterator[Span]:
        for number, group in enumerate(self._list(document, "resourceSpans", place)):
            at = f"{place} resourceSpans[{number}]".strip()
            resource = group.get("resource")
            described = self._attributes(resource, at) if isinstance(resource, dict) else {}
            for scope_number, scope in enumerate(self._list(group, "scopeSpans", at)):
                inner = f"{at}.scopeSpans[{scope_number}]"
                for index, span in enumerate(self._list(scope, "spans", inner)):
                    yield self._span(span, f"{inner}.spans[{index}]", {}, described)

    def _list(self, owner: Json, name: str, place: str) -> list[Json]:
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        value = owner.get(name, owner.get(snake))
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise InputError("must be a list of objects", path=self.file.name, row=place or None,
                             field=name, value=value)  # fmt: skip
        return value

    def _span(self, span: Json, place: str, shared: Json, resource: Json) -> Span:
        def first(*names: str) -> Any:  # noqa: ANN401 - any JSON
            for owner in (span, shared):
                for name in names:
                    if owner.get(name) is not None:
                        return owner[name]
            return None

        start_s = self._seconds(span, place, "start_time", "startTimeUnixNano")
        if start_s is None:
            raise InputError("is missing", path=self.file.name, row=place, field="start_time")
        end_s = self._seconds(span, place, "end_time", "endTimeUnixNano")
        if end_s is not None and end_s < start_s:
            shown = first("end_time", "endTimeUnixNano")
            raise InputError("must not be before the start", path=self.file.name, row=place,
                             field="end_time", value=shown)  # fmt: skip
        status = span.get("status")
        code = status.get("code") if isinstance(status, dict) else status
        own_resource = span.get("resource_attributes", span.get("resource"))
        if isinstance(own_resource, dict):
            attributes = own_resource.get("attributes")
            resource = attributes if isinstance(attributes, dict) else own_resource
        parent = first("parent_span_id", "parentSpanId")
        return Span(
            place,
            str(first("trace_id", "traceId") or ""),
            str(first("span_id", "spanId") or place),
            str(parent) if parent else None,
            str(span.get("name") or ""),
            start_s,
            end_s,
            isinstance(code, (int, str)) and code in _ERROR_CODES,
            self._attributes(span, place),
            resource,
        )

    def _attributes(self, owner: Json, place: str) -> Json:
        value = owner.get("attributes")
        if value is None:
            return {}
        if isinstance(value, dict):
            return value
        if not isinstance(value, list):
            raise InputError("must be an object or a list", path=self.file.name, row=place,
                             field="attributes", value=value)  # fmt: skip
        found: Json = {}
        for each in value:
            if not isinstance(each, dict) or not isinstance(each.get("key"), str):
                raise InputError("must hold keys and values", path=self.file.name, row=place,
                                 field="attributes", value=each)  # fmt: skip
            found[each["key"]] = _plain(each.get("value"))
        return found

    def _seconds(self, span: Json, place: str, iso: str, nanoseconds: str) -> float | None:
        field, value = iso, span.get(iso)
        if value is None:
            field, value = nanoseconds, span.get(nanoseconds)
        if value is None:
            return None
        if isinstance(value, str) and not value.strip().lstrip("-").isdigit():
            try:
                stamp = datetime.fromisoformat(value)
            except ValueError as fault:
                raise InputError("must be an ISO 8601 time", path=self.file.name, row=place,
                                 field=field, value=value) from fault  # fmt: skip
            return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if isinstance(value, bool) or not math.isfinite(number) or abs(number) > 1e20:
            raise InputError("must be a time", path=self.file.name, row=place, field=field,
                             value=value)  # fmt: skip
        return number / 1e9 if field == nanoseconds or abs(number) > 1e14 else number


def _plain(value: object) -> object:
    """A typed OTLP value as a plain one."""
    if not isinstance(value, dict):
        return value
    for kind in _VALUES:
        if kind in value:
            inner = value[kind]
            if kind == "intValue" and isinstance(inner, str) and inner.lstrip("-").isdigit():
                return int(inner)
            return inner
    array = value.get("arrayValue")
    if isinstance(array, dict) and isinstance(array.get("values"), list):
        return [_plain(each) for each in array["values"]]
    listed = value.get("kvlistValue")
    if isinstance(listed, dict) and isinstance(listed.get("values"), list):
        return {
            each["key"]: _plain(each.get("value"))
            for each in listed["values"]
            if isinstance(each, dict) and isinstance(each.get("key"), str)
        }
    return None
