"""Texts of whole columns are those that Python gives value by value."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lachesis.traces.schema import AFTER_TYPE
from lachesis.traces.value_texts import text_of_all, value_texts

INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.one_of(
    st.floats(),
    st.floats(-1e11, 1e11),
    st.integers(-(10**17), 10**17).map(float),
    st.sampled_from([0.0, -0.0, 1e-4, 9.9e-5, 1e10, 1e16, 1.7e9 + 0.123]),
)
EDGES = st.fixed_dictionaries(
    {"request": st.integers(0, 9), "kind": st.sampled_from(["tool", "it's"]),
     "delay_s": st.none() | FLOATS}
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), INTEGERS),
        (pa.float64(), FLOATS),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.text()),
        (pa.list_(pa.string()), st.lists(st.text())),
        (pa.list_(pa.int32()), st.lists(st.integers(-(2**31), 2**31 - 1))),
        (pa.list_(AFTER_TYPE), st.lists(EDGES, max_size=3)),
    ],
    ids=str,
)
@given(data=st.data())
def test_as_python_writes_them(kind, values, data):
    drawn = data.draw(st.lists(st.none() | values, max_size=20))
    column = pa.array(drawn, kind)
    assert value_texts(column).to_pylist() == [repr(value) for value in column.to_pylist()]
    part = column.slice(1, 7)
    assert value_texts(part).to_pylist() == [repr(value) for value in part.to_pylist()]
    same = text_of_all(column)
    assert same is None or value_texts(column).to_pylist() == [same] * len(drawn)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array(["ok", "ok"]), "'ok'"),
        (pa.array([False]), "False"),
        (pa.nulls(3, pa.float64()), "None"),
        (pa.array([[], []], pa.list_(AFTER_TYPE)), "[]"),
        (pa.array([0.0, -0.0]), None),
        (pa.array([1, None]), None),
        (pa.array([], pa.int64()), None),
    ],
)
def test_one_text_of_all(column, text):
    assert text_of_all(column) == text
