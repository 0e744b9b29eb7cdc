"""What a reader of block hashes finds matched, beside what the trace says."""

from __future__ import annotations

from dataclasses import dataclass, field

from lachesis.results.export.requests import ExportedRequest


@dataclass
class Matching:
    """Matched tokens of the trace, and as hashes of blocks can say them.

    Inside one agent's requests a reader compares an input's whole blocks with those of the last
    input. Where all agree it takes the last input, and its output if there is room, as matched;
    else the blocks that agree, cut back to the start of an output that would not be whole. So a
    context that grows is exact; one that diverges loses less than a block (and an output), or, past
    the last whole block, is taken for one that grows. Matches
    between agents (a prompt that a sub-agent shares with the lead) are in the hashes, and a reader
    that looks at one agent at a time does not see them.

    Attributes:
        block_tokens: tokens of a block.
        says_resets: whether the format can say that a context starts from nothing.
        requests: requests that follow another of their agent.
        exact: of these, those whose matched tokens the format can say.
        tokens: what the trace matches, over all requests.
        told_tokens: what a reader finds.
    """

    block_tokens: int
    says_resets: bool = False
    requests: int = 0
    exact: int = 0
    tokens: int = 0
    told_tokens: int = 0
    _last: dict[str, _Last] = field(default_factory=dict, repr=False)

    def add(self, request: ExportedRequest) -> int:
        """Take the next request, and return the tokens that a reader will find matched in it.

        A request without output is none to a reader, and 0 here.
        """
        self.tokens += request.matched_tokens
        if not request.output_tokens:
            return 0
        whole = request.hash_ids[: request.input_tokens // self.block_tokens]
        last = self._last.get(request.agent)
        if last is None:
            self._last[request.agent] = last = _Last()
            told = 0
        else:
            is_reset = self.says_resets and not request.matched_tokens
            agreed = 0 if is_reset else self._agreed(last, request.input_tokens, whole)
            told = last.keep(agreed)
            self.requests += 1
            self.exact += told == request.matched_tokens
            self.told_tokens += told
        end = request.input_tokens + request.output_tokens
        last.outputs.append((request.input_tokens, end))
        last.input_tokens, last.end, last.blocks = request.input_tokens, end, whole
        return told

    def _agreed(self, last: _Last, input_tokens: int, whole: list[int]) -> int:
        """Up to where a reader can tell no difference between two inputs."""
        common = 0
        for ours, theirs in zip(last.blocks, whole, strict=False):
            if ours != theirs:
                break
            common += 1
        if common == len(last.blocks):
            if input_tokens >= last.end:
                return last.end
            if input_tokens >= last.input_tokens:
                return last.input_tokens
        return common * self.block_tokens


@dataclass
class _Last:
    """An agent's last request, and the outputs in its context, as tokens from where to where."""

    input_tokens: int = 0
    end: int = 0
    blocks: list[int] = field(default_factory=list)
    outputs: list[tuple[int, int]] = field(default_factory=list)

    def keep(self, agreed: int) -> int:
        """Cut the context; an output is kept whole or not at all. Returns what is left of it."""
        while self.outputs and self.outputs[-1][1] > agreed:
            agreed = min(agreed, self.outputs.pop()[0])
        return agreed
