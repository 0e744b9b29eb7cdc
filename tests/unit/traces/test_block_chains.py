"""Contexts and sessions from hashes of blocks, against a count by hand and a plain one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lachesis.traces.logged import PartKind
from lachesis.traces.readers.block_chains import BlockContext, block_tokens_of, blocks_of
from lachesis.traces.readers.block_numbers import BlockNumbers
from lachesis.traces.readers.context_pieces import ContextPieces, common_start
from lachesis.traces.readers.session_chains import SessionChains, SharedPrompts

BLOCK = 8


def context(*requests):
    """A context of (input, output, ids) of each request."""
    found = BlockContext(BLOCK)
    for given_tokens, made, ids in requests:
        found.add(given_tokens, made, blocks_of(ids))
    return found


def matched(*requests):
    return [each.matched_tokens for each in context(*requests).parts()]


def test_an_input_with_room_for_both_holds_input_and_output():
    assert matched((20, 5, [1, 2]), (30, 5, [1, 2, 3])) == [0, 25]


def test_an_input_without_room_for_the_output_holds_the_input():
    assert matched((20, 5, [1, 2]), (24, 5, [1, 2, 3])) == [0, 20]
    assert matched((20, 5, [1, 2]), (18, 5, [1, 2])) == [0, 16]


def test_a_part_filled_block_says_nothing():
    # The third block of the first input is part-filled, so another id in its place is the same.
    assert matched((20, 5, [1, 2, 77]), (30, 5, [1, 2, 3])) == [0, 25]


def test_blocks_that_differ_end_the_match_there():
    assert matched((40, 5, [1, 2, 3, 4, 5]), (60, 5, [1, 2, 9, 10, 11, 12, 13])) == [0, 16]


def test_a_cut_inside_an_old_output_drops_it_whole():
    first, second = (16, 16, [1, 2]), (40, 4, [1, 2, 3, 4, 5])
    assert matched(first, second, (48, 4, [1, 2, 3, 9, 9, 9])) == [0, 32, 16]


def test_pieces_are_cut_from_the_beginning_where_they_ever_will_be():
    parts = context((40, 0, range(5)), (48, 0, [0, 1, 2, 9, 9, 9])).parts(prompt_tokens=10)
    assert [(part.tokens, part.kind) for part in parts[0].parts] == [
        (10, PartKind.SYSTEM),
        (14, PartKind.USER),
        (16, PartKind.USER),
    ]
    assert parts[1].parts[:2] == parts[0].parts[:2]


def test_a_prompt_that_changes_is_cut_down_to_what_stays():
    parts = context((40, 4, range(5)), (48, 4, [0, 1, 9, 9, 9, 9])).parts(prompt_tokens=30)
    prompt = [part for part in parts[0].parts if part.kind is PartKind.SYSTEM]
    assert sum(part.tokens for part in prompt) == 16


def test_a_reset_matches_nothing():
    found = BlockContext(BLOCK)
    found.add(16, 4, blocks_of([1, 2]))
    found.add(24, 4, blocks_of([1, 2, 3]), reset=True)
    assert [each.matched_tokens for each in found.parts()] == [0, 0]


def test_ids_of_any_64_bits():
    assert list(blocks_of([-1, 2**64 - 1, 2**64])) == [2**64 - 1, 2**64 - 1, 0]


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_the_common_start_is_the_plain_one(left, right):
    plain = 0
    while plain < min(len(left), len(right)) and left[plain] == right[plain]:
        plain += 1
    assert common_start(blocks_of(left), blocks_of(right)) == plain
    assert common_start("".join(map(str, left)), "".join(map(str, right))) == plain


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 20), st.integers(0, 90)), max_size=12),
    st.integers(0, 60),
)
def test_parts_add_up_and_what_matched_stood_there_before(requests, prompt_tokens):
    pieces = ContextPieces()
    for given_tokens, made, agreed in requests:
        pieces.add_agreed(given_tokens, made, min(agreed, given_tokens))
    held = []
    for (given_tokens, made, _), found in zip(requests, pieces.parts(prompt_tokens), strict=True):
        assert sum(part.tokens for part in found.parts) == given_tokens
        assert all(part.tokens > 0 for part in found.parts)
        assert len({part.key for part in found.parts}) == len(found.parts)
        same = [part.tokens for part, old in zip(found.parts, held, strict=False) if part == old]
        assert sum(same) >= found.matched_tokens
        held = [*found.parts, *found.output_parts]
        assert found.output_parts[0].tokens == made


def test_block_sizes():
    assert block_tokens_of([(1300, 3), (1200, 3)], 512) == 512
    assert block_tokens_of([(64, 4), (48, 3)], 512) == 16
    assert block_tokens_of([(60, 3)], 512) == 20 or block_tokens_of([(60, 3)], 512) == 32
    assert block_tokens_of([(100, 2), (100, 3)], 512) is None
    assert block_tokens_of([], 512) == 512


def flat(chains):
    """Chains of blocks one after another, and how many blocks each has."""
    return (
        np.array([block for chain in chains for block in chain], np.int64),
        np.array([len(chain) for chain in chains], np.int64),
    )


class Log:
    """Requests of one log, asked of `SessionChains` one by one."""

    def __init__(self):
        self.chains = SessionChains()

    def ask(self, ids, made=4, extra=0):
        tokens = np.array([len(ids) * BLOCK + extra])
        (session,), _ = self.chains.place(tokens, np.array([made]), *flat([ids]))
        return session


def test_the_longest_proper_start_is_continued():
    log = Log()
    assert log.ask([1, 2]) == 0
    assert log.ask([1, 2, 3], extra=4) == 0
    assert log.ask([1, 9]) == 1
    assert log.ask([1, 2, 3, 4], extra=4) == 0
    assert log.ask([1, 9, 10]) == 1


def test_a_shared_prompt_alone_proves_nothing():
    log = Log()
    assert log.ask([1, 2]) == 0
    assert log.ask([1]) == 1
    # The second session ends with block 1, which the first wrote.
    assert log.ask([1, 5]) == 2


def test_a_session_is_continued_by_one_request():
    log = Log()
    assert log.ask([1, 2]) == 0
    assert log.ask([1, 2, 3], extra=4) == 0
    assert log.ask([1, 2, 8], extra=4) == 1


def test_an_input_without_room_for_the_answer_continues_nothing():
    log = Log()
    assert log.ask([1, 2], made=30) == 0
    assert log.ask([1, 2, 3]) == 1


@pytest.mark.parametrize("at_once", [5, 2, 1])
def test_prompts_are_what_other_first_inputs_start_with_too(at_once):
    prompts = SharedPrompts()
    firsts = [[1, 2, 3], [1, 2, 4], [1, 5], [6], []]
    for begin in range(0, 5, at_once):
        prompts.add(*flat(firsts[begin : begin + at_once]))
    counts, last = prompts.of(np.arange(5))
    assert counts.tolist() == [2, 2, 1, 0, 0]
    assert last[:3].tolist() == [2, 2, 1]


def test_a_block_twice_in_one_input_is_not_shared():
    prompts = SharedPrompts()
    prompts.add(*flat([[1, 1], [2]]))
    assert prompts.of(np.arange(2))[0].tolist() == [0, 0]


def test_ids_that_are_no_chain_lead_in_no_circle():
    prompts = SharedPrompts()
    prompts.add(*flat([[1, 2, 3]]))
    prompts.add(*flat([[3, 1]]))
    counts, _ = prompts.of(np.arange(2))
    assert counts[0] <= 3
    assert counts[1] <= 2


@given(
    st.lists(
        st.lists(
            st.one_of(st.integers(0, 40), st.integers(2**40, 2**40 + 3), st.integers(0, 2**64 - 1)),
            max_size=30,
        ),
        max_size=12,
    )
)
def test_ids_have_one_number_each(asked):
    numbers, known = BlockNumbers(), {}
    for ids in asked:
        found = numbers.of(np.array(ids, np.uint64))
        for block, number in zip(ids, found.tolist(), strict=True):
            assert known.setdefault(block, number) == number
        assert numbers.ids_of(found).tolist() == ids
    assert len(set(known.values())) == len(known)


def test_many_scattered_ids_outgrow_the_first_table():
    draw, numbers = np.random.default_rng(3), BlockNumbers()
    ids = draw.integers(0, 2**64, 150_000, np.uint64)
    first = np.concatenate([numbers.of(some) for some in np.split(ids, 30)])
    assert len(np.unique(first)) == len(np.unique(ids))
    again = draw.permutation(len(ids))
    assert (numbers.of(ids[again]) == first[again]).all()
    assert (numbers.ids_of(first) == ids).all()


class PlainChains:
    """The rule of `SessionChains`, word for word, over all ends of all sessions."""

    def __init__(self):
        self.owner = {}
        self.ends = []  # of each session: its last input's blocks, and its tokens with the output

    def session_of(self, input_tokens, output_tokens, ids):
        whole = ids[: input_tokens // BLOCK]
        fits = [
            (len(blocks), -session)
            for session, (blocks, tokens) in enumerate(self.ends)
            if blocks and whole[: len(blocks)] == blocks and tokens <= input_tokens
            and self.owner[blocks[-1]] == session
        ]  # fmt: skip
        session = -max(fits)[1] if fits else len(self.ends)
        if not fits:
            self.ends.append(None)
        for block in whole:
            self.owner.setdefault(block, session)
        self.ends[session] = (whole, input_tokens + output_tokens)
        return session


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 2), max_size=6), st.integers(0, 7), st.integers(0, 12)),
        max_size=25,
    ),
    st.integers(1, 25),
)
def test_sessions_are_those_of_the_rule(requests, at_once):
    """Paths in a tree, each node of which has its own id, as a chain of hashes has."""
    plain, chains, ids = PlainChains(), SessionChains(), {}
    for begin in range(0, len(requests), at_once):
        asked, expected = [], []
        for path, extra, made in requests[begin : begin + at_once]:
            whole = [ids.setdefault(tuple(path[:end]), len(ids)) for end in range(1, len(path) + 1)]
            tokens = max(1, len(whole) * BLOCK + extra)
            asked.append((tokens, made, whole))
            expected.append(plain.session_of(tokens, made, whole))
        tokens, made, wholes = zip(*asked, strict=True)
        sessions, _ = chains.place(np.array(tokens), np.array(made), *flat(wholes))
        assert sessions.tolist() == expected
