"""Reader of LMCache agent traces: JSONL, one request a line, with its prompt and answer as text.

`timestamp` (microseconds since the epoch, when the request came in: lines are written when it is
over, so they stand out of time order), `input`, `output`, `session_id`. There are no token counts:
all are counted from the text, and every request is flagged inferred.

**Two shapes.** Chat prompts are rendered (`user: …`, `assistant: …`, `system: …`). Others
(mini-SWE-agent) hold only what the user's side said: the answers between are missing, though the
model must have seen them. Where such a prompt begins with the whole of the one before, the answer
between is put back in, which is counted (`input_tokens`).

**Context**: two prompts of one agent agree up to the first character that differs; the answer
before agrees too if it stands next, or was put back.

**Agents**: prompts that begin with the same `system:` message are one agent's. The first prompt's
agent is the lead; the others were spawned by its last request before them, and return to its next
(`timed_agents`). **Turns** cannot be told from observations: a session is one turn, counted.
**Times**: no request has an end, so latencies are drawn.

**Left out**, counted: requests whose prompt was not logged (empty `input`), or with no output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD, content_key
from lachesis.traces.readers.context_pieces import ContextPieces, RequestParts, common_start
from lachesis.traces.readers.json_head import begins_with, words_in_head
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.timed_agents import TimedAgent, TimedRequest, push_timed
from lachesis.traces.record_groups import NameNumbers, RecordGroups
from lachesis.traces.schema import Role, UsageSource
from lachesis.traces.session_builder import SessionBuilder

_DESCRIPTION: Final = __doc__ or ""
_SIGNS: Final = frozenset({b"timestamp", b"input", b"output", b"session_id"})
_RENDERED: Final = re.compile(r"(system|user|assistant|tool): ")
_SYSTEM: Final = re.compile(r"system: (.*?)(?=\n\n(?:user|assistant|tool): |\Z)", re.DOTALL)
_LABEL: Final = re.compile(r"\s*(?:assistant: )?")


class _Logged(NamedTuple):
    """A line whose prompt is kept as what it adds to the agent's prompt on the line before."""

    timestamp_us: int
    row: int
    agent: str
    shared: int
    added: str
    output: str


class _Row(msgspec.Struct):
    timestamp: Annotated[int, msgspec.Meta(ge=0, le=10**17)]
    input: str
    output: str
    session_id: str


_DECODER: Final = msgspec.json.Decoder(_Row)
_ENCODER: Final = msgspec.msgpack.Encoder()
_NUMBERED: Final = msgspec.msgpack.Decoder(tuple[int, _Row])


