"""Reader of ATIF trajectories (Harbor's Agent Trajectory Interchange Format, v1.0 to v1.8).

**Requests.** One for each agent step that a model call stands behind. `prompt_tokens` is the whole
input, cached tokens included; `cached_tokens` is kept as the provider's own hit;
`completion_tokens` is the output, and `metrics.extra.reasoning_tokens`, else the weight of
`reasoning_content`, its reasoning. Outputs are taken as reported, except for Claude Code's, whose
placeholders came along in the conversion and are recounted as in its own format (`agent_log`).
Steps without metrics, in a trajectory that has none at all, get input and output inferred from
their texts.

**Sub-agents** come in three shapes: interleaved steps with `extra.agent_id` (or only
`extra.is_sidechain`), as Harbor's Claude Code converter writes them; trajectories embedded in
`subagent_trajectories`; and files, by `subagent_trajectory_ref`. A reference is resolved by
trajectory id, session id or path, among embedded trajectories, then among the files that were
given, then beside the referring file. The step that holds the reference spawned the sub-agent
(a system step: the call before it), and the next call has its result. Files that nobody refers
to are sessions of their own.

**Continuations** (`continued_trajectory_ref`) are read on as the same session. Steps with
`is_copied_context` are what an earlier trajectory holds already.

**Turns, notifications, interrupts and compaction** are told apart by the text of user steps, as
for Claude Code; a system step that reports a summarisation makes the next user step a summary.

**Left out**, each counted: trajectories of Claude Code whose transcript is part of the same input
(a Harbor trial keeps both), copied steps, steps without a model call (`llm_call_count` 0), steps
that repeat the calls of an earlier one, steps without usage among others with usage. A step that
stands for several calls is one request, and the others are counted as filled in.

**What the conversion from Claude Code loses**, seen on sessions that exist in both forms:

- rows that are no message: queue operations, progress, snapshots, hook summaries and the
  `compact_boundary` marker. None is a request; the compaction is still seen from its summary.
- the mark on messages that the harness wrote itself (`isMeta`): such a step counts as typed here
  unless its text gives it away. It opens no further turn where it stands beside a typed one.
- all times but the first block's of a message and those of user messages. So `end_s` is when the
  first block was complete; `start_s` is known only where nothing but user messages was waited
  for, and what a sub-agent's return waited for is not; delays of tools are drawn at replay, and
  delays of users include the rest of the answer before.
- results without any text. They are restored, and counted, where a later call shows that every
  tool call had its result.
- `parentUuid`, so a rewind is seen only from the fall in input tokens, and files' own links
  between a compaction and the agent that it compacts (taken to be the lead's).

Usage, calls, models, tools, agents, spawns and returns, classes and boundaries are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.agent_family import SessionLogs, place_compactions
from lachesis.traces.readers.agent_log import AgentLog, Meter, meter_for, settle_usage
from lachesis.traces.readers.agent_session import push_session
from lachesis.traces.readers.atif_document import Trajectory, load, refs_of, results_of
from lachesis.traces.readers.atif_steps import LEAD_LOG, Steps
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.session_names import name_key

_SIGN: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-')
_CLAUDE_CODE: Final = "claude-code"
_BASE_NAME: Final = "trajectory.json"


class AtifReader:
    """ATIF trajectories; see the module for what is taken from where."""

    name = "atif"
    joins_files = True
    description = (
        "ATIF v1 (Harbor) trajectories with interleaved, embedded or referenced sub-agents and "
        "continuations; copied steps left out, Claude Code's placeholder outputs recounted"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether the head names an ATIF schema version."""
        return file.head.lstrip()[:1] == b"{" and _SIGN.search(file.head) is not None

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push the sessions of all files; raises `InputError` for a broken document."""
        library = _Library(files, options.left_out)
        # A Harbor trial keeps the transcript beside the trajectory that was made of it.
        transcripts = builder.finished(_CLAUDE_CODE)
        for document in library.roots():
            if any(name_key(name) in transcripts for name in document.ids):
                builder.skip(document.file.name, "its session was read from the transcript")
                continue
            _Session(document, library, builder, meter_for(options.count_tokens)).push()


class _Document:
    """A trajectory: a file's, decoded when it is needed, or one embedded in another's.

    `refers_to` lists every file or trajectory that it refers to and does not hold itself.
    """

    def __init__(self, file: SourceFile, embedded: Trajectory | None = None) -> None:
        self.file = file
        self._embedded = embedded
        trajectory = self.trajectory()
        self.ids = {name for name in (trajectory.trajectory_id, trajectory.session_id) if name}
        self.refers_to = list(_outward(trajectory))

    def trajectory(self) -> Trajectory:
        """Return the trajectory; a file's is decoded anew, so that a library stays small."""
        return self._embedded if self._embedded is not None else load(self.file)


def _outward(trajectory: Trajectory) -> Iterator[str]:
    if trajectory.continued_trajectory_ref:
        yield trajectory.continued_trajectory_ref
    embedded = trajectory.subagent_trajectories or []
    held = {name for inner in embedded for name in (inner.trajectory_id, inner.session_id)}
    for step in trajectory.steps:
        for result in results_of(step):
            for ref in refs_of(result):
                named = [ref.trajectory_path, ref.trajectory_id, ref.session_id]
                if held.isdisjoint(name for name in named if name):
                    yield from (name for name in named if name)
    for inner in embedded:
        yield from _outward(inner)


