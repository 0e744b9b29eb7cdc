"""Follows one agent through its requests and decides what each matched, wrote and closed.

What ends a chunk, in this order: a compaction, a rewind that the log states, the end of a turn or
of a round (where the harness strips reasoning), a switch of models, and last a divergence between
the context and the input. With text, the input's leading parts that equal the context are kept.
With counts alone, an input that is at least as long as the context kept all of it; a shorter one
(less what is known to be new) kept as many whole chunks, from the start, as fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from lachesis.traces.context import (
    OUTPUT_KINDS,
    UNKNOWN_INPUT,
    AgentContext,
    Chunk,
    Group,
    Step,
    leading_kind,
    scaled,
)
from lachesis.traces.logged import LoggedRequest, Part, PartKind
from lachesis.traces.prompts import PromptKey, implied_length, prompt_key
from lachesis.traces.quality import Quality
from lachesis.traces.schema import Boundary, SegmentClass
from lachesis.traces.stripping import input_tokens_of

#: What a prompt's length is taken from, where a log does not give it.
PROMPT_BY_CACHE = "prompt_tokens", "the first request's cache hit"
PROMPT_UNKNOWN = "prompt_tokens", "none: the log tells neither prompt nor text"
_SHORTER_INPUT = "context reset: the input was shorter than what the agent had written"
_OTHER_TEXT = "context reset: the input's text differs from what the agent had written"

# By names of their own: before Python 3.12, asking an enum for a member is slow.
_LADEN = SegmentClass.LADEN
_PROMPT = SegmentClass.PROMPT
_RESET = Boundary.RESET


class AgentRecovery:
    """One agent of one session.

    Args:
        long_class: class of what no turn or round end closes (lead, worker, reviewer).
        stripping: the session's; ``turn`` concerns the lead alone, since no turn ends inside a
            sub-agent.
        starts_midway: the first request's context has a past, so its cache hit is no prompt.
    """

    def __init__(
        self,
        *,
        agent: int,
        long_class: SegmentClass,
        stripping: Literal["turn", "round", "off"],
        is_lead: bool,
        starts_midway: bool,
        quality: Quality,
        prompt_lengths: Mapping[PromptKey, int],
    ) -> None:
        self.agent = agent
        self.is_lead = is_lead
        self.by_turn = is_lead and stripping == "turn"
        self.by_round = stripping == "round"
        if self.by_round and is_lead:
            long_class = SegmentClass.STRIPPED
        self.long_group: Group = (long_class, 0, None)
        self.starts_midway = starts_midway
        self.quality = quality
        self.prompt_lengths = prompt_lengths
        self.context = AgentContext()
        self.model: str | None = None
        self.prompt_tokens = 0
        self.last_turn = 0
        self.turn_reasoning_tokens = 0
        self.compactions = 0

    def step(self, request: LoggedRequest, *, number: int, handle: int, turn: int) -> Step:
        """Take one request; returns what it matched and wrote. Requests come in order."""
        context = self.context
        total = request.input_tokens
        if total is None:
            total = input_tokens_of(request)
        if request.after_compaction or request.rewinds_to is not None:
            self._close_before(request)
        ended = self._end_turn(turn) if self.by_turn else None
        lost = self._switch_model(request) if request.model != self.model else 0
        suffix = self._cut_to_input(request, total)
        kept = len(context.stack)

        work: Group = (_LADEN, turn, None) if self.by_turn else self.long_group
        room = total - context.tokens
        written: list[Chunk] = []
        if not kept:
            prompt_parts = leading_kind(suffix or (), PartKind.SYSTEM)
            prompt = self._prompt(request, handle, suffix, prompt_parts, room)
            if prompt is not None:
                written.append(prompt)
                room -= prompt.tokens
            suffix = None if suffix is None else suffix[prompt_parts:]
        if suffix is None:
            written += self._written_by_counts(request, handle, room, work, ended, lost)
        else:
            written += self._written_by_parts(request, handle, suffix, room, work, ended)

        output_parts = request.output_parts
        output = Chunk(
            request.output_tokens,
            work,
            handle,
            True,
            None if output_parts is None else tuple([part.key for part in output_parts]),
        )
        stripped_at_once = self.by_round and request.reasoning_tokens > 0
        if stripped_at_once:
            output.group = (_LADEN, number, None)
        context.push([*written, output])
        if stripped_at_once:
            context.cut(len(context.stack) - 1, Boundary.REQUEST_END, number)
        if turn != self.last_turn:
            self.turn_reasoning_tokens = 0
        self.turn_reasoning_tokens += request.reasoning_tokens
        context.previous = number
        self.last_turn = turn
        return Step(kept, written, output)

    def finish(self, *, last_request: int) -> None:
        """Close what is still live: the agent has ended, and the session after `last_request`."""
        end, after = (
            (Boundary.SESSION_END, last_request)
            if self.is_lead
            else (Boundary.SUBAGENT_RETURN, self.context.previous)
        )
        for chunk in self.context.stack:
            if chunk.group[0] is _LADEN and self.by_turn:
                chunk.closed_by, chunk.closed_after = Boundary.TURN_END, self.context.previous
            else:
                chunk.closed_by, chunk.closed_after = end, after

    def _close_before(self, request: LoggedRequest) -> None:
        context = self.context
        if request.after_compaction:
            context.cut(context.prompt_chunks, Boundary.COMPACTION, context.previous)
            self.compactions += 1
        if request.rewinds_to is not None:
            context.cut(context.kept_by_birth(request.rewinds_to), _RESET, context.previous)

    def _end_turn(self, turn: int) -> list[Chunk] | None:
        """Under turn-end stripping: what the turn before leaves dead; None if none has ended."""
        if turn == self.last_turn or self.context.previous < 0:
            return None
        context = self.context
        return context.cut(context.kept_by_turn(turn), Boundary.TURN_END, context.previous)

    def _switch_model(self, request: LoggedRequest) -> int:
        """KV of another model is of no use; returns the context tokens lost besides the prompt."""
        if request.model is None or request.compacts:
            return 0
        switched = self.model is not None and self.model != request.model
        self.model = request.model
        if not switched:
            return 0
        context = self.context
        prompt = context.stack[0].tokens if context.prompt_chunks else 0
        lost = context.tokens - prompt
        context.cut(0, _RESET, context.previous)
        return lost

    def _cut_to_input(self, request: LoggedRequest, total: int) -> list[Part] | None:
        """Kill what the input diverges from; returns the parts that are new, None without text."""
        context = self.context
        parts = request.parts
        if parts is None:
            known_new = (request.appended_tokens or 0) + (request.carried_tokens or 0)
            room = max(0, total - known_new)
            if context.tokens > room and context.cut(
                context.kept_by_tokens(room), _RESET, context.previous
            ):
                self.quality.adjusted[_SHORTER_INPUT] += 1
            return None
        kept, matched = context.kept_by_parts(parts)
        if context.cut(kept, _RESET, context.previous):
            self.quality.adjusted[_OTHER_TEXT] += 1
        kept = context.kept_by_tokens(total)
        if kept < len(context.stack):
            # The text says that more was kept than the reported count has room for.
            context.cut(kept, _RESET, context.previous)
            self.quality.adjusted[_SHORTER_INPUT] += 1
            matched = context.parts_matched
        return list(parts[matched:])

    def _prompt(
        self,
        request: LoggedRequest,
        handle: int,
        suffix: list[Part] | None,
        prompt_parts: int,
        room: int,
    ) -> Chunk | None:
        first = self.context.previous < 0
        prompt_parts_logged = [] if suffix is None else suffix[:prompt_parts]
        key = prompt_key(request, prompt_parts_logged)
        tokens = self._prompt_tokens(request, suffix, prompt_parts, room, first, key)
        if tokens == 0:
            return None
        self.prompt_tokens = tokens
        name = None
        if key is not None:
            model, content = key
            name = "/".join((*((model,) if model else ()), content, str(tokens)))
        keys = tuple([part.key for part in prompt_parts_logged])
        return Chunk(tokens, (_PROMPT, self.context.previous, name), handle, False, keys)

    def _prompt_tokens(
        self,
        request: LoggedRequest,
        suffix: list[Part] | None,
        prompt_parts: int,
        room: int,
        first: bool,
        key: PromptKey | None,
    ) -> int:
        if request.prompt_tokens is not None:
            return min(request.prompt_tokens, room)
        if prompt_parts and suffix is not None:
            logged = sum(part.tokens for part in suffix[:prompt_parts])
            visible = sum(part.tokens for part in suffix[prompt_parts:])
            if request.input_tokens is None:
                return logged
            implied = implied_length(request, suffix, room)
            if implied is None:
                return scaled([logged, visible], room)[0]
            self.quality.fill("prompt_tokens", "the first input less its visible text")
            common = self.prompt_lengths.get(key, implied) if key is not None else implied
            return min(common, room)
        if not first:
            return min(self.prompt_tokens, room)
        if self.starts_midway:
            return 0
        cached = request.reported_cached_tokens or 0
        if cached > 0:
            self.quality.fill(*PROMPT_BY_CACHE)
            return min(cached, room)
        visible_known = request.appended_tokens
        if suffix is not None and request.input_tokens is not None:
            visible_known = sum(part.tokens for part in suffix)
        if visible_known is None:
            self.quality.fill(*PROMPT_UNKNOWN)
            return 0
        self.quality.fill("prompt_tokens", "the first input less its visible text")
        return max(0, room - visible_known)

    def _written_by_counts(
        self,
        request: LoggedRequest,
        handle: int,
        room: int,
        work: Group,
        ended: list[Chunk] | None,
        lost: int,
    ) -> list[Chunk]:
        written: list[Chunk] = []
        if request.after_compaction:
            summary = min(request.summary_tokens or 0, room)
            if summary > 0:
                group = self._summary_group()
                written.append(Chunk(summary, group, handle, False, UNKNOWN_INPUT))
            room -= summary
        if ended is not None:
            carried = self._carried_tokens(request, room, ended, lost)
            if carried > 0:
                group = self._carried_group()
                written.append(Chunk(carried, group, handle, False, UNKNOWN_INPUT))
            room -= carried
        if room > 0:
            written.append(Chunk(room, work, handle, False, UNKNOWN_INPUT))
        return written

    def _carried_tokens(
        self, request: LoggedRequest, room: int, ended: list[Chunk], lost: int
    ) -> int:
        if request.carried_tokens is not None:
            return min(request.carried_tokens, room)
        if request.appended_tokens is not None:
            self.quality.fill("carried_tokens", "the input's new part less the appended text")
            return max(0, room - request.appended_tokens)
        self.quality.fill("carried_tokens", "the turn's tokens less its reasoning, at most")
        reasoning = self.turn_reasoning_tokens
        held = lost + sum(chunk.tokens for chunk in ended)
        return min(room, max(0, held - reasoning))

    def _written_by_parts(
        self,
        request: LoggedRequest,
        handle: int,
        suffix: list[Part],
        room: int,
        work: Group,
        ended: list[Chunk] | None,
    ) -> list[Chunk]:
        groups = [work] * len(suffix)
        if request.after_compaction:
            summary_parts = max(1, leading_kind(suffix, PartKind.SUMMARY))
            groups[:summary_parts] = [self._summary_group()] * min(summary_parts, len(suffix))
        if ended is not None:
            known = {key for chunk in ended for key in chunk.keys or ()}
            carried_parts = 0
            for index, part in enumerate(suffix):
                if part.kind in OUTPUT_KINDS or (
                    part.kind is not PartKind.USER and part.key in known
                ):
                    carried_parts = index + 1
            for index in range(carried_parts):
                if groups[index] == work:
                    groups[index] = self._carried_group()
        if not suffix:
            # Counted, but not in the text.
            return [Chunk(room, work, handle, False, ())] if room > 0 else []
        tokens = scaled([part.tokens for part in suffix], room)
        return [
            Chunk(count, group, handle, False, (part.key,))
            for count, group, part in zip(tokens, groups, suffix, strict=True)
        ]

    def _summary_group(self) -> Group:
        return (SegmentClass.SUMMARY, self.compactions, None)

    def _carried_group(self) -> Group:
        return (SegmentClass.STRIPPED, self.last_turn, None)
