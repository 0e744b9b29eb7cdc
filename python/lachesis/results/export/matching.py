"""What a reader of block hashes finds matched, beside what the trace says."""

from __future__ import annotations

from dataclasses import dataclass, field

from lachesis.results.export.requests import ExportedRequest


@dataclass
class Matching:
    """Matched tokens of the trace, and as hashes of blocks can say them.

    Inside one agent's requests a reader compares an input's whole blocks with those of the last
    input. Where all agree it takes the last input, and its output if there is room, as matched; else
    the blocks that agree. So a context that grows is exact; one that diverges loses less than a
    block, or, where it diverges past the last whole block, is taken for one that grows. Matches
    between agents (a prompt that a sub-agent shares with the lead) are in the hashes, and a reader
    that looks at one agent at a time does not see them.

    Attributes:
        block_tokens: tokens of a block.
        requests: requests that follow another of their agent.
        exact: of these, those whose matched tokens the format can say.
        tokens: what the trace matches, over all requests.
        told_tokens: what a reader finds.
    """

    block_tokens: int
    requests: int = 0
    exact: int = 0
    tokens: int = 0
    told_tokens: int = 0
    _last: dict[str, tuple[int, int, list[int]]] = field(default_factory=dict, repr=False)

    def add(self, request: ExportedRequest) -> int:
        """Take the next request, and return the tokens that a reader will find matched in it.

        A request without output is none to a reader, and 0 here.
        """
        self.tokens += request.matched_tokens
        if not request.output_tokens:
            return 0
        last = self._last.get(request.agent)
        whole = request.hash_ids[: request.input_tokens // self.block_tokens]
        self._last[request.agent] = (request.input_tokens, request.output_tokens, whole)
        if last is None:
            return 0
        told = 0
        if request.is_first or request.matched_tokens:
            told = self._agreed(last, request, whole)
        self.requests += 1
        self.exact += told == request.matched_tokens
        self.told_tokens += told
        return told

    def _agreed(
        self, last: tuple[int, int, list[int]], request: ExportedRequest, whole: list[int]
    ) -> int:
        input_tokens, output_tokens, held = last
        common = 0
        for ours, theirs in zip(held, whole, strict=False):
            if ours != theirs:
                break
            common += 1
        if common == len(held):
            if request.input_tokens >= input_tokens + output_tokens:
                return input_tokens + output_tokens
            if request.input_tokens >= input_tokens:
                return input_tokens
        return common * self.block_tokens
