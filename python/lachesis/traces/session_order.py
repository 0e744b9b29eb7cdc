"""Sessions of several sets of tables in one order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lachesis.traces.schema import TABLES
from lachesis.traces.spool import Tables


def in_order(parts: Sequence[Tables], places: NDArray[np.int64]) -> Tables:
    """The tables of all parts, sessions by `places`, one for each in the order of the parts.

    Where sessions have one place they keep their order. Names must be unique.
    """
    together = {name: pa.concat_tables([part[name] for part in parts]) for name in TABLES}
    names = together["sessions"]["session"].combine_chunks()
    ordered: Tables = {}
    for name, table in together.items():
        session = pc.index_in(table["session"].combine_chunks(), value_set=names).to_numpy()
        ordered[name] = table.take(pa.array(np.argsort(places[session], kind="stable")))
    return ordered
