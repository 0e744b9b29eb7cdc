"""From a decoder's complaint to an error that names the field, its value and the rule."""

from __future__ import annotations

from typing import Any

import msgspec

from lachesis.errors import InputError

#: What decoding JSON raises for text that is no JSON at all.
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def field_fault(
    wrong: msgspec.ValidationError, content: bytes, *, name: str, row: int | None = None
) -> InputError:
    """Say which field of `content` breaks which rule, and what stands there.

    Example:
        >>> class Usage(msgspec.Struct):
        ...     output_tokens: int
        >>> content = b'{"output_tokens": "7"}'
        >>> try:
        ...     msgspec.json.decode(content, type=Usage)
        ... except msgspec.ValidationError as wrong:
        ...     str(field_fault(wrong, content, name="a.jsonl", row=3))
        'a.jsonl:3: output_tokens = 7, expected `int`, got `str`'

    """
    rule, _, path = str(wrong).partition(" - at `$")
    path = path.rstrip("`")
    value: Any
    try:
        value = msgspec.json.decode(content)
        for step in path.replace("[", ".[").split("."):
            if step.startswith("["):
                value = value[int(step[1:-1])]
            elif step:
                value = value[step]
    except (*MALFORMED, LookupError, TypeError, ValueError):
        value = None  # the complaint's path has a form that cannot be followed
    field = path.lstrip(".") or None
    if rule.startswith("Object missing required field"):
        missing = rule.split("`")[1]
        field, value, rule = (f"{field}.{missing}" if field else missing), None, "is missing"
    return InputError(rule[:1].lower() + rule[1:], path=name, row=row, field=field, value=value)
