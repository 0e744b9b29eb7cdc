"""The JSON Schemas that the package ships, one a document."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def shipped_schema(document: str) -> dict[str, Any]:
    """The JSON Schema of a kind of document, with the meaning and unit of every key.

    Example:
        >>> shipped_schema("run")["title"]
        'lachesis run'
    """
    text = resources.files("lachesis.results").joinpath(f"{document}.schema.json")
    schema: dict[str, Any] = json.loads(text.read_text("utf-8"))
    return schema
