"""Reader of BFCL multi-turn message files: JSONL, one session a line.

`{"id", "involved_classes", "messages": [{"turn", "role", "content" | "tool_calls"}]}` holds the
user's turns, the calls of the reference solution and what they returned. No model ran: there is no
reasoning and no text of the assistant, so the request that would end each turn with an answer is
missing, which is counted (`request`), and so are system prompt and function schemas
(`prompt_tokens`).

**Requests** are the assistant messages with calls. **Turns** change with `turn`. **Tokens** are all
counted from the text and flagged inferred. There are no times: every latency is drawn. **Tools**
are function calls in the simulator: class `retrieval`, as in the paper's temporal regime.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import Part, PartKind, content_key
from lachesis.traces.readers.json_head import begins_with, words_in_head
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.schema import ToolClass, UsageSource

_DESCRIPTION: Final = __doc__ or ""
_SIGNS: Final = frozenset({b"id", b"involved_classes", b"messages"})


class _Call(msgspec.Struct):
    call: str
    id: str | None = None


class _Message(msgspec.Struct):
    turn: int
    role: Literal["user", "assistant", "tool", "system"]
    content: str | None = None
    tool_calls: list[_Call] = msgspec.field(default_factory=list)


class _Line(msgspec.Struct):
    id: str
    messages: list[_Message]
    involved_classes: list[str] = msgspec.field(default_factory=list)


_DECODER: Final = msgspec.json.Decoder(_Line)


class BfclReader:
    """BFCL multi-turn message files."""

    name = "bfcl"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """JSONL whose head names the classes involved and messages."""
        return begins_with(file, b"{") and words_in_head(file) >= _SIGNS

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every line of every file as a session."""
        for file in files:
            dropped: list[str] = []
            for number, _, line in decoded_lines(file, _DECODER, dropped):
                _push(file, number, line, builder, options)
            for reason in dropped:
                builder.drop(reason)


READER = BfclReader()


def _push(
    file: SourceFile, number: int, line: _Line, builder: TraceBuilder, options: ReadOptions
) -> None:
    def part(kind: PartKind, text: str) -> Part:
        return Part(content_key(text, kind), options.count_tokens(text), kind)

    session = builder.session(
        line.id,
        workload=f"bfcl-{Path(file.name).name.split('.')[0]}",
        harness="bfcl",
        source=file.name,
        recorded_delays=False,
        stripping="off",
    )
    context: list[Part] = []
    turn: int | None = None
    opens_turn = False
    observations = 0
    for index, message in enumerate(line.messages):
        match message.role:
            case "user" | "system":
                kind = PartKind.USER if message.role == "user" else PartKind.SYSTEM
                context.append(part(kind, message.content or ""))
            case "tool":
                context.append(part(PartKind.OBSERVATION, message.content or ""))
                observations += 1
            case "assistant" if not message.tool_calls:
                builder.drop("assistant message without calls")
            case _:
                opens_turn = turn is not None and message.turn != turn
                if turn is not None and message.turn < turn:
                    field = f"messages[{index}].turn"
                    raise InputError("must not fall", path=file.name, row=number, field=field,
                                     value=message.turn)  # fmt: skip
                if opens_turn:
                    builder.fill("request", "missing: the answer that ends a turn")
                output = [part(PartKind.CALL, call.call) for call in message.tool_calls]
                first = turn is None
                bare = not any(each.kind is PartKind.SYSTEM for each in context)
                session.request(
                    opens_turn=opens_turn,
                    parts=tuple(context),
                    prompt_tokens=0 if first and bare else None,
                    output_tokens=max(1, sum(each.tokens for each in output)),
                    output_parts=output,
                    observations=observations,
                    tools=[ToolClass.RETRIEVAL] * len(output),
                    usage_source=UsageSource.INFERRED,
                    row=number,
                )
                turn = message.turn
                context += output
                observations = 0
    if turn is not None:
        builder.fill("request", "missing: the answer that ends a turn")
        if not any(each.kind is PartKind.SYSTEM for each in context):
            builder.fill("prompt_tokens", "none: the file has neither system prompt nor schemas")
    builder.finish(session)
