"""A comparison as files: JSON rows, and the same as a Parquet table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from lachesis import __version__
from lachesis.reproduce.evidence import Evidence
from lachesis.reproduce.row import Row
from lachesis.results.directory import write_table
from lachesis.results.files import write_text

_SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=name in ("ours_low", "ours_high"))
        for name, kind in (
            ("figure", pa.string()),
            ("name", pa.string()),
            ("workloads", pa.list_(pa.string())),
            ("published_low", pa.float64()),
            ("published_high", pa.float64()),
            ("ours", pa.float64()),
            ("ours_low", pa.float64()),
            ("ours_high", pa.float64()),
            ("deviation", pa.float64()),
            ("within", pa.bool_()),
            ("tolerance", pa.float64()),
            ("source", pa.string()),
            ("note", pa.string()),
            ("config_sha256", pa.string()),
            ("trace_sha256", pa.string()),
            ("seed", pa.int64()),
            ("version", pa.string()),
        )
    ]
)


def write_json_rows(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as a JSON list; equal rows give equal bytes.

    Raises:
        InputError: the place cannot be written.
    """
    document = [row.to_json() for row in rows]
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_parquet_rows(rows: Sequence[Row], evidence: Evidence, path: Path) -> None:
    """Write the rows as Parquet, each with what its measurement came from.

    A published number stands in both `published_low` and `published_high`.

    Raises:
        InputError: the place cannot be written.
    """
    write_table(path, comparison_table(rows, evidence))


def comparison_table(rows: Sequence[Row], evidence: Evidence) -> pa.Table:
    """The rows as an Arrow table."""
    config_sha256 = evidence.config_sha256()
    records = []
    for row in rows:
        record = row.to_json()
        published = record.pop("published")
        ours_low, ours_high = record.pop("ours_ci95") or (None, None)
        low, high = published if isinstance(published, list) else (published, published)
        record |= {
            "published_low": low,
            "published_high": high,
            "ours_low": ours_low,
            "ours_high": ours_high,
            "config_sha256": config_sha256,
            "trace_sha256": evidence.trace_sha256(row.workloads),
            "seed": evidence.seed,
            "version": __version__,
        }
        records.append(record)
    return pa.Table.from_pylist(records, schema=_SCHEMA)
