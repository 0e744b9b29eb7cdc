"""Arrow values as Python writes them (`repr`), whole columns at a time.

A digest is over such texts. To make a Python object of each value and ask that for its text would
take ten times as long.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TEXT: Final = pa.large_string()  # texts of a column together may exceed 2 GB
#: Between these, Arrow writes a float with the same digits as Python, and no exponent.
_PLAIN_LEAST: Final = 1e-4
_PLAIN_BELOW: Final = 1e10


def value_texts(values: pa.Array) -> pa.Array:
    r"""What `repr` gives for each value: integers, floats, booleans, strings, lists and structs.

    Example:
        >>> value_texts(pa.array([[1.5, None], []])).to_pylist()
        ['[1.5, None]', '[]']
        >>> value_texts(pa.array([{"a": "it's", "b": True}])).to_pylist()
        ['{\'a\': "it\'s", \'b\': True}']
    """
    kind = values.type
    if pa.types.is_boolean(kind):
        texts = pc.if_else(values, pa.scalar("True", _TEXT), pa.scalar("False", _TEXT))
    elif pa.types.is_integer(kind):
        texts = values.cast(_TEXT)
    elif pa.types.is_floating(kind):
        texts = _texts_of_floats(values)
    elif pa.types.is_list(kind):
        flat = value_texts(values.flatten())
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        texts = joined("[", lists_inside(flat, offsets), "]")
    elif pa.types.is_struct(kind):
        texts = _texts_of_structs(values)
    else:
        encoded = values.dictionary_encode()
        known = [repr(value) for value in encoded.dictionary.to_pylist()]
        texts = pa.array(known, _TEXT).take(encoded.indices)
    if values.null_count:
        texts = pc.if_else(values.is_valid(), texts, pa.scalar("None", _TEXT))
    return texts


def text_of_all(values: pa.Array) -> str | None:
    """The text of all values where it is easily seen that they have the same one; else None.

    Example:
        >>> text_of_all(pa.array([7, 7])), text_of_all(pa.array([7, 8]))
        ('7', None)
    """
    if values.null_count or not len(values):
        return "None" if len(values) and values.null_count == len(values) else None
    if pa.types.is_list(values.type):
        return None if len(values.flatten()) else "[]"
    if pa.types.is_floating(values.type):
        return None  # equal ones may be written differently: 0.0 and -0.0
    if pc.all(pc.equal(values, values[0])).as_py():
        return repr(values[0].as_py())
    return None


def lists_inside(texts: pa.Array, offsets: np.ndarray) -> pa.Array:
    """What `repr` gives for lists of values whose texts these are, but for the brackets."""
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts)
    return pc.binary_join(lists, pa.scalar(", ", _TEXT))


def joined(*parts: str | pa.Array) -> pa.Array:
    """Texts one after another, row by row; a missing one as nothing."""
    pieces = [pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(
        *pieces, pa.scalar("", _TEXT), null_handling="replace", null_replacement=""
    )


def _texts_of_floats(values: pa.Array) -> pa.Array:
    floats = values.fill_null(0.0).to_numpy()
    size = np.abs(floats)
    plain = (floats == 0) | ((size >= _PLAIN_LEAST) & (size < _PLAIN_BELOW))
    texts = pa.array(floats).cast(_TEXT)
    whole = pc.invert(pc.match_substring(texts, "."))
    texts = pc.if_else(whole, joined(texts, ".0"), texts)
    if not plain.all():
        odd = pa.array([repr(value) for value in floats[~plain].tolist()], _TEXT)
        texts = pc.replace_with_mask(texts, pa.array(~plain), odd)
    return texts


def _texts_of_structs(values: pa.Array) -> pa.Array:
    parts: list[str | pa.Array] = []
    for index, field in enumerate(values.type):
        parts += [f"{', ' if index else '{'}{field.name!r}: ", value_texts(values.field(index))]
    return joined(*parts, "}")
