"""Reads Parquet files whole."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lachesis.errors import InputError


def read_parquet(path: Path, *, checksums: bool = False) -> pa.Table:
    """The table of a Parquet file.

    The file is one of Arrow's own: Arrow reads in threads of its own, and one that lets go of a
    Python file when the interpreter has ended aborts the process. `pyarrow.parquet.read_table`
    would go through Arrow's datasets, which take long to import.

    Args:
        path: its name may be any bytes.
        checksums: whether those of its pages are verified.

    Raises:
        InputError: it is missing, cut off or damaged.
    """
    try:
        with pa.OSFile(os.fsencode(path)) as file:
            return pq.ParquetFile(file, page_checksum_verification=checksums).read()
    except (OSError, pa.ArrowException) as fault:
        said = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise InputError(f"cannot be read: {said}", path=path) from fault
