"""Lines decoded many at once are those that are decoded one by one, with the same faults."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from lachesis.errors import InputError
from lachesis.traces.readers import protocol
from lachesis.traces.readers.json_rows import decoded_blocks, decoded_lines
from lachesis.traces.readers.protocol import SourceFile


class Row(msgspec.Struct):
    count: int
    text: str | None = None


DECODER = msgspec.json.Decoder(Row)
LINES = [
    '{"count": 1}', ' {"count": 2} ', '{"count": 3, "text": "\\n{"}', "", "   ",
    '{"count": 4}\r', '{"count": "x"}', '{"count": 5', '{"count": 6} {"count": 7}', "[]",
    '{"count": 8, "text": "\\ud83d"}', '{"text":', '{"count": 9}}',
]  # fmt: skip


def read(decode, file):
    dropped = []
    try:
        rows = list(decode(file, dropped))
    except InputError as fault:
        return str(fault)
    return rows, dropped


def one_by_one(file, dropped):
    for number, _, value in decoded_lines(file, DECODER, dropped):
        yield number, value


def many_at_once(file, dropped):
    for numbers, values in decoded_blocks(file, DECODER, dropped):
        yield from zip(numbers, values, strict=True)


@given(
    st.lists(st.sampled_from(LINES[:3]) | st.sampled_from(LINES), max_size=12),
    st.booleans(),
    st.integers(1, 60),
)
@example(['{"count":', '{"count": 1}}', '{"count": 2} {"count": 3}'], True, 60)
def test_as_one_by_one(tmp_path_factory, lines, ended, block_bytes):
    path = tmp_path_factory.getbasetemp() / "rows.jsonl"
    path.write_bytes("\n".join(lines).encode() + b"\n" * ended)
    file = SourceFile(str(path), "rows.jsonl")
    before = protocol.LINES_BYTES
    protocol.LINES_BYTES = block_bytes
    try:
        assert read(many_at_once, file) == read(one_by_one, file)
    finally:
        protocol.LINES_BYTES = before
