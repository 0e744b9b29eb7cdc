"""Reader of WEKA's proxy traces of Claude Code (kv-cache-tester): one JSON document a session.

**Requests.** Every row of type `n` (whole answer) or `s` (streamed); rows of type `subagent` hold
the requests of one sub-agent. `in` and `out` are the provider's counts (`in` includes what it had
cached).

**Context** comes from the hashes of 64-token blocks alone (see `block_chains`); how the trace was
cached is not in it and would not be used. The ids are local to a file. The prompt is
`tool_tokens` + `system_tokens`, less where the blocks show that it changed in the middle.

**Turns.** The proxy saw messages, not people: a request opens a turn if it brings text and the
output before it ended of itself (`end_turn`, `stop_sequence`, `max_tokens`). Rows with an empty
`stop` tell nothing; a request that brings text after one opens no turn, and is counted.

**Sub-agents** were spawned by the last request of their parent that had started when they began,
and return to its first one after their end. A sub-agent row's `t` is its end; its requests count
from its start.

**Times** are seconds since the session's first request: the trace has no calendar. Requests without
`api_time` have no end.

**Left out**, counted: a file that equals another one but for its `id` (the same session under two
ids). A file that begins with the same request as another is a fork: kept whole, and counted. A
session whose first input exceeds its prompt by more than 16,384 tokens starts midway.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD, PartKind
from lachesis.traces.readers.agent_roles import role_of
from lachesis.traces.readers.block_chains import BlockContext, blocks_of
from lachesis.traces.readers.context_pieces import RequestParts
from lachesis.traces.readers.json_head import begins_with, words_in_head
from lachesis.traces.readers.json_rows import decoded_document
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.timed_agents import TimedAgent, TimedRequest, push_timed
from lachesis.traces.schema import TOKENS_MAX
from lachesis.traces.session_builder import SessionBuilder

_DESCRIPTION: Final = __doc__ or ""
_SIGNS: Final = frozenset({b"block_size", b"hash_id_scope", b"requests"})
_ENDED: Final = frozenset({"end_turn", "stop_sequence", "max_tokens"})
_MIDWAY_TOKENS: Final = 16_384
#: Starts are whole seconds, so that times may be off by this much.
_CLOCK_S: Final = 1.0

Count = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class _Request(msgspec.Struct, tag_field="type", tag="n"):
    t: Seconds
    model: str
    input_tokens: Count = msgspec.field(name="in")
    output_tokens: Count = msgspec.field(name="out")
    hash_ids: list[int]
    stop: str | None = None
    input_types: list[str] = msgspec.field(default_factory=list)
    output_types: list[str] = msgspec.field(default_factory=list)
    api_time: Seconds | None = None


class _StreamedRequest(_Request, tag_field="type", tag="s"):
    pass


class _SubAgent(msgspec.Struct, tag_field="type", tag="subagent"):
    t: Seconds
    agent_id: str
    requests: list[_Request | _StreamedRequest | _SubAgent]
    duration_ms: Annotated[float, msgspec.Meta(ge=0, le=1e15)] | None = None
    subagent_type: str | None = None
    tool_tokens: Count = 0
    system_tokens: Count = 0


class _Document(msgspec.Struct):
    id: str
    block_size: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)]
    requests: list[_Request | _StreamedRequest | _SubAgent]
    hash_id_scope: Literal["local", "global"] = "local"
    tool_tokens: Count = 0
    system_tokens: Count = 0


_DECODER: Final = msgspec.json.Decoder(_Document)


class WekaReader:
    """WEKA proxy traces of Claude Code."""

    name = "weka"
    joins_files = True
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """A JSON object whose head names a block size, the scope of its hashes, and requests."""
        return begins_with(file, b"{") and words_in_head(file) >= _SIGNS

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push each file as a session, but one that repeats another."""
        seen: dict[bytes, str] = {}
        openings: set[bytes] = set()
        for file in files:
            document = decoded_document(file, _DECODER)
            whole = _digest(msgspec.structs.replace(document, id=""))
            if whole in seen:
                builder.drop("session that is in another file under another id")
                builder.skip(file.name, f"is the same session as {seen[whole]}")
                continue
            seen[whole] = file.name
            if document.requests:
                opening = _digest((document.block_size, document.requests[0]))
                if opening in openings:
                    builder.fill("session", "begins with another one's first request (a fork)")
                openings.add(opening)
            _Session(file, document, builder).push()
            if not document.requests:
                builder.skip(file.name, "holds no request")


READER = WekaReader()


def _digest(value: object) -> bytes:
    return blake2b(msgspec.msgpack.encode(value), digest_size=16).digest()


