"""Writes small Claude Code transcripts for tests."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

_START = datetime(2026, 3, 1, 9, tzinfo=UTC)
START_S = _START.timestamp()


class Transcript:
    """Rows of one file; every row follows the one before it unless told otherwise."""

    def __init__(self, session: str = "s1", agent: str | None = None) -> None:
        self.session = session
        self.agent = agent
        self.rows: list[dict] = []
        self.last: str | None = None

    def row(self, kind: str, at: float, **fields) -> str:
        name = fields.pop("uuid", f"{self.agent or self.session}-{len(self.rows)}")
        row = {
            "parentUuid": fields.pop("parent", self.last),
            "isSidechain": self.agent is not None,
            "sessionId": self.session,
            "version": "2.1.0",
            "type": kind,
            "uuid": name,
            "timestamp": (_START + timedelta(seconds=at)).isoformat().replace("+00:00", "Z"),
            **fields,
        }
        if self.agent is not None:
            row["agentId"] = self.agent
        self.rows.append(row)
        self.last = name
        return name

    def user(self, text, at: float, **fields) -> str:
        return self.row("user", at, message={"role": "user", "content": text}, **fields)

    def result(self, call: str, text: str, at: float, noted=None, **fields) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        if noted is not None:
            fields["toolUseResult"] = noted
        return self.user([block], at, **fields)

    def call(
        self,
        name: str,
        at: float,
        blocks: list[dict],
        *,
        given: tuple[int, int, int] = (1, 0, 0),
        output=1,
        stop: str | None = "end_turn",
        model: str = "claude-test-1",
        **fields,
    ) -> str:
        """One line a block, a second apart, each with the message's usage.

        `given`: uncached, cache-writing and cache-reading input tokens. `output`: one count, or
        one for each line.
        """
        counts = output if isinstance(output, list) else [output] * len(blocks)
        for number, (block, count) in enumerate(zip(blocks, counts, strict=True)):
            message = {
                "model": model,
                "id": name,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": stop,
                "usage": {
                    "input_tokens": given[0],
                    "cache_creation_input_tokens": given[1],
                    "cache_read_input_tokens": given[2],
                    "output_tokens": count,
                },
            }
            self.row("assistant", at + number, message=message, **fields)
        return self.rows[-1]["uuid"]

    def lines(self) -> list[str]:
        return [json.dumps(row) for row in self.rows]

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in self.lines()))
        return path


def text(value: str) -> dict:
    return {"type": "text", "text": value}


def thinking(value: str) -> dict:
    return {"type": "thinking", "thinking": value, "signature": "x"}


def use(identity: str, name: str = "Bash", **arguments) -> dict:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def requests(trace, session=None):
    rows = trace.requests.to_pylist()
    return [row for row in rows if session is None or row["session"] == session]


def inputs(trace):
    """Input tokens of every request, from the spans."""
    found = Counter()
    for span in trace.spans.to_pylist():
        found[span["session"], span["request"]] += span["tokens"]
    return [found[row["session"], row["request"]] for row in trace.requests.to_pylist()]


def closures(trace):
    """Class and closing boundary of every segment."""
    return [(row["class"], row["closed_by"]) for row in trace.segments.to_pylist()]


def one_call(log: Transcript, at: float = 1.0, **options) -> None:
    log.user("mend it", 0.0)
    log.call("m1", at, [text("done")], given=(10, 90, 0), output=20, **options)


def with_subagent(tmp_path, *, layout="new", noted=True, background=False):
    """The main file of a session with one sub-agent, which is written beside it."""
    log = Transcript()
    log.user("mend it", 0.0)
    spawn = use("t1", "Task", prompt="look around", subagent_type="Explore", description="d")
    log.call("m1", 1.0, [spawn], given=(100, 0, 0), output=90, stop="tool_use")
    agent = Transcript(agent="a1")
    agent.user("look around", 1.5)
    agent.call("n1", 3.0, [use("u1")], given=(40, 0, 0), output=60, stop="tool_use")
    agent.result("u1", "x", 4.0)
    agent.call("n2", 6.0, [text("found")], given=(130, 0, 0), output=7)
    about = {"agentId": "a1", "status": "completed"} if noted else None
    if background:
        about = {"agentId": "a1", "isAsync": True, "status": "async_launched"}
        log.result("t1", "Async agent launched successfully.\nagentId: a1", 2.0, about)
        log.call("m2", 3.0, [text("meanwhile")], given=(250, 0, 0), output=9)
        log.user(
            "<task-notification><task-id>a1</task-id><status>completed</status>"
            "</task-notification>",
            6.5,
        )
    else:
        log.result("t1", "found", 6.5, about)
    log.call("m3", 8.0, [text("done")], given=(300, 0, 0), output=5)
    main = log.write(tmp_path / "s1.jsonl")
    place = tmp_path / "s1" / "subagents" if layout == "new" else tmp_path
    agent.write(place / "agent-a1.jsonl")
    return main
