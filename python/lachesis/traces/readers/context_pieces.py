"""Contexts of which only lengths are known, and up to where each agrees with the one before.

What a request wrote is one piece until a later request keeps only the start of it; since all
requests of an agent are known before parts are made, a piece is cut from the beginning wherever it
will ever be cut. An output is kept whole or not at all.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple, TypeVar

from lachesis.traces.logged import Part, PartKind


class RequestParts(NamedTuple):
    """A request's context for the builder, and how many tokens of it matched."""

    parts: list[Part]
    output_parts: list[Part]
    matched_tokens: int


class _Logged(NamedTuple):
    input_tokens: int
    output_tokens: int
    agreed_tokens: int  # up to where the contexts before and after may be the same


class _Piece(NamedTuple):
    """Tokens `start` up to `end` of a context that request `born` wrote, as input or output."""

    born: int
    is_output: bool
    start: int
    end: int


Sliceable = TypeVar("Sliceable", str, "array[int]")


def common_start(left: Sliceable, right: Sliceable) -> int:
    """With how many equal elements two texts or arrays start.

    Example:
        >>> common_start("worker", "working")
        4
    """
    count = min(len(left), len(right))
    if left[:count] == right[:count]:
        return count
    low, high = 0, count  # the first `low` agree, the first `high` do not
    while low + 1 < high:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


class ContextPieces:
    """The requests of one agent, in order.

    Example:
        >>> context = ContextPieces()
        >>> for tokens, agreed in ((40, 0), (60, 45), (50, 30)):
        ...     context.add_agreed(tokens, 5, agreed)
        >>> [each.matched_tokens for each in context.parts()]
        [0, 45, 30]
    """

    def __init__(self) -> None:
        self._requests: list[_Logged] = []

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def only_grows(self) -> bool:
        """Whether every input holds all that was read and written before, as its length tells."""
        return all(
            after.agreed_tokens == before.input_tokens + before.output_tokens <= after.input_tokens
            for before, after in pairwise(self._requests)
        )

    def add_agreed(self, input_tokens: int, output_tokens: int, agreed_tokens: int) -> None:
        """Take the next request; its first `agreed_tokens` are what the agent's context held."""
        self._requests.append(_Logged(input_tokens, output_tokens, agreed_tokens))

    def parts(self, prompt_tokens: int = 0) -> list[RequestParts]:
        """Parts of every request.

        `prompt_tokens`: how much of the first input is system prompt and tools. It is cut down to
        what no divergence reaches, since a prompt that changes in its middle does not survive.
        """
        contexts, matched, cuts = self._walk()
        reached = [tokens for tokens in matched[1:] if tokens]
        first = self._requests[0].input_tokens if self._requests else 0
        prompt = min(prompt_tokens, first, *reached)
        if prompt:
            cuts.setdefault(0, set()).add(prompt)
        keys = {born: sorted(places) for born, places in cuts.items()}
        found: list[RequestParts] = []
        for born, request in enumerate(self._requests):
            parts: list[Part] = []
            for piece in contexts[born]:
                parts += _parts_of(piece, keys.get(piece.born, ()), prompt)
            output = Part(("output", born), request.output_tokens, PartKind.ANSWER)
            found.append(RequestParts(parts, [output], matched[born]))
        return found

    def _walk(self) -> tuple[list[list[_Piece]], list[int], dict[int, set[int]]]:
        """Each request's context, what of it matched, and where a piece was ever cut."""
        stack: list[_Piece] = []
        contexts: list[list[_Piece]] = []
        matched: list[int] = []
        cuts: dict[int, set[int]] = {}
        for born, request in enumerate(self._requests):
            agreed = request.agreed_tokens
            while stack and stack[-1].end > agreed:
                piece = stack.pop()
                if piece.start >= agreed:
                    continue
                if piece.is_output:
                    agreed = piece.start
                else:
                    stack.append(piece._replace(end=agreed))
                    cuts.setdefault(piece.born, set()).add(agreed)
            kept = stack[-1].end if stack else 0
            if request.input_tokens > kept:
                stack.append(_Piece(born, False, kept, request.input_tokens))
            contexts.append(list(stack))
            matched.append(kept)
            if request.output_tokens:
                end = request.input_tokens + request.output_tokens
                stack.append(_Piece(born, True, request.input_tokens, end))
        return contexts, matched, cuts


def _parts_of(piece: _Piece, cuts: Iterable[int], prompt: int) -> list[Part]:
    if piece.is_output:
        return [Part(("output", piece.born), piece.end - piece.start, PartKind.ANSWER)]
    edges = [piece.start, *(cut for cut in cuts if piece.start < cut < piece.end), piece.end]
    return [
        Part(
            ("input", piece.born, start),
            end - start,
            PartKind.SYSTEM if piece.born == 0 and end <= prompt else PartKind.USER,
        )
        for start, end in pairwise(edges)
    ]