class _Session:
    """Gathers the requests of one document's agents and pushes them in order of time."""

    def __init__(self, file: SourceFile, document: _Document, builder: TraceBuilder) -> None:
        self.file = file
        self.document = document
        self.builder = builder
        self.requests: list[TimedRequest] = []
        self.agents: dict[Hashable, TimedAgent] = {}
        self.starts_midway = False
        self.ends_open = False

    def push(self) -> None:
        """Gather and push."""
        self._gather(LEAD, self.document, 0.0, "")

        def open_session(orphan: Hashable | None) -> SessionBuilder:
            name = self.document.id
            return self.builder.session(
                name if orphan is None else f"{name}/{orphan}",
                workload=Path(self.file.name).parent.name or "weka",
                harness="claude-code",
                source=self.file.name,
                starts_midway=self.starts_midway and orphan is None,
                ends_open=self.ends_open and orphan is None,
                # What the blocks show is all there is, and they show where something was removed.
                stripping="off",
                orphan=orphan is not None,
            )

        for session in push_timed(open_session, self.requests, self.agents, slack_s=_CLOCK_S):
            self.builder.complete(session)

    def _gather(self, key: Hashable, row: _Document | _SubAgent, start_s: float, at: str) -> None:
        context = BlockContext(self.document.block_size)
        own: list[tuple[_Request, str]] = []
        for index, each in enumerate(row.requests):
            place = f"{at}requests[{index}]"
            if isinstance(each, _SubAgent):
                self._sub_agent(key, each, start_s, place)
            elif not each.output_tokens:
                self.builder.exclude("request without output")
            else:
                self._check_blocks(each, place)
                own.append((each, place))
        own.sort(key=lambda entry: entry[0].t)
        for each, _ in own:
            blocks = blocks_of(each.hash_ids)
            context.add(each.input_tokens, each.output_tokens, blocks)
        prompt_tokens = row.tool_tokens + row.system_tokens
        contexts = context.parts(prompt_tokens)
        if contexts and _prompt_tokens(contexts[0]) < min(prompt_tokens, own[0][0].input_tokens):
            self.builder.fill("prompt_tokens", "cut down to what the blocks show unchanged")
        if key == LEAD and own:
            self.starts_midway = own[0][0].input_tokens - prompt_tokens > _MIDWAY_TOKENS
            self.ends_open = own[-1][0].stop == "tool_use"
        before: _Request | None = None
        for (each, place), parts in zip(own, contexts, strict=True):
            self.requests.append(self._request(key, each, before, start_s, place, parts))
            before = each

    def _sub_agent(self, parent: Hashable, row: _SubAgent, base_s: float, place: str) -> None:
        key = row.agent_id if parent == LEAD else f"{parent}/{row.agent_id}"
        if key in self.agents:
            raise InputError("must be unique in its session", path=self.file.name, row=place,
                             field="agent_id", value=row.agent_id)  # fmt: skip
        # A sub-agent is noted when it returns: `t` is its end.
        end_s = base_s + row.t
        start_s = end_s - (row.duration_ms or 0.0) / 1000
        if row.duration_ms is None:
            last = [each.t + (each.api_time or 0.0) for each in row.requests
                    if not isinstance(each, _SubAgent)]  # fmt: skip
            start_s = end_s - max(last, default=0.0)
            self.builder.fill("start_s", "a sub-agent's end less its last request's")
        if start_s < base_s - _CLOCK_S:
            raise InputError("must not exceed the time since the session's start",
                             path=self.file.name, row=place, field="duration_ms",
                             value=row.duration_ms)  # fmt: skip
        models = (each.model for each in row.requests if not isinstance(each, _SubAgent))
        self.agents[key] = TimedAgent(
            parent=parent,
            record={
                "role": role_of(row.subagent_type),
                "agent_type": row.subagent_type,
                "model": next(models, None),
            },
            ends_s=end_s,
            resumable=False,
            explicit=True,
        )
        self._gather(key, row, start_s, f"{place}.")

    def _request(
        self,
        agent: Hashable,
        row: _Request,
        before: _Request | None,
        base_s: float,
        place: str,
        context: RequestParts,
    ) -> TimedRequest:
        brings_text = "text" in row.input_types
        opens = brings_text and before is not None and before.stop in _ENDED
        if brings_text and before is not None and not before.stop and agent == LEAD:
            self.builder.fill("turn", "none opened: the trace does not say how the output ended")
        if "thinking" in row.output_types:
            self.builder.fill("reasoning_tokens", "none: the trace tells that there was reasoning, "
                              "not how much")  # fmt: skip
        start_s = round(base_s + row.t, 6)
        return TimedRequest(
            agent,
            start_s,
            None if row.api_time is None else round(start_s + row.api_time, 6),
            {
                "opens_turn": opens and agent == LEAD,
                "parts": context.parts,
                "prompt_tokens": _prompt_tokens(context) if before is None else None,
                "input_tokens": row.input_tokens,
                "output_tokens": row.output_tokens,
                "output_parts": context.output_parts,
                "prefix_key": self._prompt_name(context, row),
                # Kinds of input are listed, not how many there were of each.
                "observations": int("tool_result" in row.input_types),
                "tools": [] if row.output_types and "tool_use" not in row.output_types else None,
                "model": row.model,
                "row": place,
            },
        )

    def _prompt_name(self, context: RequestParts, row: _Request) -> str | None:
        """Agents whose inputs begin with the same blocks share the prompt; ids are the file's."""
        last = _prompt_tokens(context) // self.document.block_size
        return f"{self.document.id} block {row.hash_ids[last - 1]}" if last else None

    def _check_blocks(self, row: _Request, place: str) -> None:
        needed = row.input_tokens // self.document.block_size
        if len(row.hash_ids) < needed:
            raise InputError(
                f"must hold an id for each of the {needed} blocks that the input fills",
                path=self.file.name, row=place, field="hash_ids", value=f"{len(row.hash_ids)} ids",
            )  # fmt: skip


def _prompt_tokens(context: RequestParts) -> int:
    return sum(part.tokens for part in context.parts if part.kind is PartKind.SYSTEM)
