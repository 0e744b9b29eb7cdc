"""Records of numbers come back by group, whatever went to disk meanwhile."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lachesis.traces import column_groups
from lachesis.traces.column_groups import ColumnGroups

KIND = np.dtype([("group", np.int64), ("value", np.int64)])


@given(
    st.lists(st.lists(st.integers(0, 8), max_size=30), max_size=12),
    st.integers(1, 400),
    st.integers(1, 100),
    st.integers(1, 300),
)
def test_groups_are_whole_and_in_order(parts, run_bytes, read_bytes, grouped_bytes):
    sizes = {"_RUN_BYTES": run_bytes, "_READ_BYTES": read_bytes, "_GROUPED_BYTES": grouped_bytes}
    before = {name: getattr(column_groups, name) for name in sizes}
    groups, expected = ColumnGroups(KIND), []
    try:
        vars(column_groups).update(sizes)
        for part in parts:
            records = np.zeros(len(part), KIND)
            records["group"] = part
            records["value"] = np.arange(len(expected), len(expected) + len(part))
            groups.append(records)
            expected += records.tolist()
        blocks = list(groups)
    finally:
        vars(column_groups).update(before)
    assert [each for block in blocks for each in block.tolist()] == sorted(expected)
    ends = [(block["group"][0], block["group"][-1]) for block in blocks]
    assert all(last < first for (_, last), (first, _) in pairwise(ends))