class LmcacheReader:
    """LMCache agent traces."""

    name = "lmcache"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """JSONL whose first line has exactly the four fields."""
        if not begins_with(file, b"{"):
            return False
        first = file.start.partition(b"\n")[0]
        # A prompt may hold JSON of its own, in which quotes are escaped.
        return words_in_head(SourceFile(file.place, file.name, first)) == _SIGNS or (
            len(first) == len(file.head) and first.startswith(b'{"timestamp"')
            and b'"input": "' in first[:80]
        )  # fmt: skip

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every session of every file."""
        for file in files:
            names = NameNumbers()
            sessions = RecordGroups(options.scratch)
            dropped: list[str] = []
            for number, _, row in decoded_lines(file, _DECODER, dropped):
                if not row.input:
                    builder.drop("request whose prompt was not logged")
                elif not row.output:
                    builder.exclude("request without output")
                else:
                    sessions.append(names.of(row.session_id), _ENCODER.encode((number, row)))
            for reason in dropped:
                builder.drop(reason)
            if not len(names):
                builder.skip(file.name, "holds no request with prompt and output")
            for _, records in sessions:
                session = _Session(file, builder)
                for record in records:
                    session.add(*_NUMBERED.decode(record))
                session.push(options.count_tokens)


READER = LmcacheReader()


class _Session:
    """One session: its lines, and from them its agents' contexts."""

    def __init__(self, file: SourceFile, builder: TraceBuilder) -> None:
        self.file = file
        self.name = ""
        self.builder = builder
        self.lines: list[_Logged] = []
        self.latest: dict[str, str] = {}

    def add(self, number: int, row: _Row) -> None:
        """Take a line; keeps of its prompt only what the agent's last one did not have."""
        self.name = row.session_id
        system = _SYSTEM.match(row.input)
        agent = "" if system is None else f"prompt-{content_key(system[1]):016x}"
        shared = common_start(self.latest.get(agent, ""), row.input)
        self.latest[agent] = row.input
        self.lines.append(
            _Logged(row.timestamp, number, agent, shared, row.input[shared:], row.output)
        )

    def push(self, count_tokens: Callable[[str], int]) -> None:
        """Push the requests in order of time."""
        prompts = sorted(self._prompts(), key=lambda pair: (pair[0].timestamp_us, pair[0].row))
        lead = prompts[0][0].agent
        agents: dict[str, _Agent] = {}
        keys: list[tuple[_Logged, _Agent, int]] = []
        for line, prompt in prompts:
            agent = agents.setdefault(line.agent, _Agent(count_tokens))
            keys.append((line, agent, agent.add(prompt, line.output)))
        contexts = {name: agent.contexts() for name, agent in agents.items()}
        requests: list[TimedRequest] = []
        known: dict[Hashable, TimedAgent] = {}
        for line, agent, index in keys:
            key: Hashable = LEAD if line.agent == lead else line.agent or "without-system-prompt"
            if key != LEAD and key not in known:
                first = agent.inputs[0]
                known[key] = TimedAgent(record={"role": Role.WORKER, "instruction_tokens": first})
            requests.append(self._request(line, key, agent, index, contexts[line.agent][index]))
        restored = sum(agent.restored for agent in agents.values())
        if restored:
            self.builder.fill("input_tokens", "answers that the prompt leaves out, put back in",
                              restored)  # fmt: skip
        self.builder.fill("turn", "none in the log: a session is one turn")

        def open_session(orphan: Hashable | None) -> SessionBuilder:
            return self.builder.session(
                self.name if orphan is None else f"{self.name}/{orphan}",
                workload=Path(self.file.name).parent.name or "lmcache",
                harness="lmcache",
                source=self.file.name,
                stripping="off",
                orphan=orphan is not None,
            )

        for session in push_timed(open_session, requests, known):
            self.builder.finish(session)

    def _prompts(self) -> Iterator[tuple[_Logged, str]]:
        latest: dict[str, str] = {}
        for line in self.lines:
            prompt = latest.get(line.agent, "")[: line.shared] + line.added
            latest[line.agent] = prompt
            yield line, prompt

    def _request(
        self, line: _Logged, key: Hashable, agent: _Agent, index: int, context: RequestParts
    ) -> TimedRequest:
        return TimedRequest(
            key,
            line.timestamp_us / 1e6,
            None,
            {
                "parts": context.parts,
                "output_parts": context.output_parts,
                "prompt_tokens": None if index else agent.prompt_tokens,
                "prefix_key": agent.prompt_key if not index else None,
                "output_tokens": agent.outputs[index],
                "usage_source": UsageSource.INFERRED,
                "row": line.row,
            },
        )


class _Agent:
    """One agent's prompts in order of time, as lengths, and up to where each agrees."""

    def __init__(self, count_tokens: Callable[[str], int]) -> None:
        self.count_tokens = count_tokens
        self.pieces = ContextPieces()
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.restored = 0
        self.prompt_tokens = 0
        self.prompt_key: str | None = None
        self._prompt = ""
        self._output = ""
        # Where in the last prompt's text answers were put back, and the tokens up to there.
        self._marks: list[tuple[int, int]] = [(0, 0)]

    def add(self, prompt: str, output: str) -> int:
        """Take the next prompt and answer; returns their number."""
        shared = common_start(self._prompt, prompt)
        index = len(self.inputs)
        agreed = 0
        marks = [mark for mark in self._marks if mark[0] <= shared] if index else [(0, 0)]
        if index == 0:
            self._note_prompt(prompt)
        elif shared < len(self._prompt):
            agreed = marks[-1][1] + self.count_tokens(prompt[marks[-1][0] : shared])
        else:
            agreed = self.inputs[-1]
            label = _LABEL.match(prompt, shared)
            start = label.end() if label is not None else shared
            if prompt.startswith(self._output, start):
                agreed += self.outputs[-1]
                # The label before the answer is counted with what comes after it.
                label_tokens = self.count_tokens(prompt[shared:start])
                marks.append((start + len(self._output), agreed + label_tokens))
            elif shared < len(prompt) and _RENDERED.match(prompt) is None:
                self.restored += 1
                agreed += self.outputs[-1]
                marks.append((shared, agreed))
        tokens = marks[-1][1] + self.count_tokens(prompt[marks[-1][0] :])
        tokens = max(1, tokens, agreed)
        self.inputs.append(tokens)
        self.outputs.append(max(1, self.count_tokens(output)))
        self.pieces.add_agreed(tokens, self.outputs[-1], min(agreed, tokens))
        self._prompt, self._output, self._marks = prompt, output, marks
        return index

    def contexts(self) -> list[RequestParts]:
        """Every request's parts."""
        return self.pieces.parts(self.prompt_tokens)

    def _note_prompt(self, prompt: str) -> None:
        system = _SYSTEM.match(prompt)
        if system is not None:
            self.prompt_tokens = self.count_tokens(system[0])
            self.prompt_key = f"{content_key(system[0]):016x}"
