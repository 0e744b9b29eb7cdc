"""Reader of Magentic-One logs: an orchestrator that delegates to named agents, as text.

**Files.** An object with `history`, a list of entries with `role` and `content`; a session of one
turn. The log has neither tokens nor times nor what each call was given: all counts come from the
text (inferred), all delays are drawn.

**The orchestrator** is the lead. Its requests are the entries of `Orchestrator (thought)` that a
model wrote: the plan, each update of the ledger, each new plan (a plan's facts and the plan itself
were two calls of which the log has one entry; counted), and the final answer. As the harness's
published code has it, a ledger update is asked with the task, the plan, and the instructions and
results so far, and is not kept: the next input lacks it, so its context ends there (a reset).
A new plan ends the context of everyone: it is a compaction of the lead, and later delegations
start agents anew.

**Delegates** are workers. `Orchestrator (-> NAME)` spawns NAME, or resumes it; the entry by NAME is
its result, which the next request of the lead takes. The instruction is the entry's text, the
context what was broadcast to all before it (plan, instructions and results so far). Their inner
rounds are not in the log: a delegation is one request. What a surfer did stands in its result's
first paragraph; the rest is the page that it saw, an observation. `ComputerTerminal` runs code and
asks no model: it is a tool of the lead.

**Left out**, each counted: entries that no model wrote (`Next speaker`, `Stalled`, `Request
satisfied`, termination), warnings in their text, delegations without a result. **Not in the log:**
system prompts, the text of the harness's own questions, screenshots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import Part, PartKind, content_key
from lachesis.traces.readers.json_rows import decoded_document
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.schema import ToolClass, UsageSource
from lachesis.traces.session_builder import SessionBuilder

HARNESS: Final = "magentic-one"
_HISTORY: Final = re.compile(rb'"history"\s*:\s*\[')
_ORCHESTRATOR: Final = re.compile(rb'"(?:role|source|name)"\s*:\s*"Orchestrator \(')
_DELEGATION: Final = re.compile(r"Orchestrator \(-> ([^)]+)\)$")
_THOUGHT: Final = "Orchestrator (thought)"
_PLAN: Final = "Initial plan:"
_NEW_PLAN: Final = "New plan:"
_LEDGER: Final = "Updated Ledger:"
_FINAL: Final = re.compile(r"^(FINAL ANSWER:.*?)(?:\nSCENARIO\.PY COMPLETE|\Z)", re.S | re.M)
#: What Python printed into the log between the entries' lines.
_WARNING: Final = re.compile(r"^/\S+\.py:\d+: \w*Warning: .*(?:\n  .*)?\n?", re.M)
_TERMINALS: Final = frozenset({"ComputerTerminal", "Executor"})
_SURFERS: Final = frozenset({"WebSurfer", "FileSurfer"})
_HUMANS: Final = frozenset({"human", "user"})


class Entry(msgspec.Struct):
    """An entry of the history."""

    role: str
    content: str | None = None


class Log(msgspec.Struct):
    """A document."""

    history: list[Entry]
    question: str | None = None
    question_id: Any = msgspec.field(default=None, name="question_ID")


_LOG: Final = msgspec.json.Decoder(Log)


class MagenticOneReader:
    """Magentic-One logs; see the module for what is taken from where."""

    name = "magentic-one"
    joins_files = False
    description = (
        "Magentic-One logs: the orchestrator as lead, delegates as workers with instruction and "
        "context, new plans as compaction; all counts from the text, all delays drawn"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether it is an object whose history has entries of an orchestrator."""
        head = file.start
        if not head.startswith(b"{") or file.ending == ".jsonl":
            return False
        return _HISTORY.search(head) is not None and _ORCHESTRATOR.search(head) is not None

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every document as a session; raises `InputError` for a broken one."""
        for file in files:
            log = decoded_document(file, _LOG)
            _Dialogue(file, log, builder, options).push()


READER: Final = MagenticOneReader()


class _Dialogue:
    """One session.

    `_shared` is what every agent has been told since the last plan; `_pending` the delegation that
    waits for its result.
    """

    def __init__(
        self, file: SourceFile, log: Log, builder: TraceBuilder, options: ReadOptions
    ) -> None:
        self._file = file
        self._log = log
        self._builder = builder
        self._count_tokens = options.count_tokens
        self._session: SessionBuilder = builder.session(
            str(log.question_id or file.path.stem),
            workload=HARNESS,
            harness=HARNESS,
            source=file.name,
            stripping="off",
            recorded_delays=False,
        )
        self._shared: list[tuple[Part, str]] = []
        self._plans = 0
        self._lead: int | None = None  # the lead's latest request
        self._delegates: dict[str, str] = {}
        self._returned: str | None = None
        self._results = 0
        self._pending: tuple[str, str] | None = None

    def push(self) -> None:
        """Take all entries in order."""
        entries = self._log.history
        final = False
        for position, entry in enumerate(entries):
            row = f"history[{position}]"
            text = _WARNING.sub("", entry.content or "").strip()
            if (delegation := _DELEGATION.match(entry.role)) is not None:
                self._delegation(delegation[1], text)
            elif entry.role == _THOUGHT:
                self._thought(text, row, _next_delegate(entries, position))
            elif entry.role in _HUMANS:
                self._tell(PartKind.USER, text)
            elif entry.role.startswith("Orchestrator"):
                final = self._end(text, row) or final
            else:
                self._result(entry.role, text, row)
        self._drop_pending()
        self._session.ends_open = not final
        if self._lead is None:
            self._builder.skip(self._file.name, "no request in it")
        else:
            self._builder.finish(self._session)

    def _thought(self, text: str, row: str, delegate: str | None) -> None:
        if text.startswith(_LEDGER):
            self._drop_pending()
            tools = []
            if delegate is not None:
                tools = [ToolClass.ENVIRONMENT if delegate in _TERMINALS else ToolClass.SPAWN]
            self._ask(text, row, tools)
        elif text.startswith((_PLAN, _NEW_PLAN)):
            self._drop_pending()
            new = text.startswith(_NEW_PLAN) and self._lead is not None
            self._ask(text, row, [], compacts=new)
            self._builder.fill("request", "a plan's facts and the plan are one entry of two calls")
            if new:
                del self._shared[1:]  # the task stays
                self._shared = [
                    (self._part(PartKind.SUMMARY, told), told) for _, told in self._shared
                ]
                self._delegates.clear()
            self._plans += 1
            self._tell(PartKind.SUMMARY if new else PartKind.ANSWER, text)
        else:
            self._builder.ignore("entry that no model wrote")

    def _ask(self, text: str, row: str, tools: list[ToolClass], *, compacts: bool = False) -> None:
        """Push a request of the lead."""
        output = self._part(PartKind.ANSWER, text)
        self._lead = self._session.request(
            parts=tuple(part for part, _ in self._shared),
            output_tokens=max(1, output.tokens),
            output_parts=[output],
            observations=self._results,
            tools=tools,
            usage_source=UsageSource.INFERRED,
            compacts=compacts,
            row=row,
        )
        if self._returned is not None:
            self._session.returns(self._returned, to=self._lead)
        self._returned, self._results = None, 0

    def _delegation(self, name: str, text: str) -> None:
        self._drop_pending()
        self._pending = (name, text)

    def _drop_pending(self) -> None:
        """A delegation that nobody answered still was told to everyone."""
        if self._pending is not None:
            self._session.exclude("delegation without a result")
            self._tell(PartKind.USER, self._pending[1])
            self._pending = None

    def _result(self, name: str, text: str, row: str) -> None:
        if self._pending is None or self._pending[0] != name or self._lead is None:
            self._builder.drop("result that no delegation asked for")
            self._drop_pending()
            self._tell(PartKind.OBSERVATION, text)
            return
        instruction = self._pending[1]
        self._pending = None
        context = "\n\n".join(told for _, told in self._shared)
        self._tell(PartKind.USER, instruction)
        self._results = 1
        if name in _TERMINALS:
            self._tell(PartKind.OBSERVATION, text)
            return
        said, _, page = text.partition("\n\n") if name in _SURFERS else (text, "", "")
        agent = self._delegate(name, instruction, context)
        output = self._part(PartKind.ANSWER, said)
        self._session.request(
            agent=agent,
            parts=tuple(part for part, _ in self._shared),
            output_tokens=max(1, output.tokens),
            output_parts=[output],
            tools=[ToolClass.ENVIRONMENT] if name in _SURFERS else [],
            usage_source=UsageSource.INFERRED,
            row=row,
        )
        self._returned = agent
        self._shared.append((output, said))
        if page:
            self._tell(PartKind.OBSERVATION, page)

    def _delegate(self, name: str, instruction: str, context: str) -> str:
        """Spawn or resume the delegate; returns its key."""
        lead = self._lead
        assert lead is not None, "Invariant: results are taken only after a request of the lead"
        known = self._delegates.get(name)
        if known is not None:
            self._session.resume(known, resumed_by=lead)
            return known
        agent = name if self._plans <= 1 else f"{name} of plan {self._plans}"
        while agent in self._session.spawns:
            agent += "'"
        self._delegates[name] = agent
        self._session.spawn(
            agent,
            spawned_by=lead,
            agent_type=name,
            instruction=instruction,
            context=context,
            instruction_tokens=self._count_tokens(instruction),
            context_tokens=self._count_tokens(context),
        )
        return agent

    def _end(self, text: str, row: str) -> bool:
        """Take the termination; whether it brings the final answer."""
        self._drop_pending()
        found = _FINAL.search(text)
        if found is None or not self._shared:
            self._builder.ignore("entry that no model wrote")
            return False
        self._ask(found[1].strip(), row, [])
        return True

    def _tell(self, kind: PartKind, text: str) -> None:
        self._shared.append((self._part(kind, text), text))

    def _part(self, kind: PartKind, text: str) -> Part:
        return Part(content_key(text), self._count_tokens(text), kind)


def _next_delegate(entries: Sequence[Entry], position: int) -> str | None:
    """Name the agent to which the thought at `position` leads, if the next step delegates."""
    for entry in entries[position + 1 :]:
        found = _DELEGATION.match(entry.role)
        if found is not None:
            return found[1]
        if entry.role != _THOUGHT or (entry.content or "").startswith((_LEDGER, _NEW_PLAN)):
            return None
    return None
