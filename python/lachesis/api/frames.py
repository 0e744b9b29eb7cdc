"""Arrow tables as the data frames of other libraries, where those are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lachesis.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_polars(table: pa.Table) -> pl.DataFrame:
    """A polars data frame that shares the table's memory.

    Raises:
        InputError: polars is not installed.
    """
    try:
        import polars as pl
    except ImportError as fault:
        raise _absent("polars") from fault
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame), "Invariant: a table becomes a data frame"
    return frame


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A pandas data frame.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as fault:
        raise _absent("pandas") from fault
    frame: pd.DataFrame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame), "Invariant: a table becomes a data frame"
    return frame


def _absent(library: str) -> InputError:
    return InputError(
        f"needs {library}, which is not installed: pip install 'lachesis[{library}]'",
        field=f"to_{library}",
    )