class _Library:
    """The documents that were given, and those beside them that they refer to."""

    def __init__(self, files: Sequence[SourceFile], left_out: frozenset[Path]) -> None:
        self._left_out = left_out
        self._documents: dict[Path, _Document] = {}
        for file in files:
            self._documents.setdefault(file.path.resolve(), _Document(file))
        self._given = list(self._documents.values())

    def roots(self) -> list[_Document]:
        """Return the given documents that no other refers to; all, if they refer in a circle."""
        referred: set[int] = set()
        for document in self._given:
            for name in document.refers_to:
                found = self.find((name,), document)
                if found is not None and found is not document:
                    referred.add(id(found))
        roots = [document for document in self._given if id(document) not in referred]
        return roots or self._given

    def find(self, names: tuple[str, ...], source: _Document) -> _Document | None:
        """Find what `source` refers to: by path, then by an id that only one document has."""
        for name in names:
            found = self._by_path(name, source)
            if found is not None:
                return found
        for name in names:
            matches = [
                document
                for document in self._given
                if name in document.ids and document.file is not source.file
            ]
            if len(matches) == 1:
                return matches[0]
        return None

    def _by_path(self, name: str, source: _Document) -> _Document | None:
        if not name.endswith(".json"):
            return None
        folder, own = source.file.path.parent, source.file.path.name
        candidates = [name]
        base = name.rsplit("/", 1)[-1]
        if own.endswith(_BASE_NAME) and base.startswith(_BASE_NAME.removesuffix("json")):
            # A copy under another name keeps its references: `x.trajectory.json` → `x.` + theirs.
            candidates.append(own[: -len(_BASE_NAME)] + base)
        for candidate in candidates:
            path = folder / candidate
            known = self._documents.get(path.resolve())
            if known is not None:
                return known
            if path.is_file() and path.resolve() not in self._left_out:
                prefix = source.file.name[: len(source.file.name) - len(own)]
                document = _Document(source.file.beside(path, prefix + candidate))
                self._documents[path.resolve()] = document
                return document
        return None


class _Session:
    """One session: a root document, its continuations, and the sub-agents of both."""

    def __init__(
        self, document: _Document, library: _Library, builder: TraceBuilder, meter: Meter
    ) -> None:
        self.document = document
        self.library = library
        self.builder = builder
        self.meter = meter
        trajectory = document.trajectory()
        self.harness = trajectory.agent.name
        self.logs = SessionLogs(
            name=trajectory.session_id or trajectory.trajectory_id or document.file.path.stem,
            source=document.file.name,
            harness=self.harness,
        )
        self.read: list[_Document] = []

    def push(self) -> None:
        """Read everything that belongs to the session and push it."""
        steps = self._steps(self.document, "")
        self.logs.lead = steps.logs.pop(LEAD_LOG, None)
        self._adopt(steps)
        if self.logs.lead is None and not self.logs.agents:
            self.builder.skip(self.document.file.name, "no request in it")
            return
        place_compactions(self.logs)
        trusted = self.harness != _CLAUDE_CODE
        for log in [self.logs.lead, *self.logs.agents.values()]:
            if log is not None:
                settle_usage(log, trust_reports=trusted)
        push_session(self.builder, self.logs, self.meter, self.harness)

    def _steps(self, document: _Document, prefix: str) -> Steps:
        """Read a document and what continues it, with the sub-agents that they refer to."""
        self.read.append(document)
        trajectory = document.trajectory()
        steps = Steps(trajectory, name=document.file.name, meter=self.meter, prefix=prefix)
        held = list(trajectory.subagent_trajectories or ())
        while trajectory.continued_trajectory_ref:
            following = self.library.find((trajectory.continued_trajectory_ref,), document)
            if following is None or following in self.read:
                break
            document, trajectory = following, following.trajectory()
            self.read.append(document)
            steps.append(trajectory)
            held.extend(trajectory.subagent_trajectories or ())
        for reason, count in sorted(steps.excluded.items()):
            self.builder.exclude(reason, count)
        if steps.aggregated:
            how = "one step stands for several calls; the first is a request"
            self.builder.fill("request", how, steps.aggregated)
        if steps.restored:
            self.builder.fill("observations", "an empty result left out of the log", steps.restored)
        self._resolve(steps, held, document)
        return steps

    def _resolve(self, steps: Steps, held: list[Trajectory], document: _Document) -> None:
        unclaimed = list(held)
        for key, names in steps.references.items():
            found: _Document | None = None
            for embedded in unclaimed:
                if {embedded.trajectory_id, embedded.session_id} & set(names):
                    found = _Document(document.file, embedded)
                    unclaimed.remove(embedded)
                    break
            if found is None:
                found = self.library.find(names, document)
            if found is not None and found not in self.read:
                self._adopt_referenced(key, found)
        for number, embedded in enumerate(unclaimed):
            key = embedded.trajectory_id or embedded.session_id or f"embedded-{number + 1}"
            self._adopt_referenced(key, _Document(document.file, embedded))

    def _adopt_referenced(self, key: str, document: _Document) -> None:
        steps = self._steps(document, f"{key}/")
        log = steps.logs.pop(LEAD_LOG, None)
        if log is not None:
            log.agent_type = steps.agent_name
            self.logs.agents[_renamed(log, key)] = log
        self._adopt(steps)

    def _adopt(self, steps: Steps) -> None:
        self.logs.links.update(steps.links)
        for log in steps.logs.values():
            self.logs.agents[log.agent] = log


def _renamed(log: AgentLog, key: str) -> str:
    log.agent = key
    return key


READER: Final = AtifReader()
