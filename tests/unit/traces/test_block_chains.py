"""Contexts and sessions from hashes of blocks, against a count by hand and a plain one."""

from hypothesis import given
from hypothesis import strategies as st

from lachesis.traces.logged import PartKind
from lachesis.traces.readers.block_chains import BlockContext, block_tokens_of, blocks_of
from lachesis.traces.readers.context_pieces import ContextPieces, common_start
from lachesis.traces.readers.session_chains import SessionChains, shared_prompts

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


class Log:
    """Requests of one log, asked of `SessionChains`."""

    def __init__(self):
        self.chains = SessionChains(BLOCK)

    def ask(self, ids, made=4, extra=0):
        return self.chains.session_of(len(ids) * BLOCK + extra, made, blocks_of(ids))


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


def test_prompts_are_what_other_first_inputs_start_with_too():
    chains = [blocks_of(ids) for ids in ([1, 2, 3], [1, 2, 4], [1, 5], [6])]
    assert shared_prompts(chains, BLOCK) == [(16, 2), (16, 2), (8, 1), (0, None)]
