"""What a workload's specification file says: every value with where it comes from.

One TOML file a workload lies in ``data/specifications``. Each value is a table
``{value = ..., source = "..."}``; the source is a publication, a measurement, or says
"chosen to meet ..." with the figure that the value was tuned for, or "chosen freely".
Unknown keys, missing keys and empty sources are refused.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import msgspec

from lachesis.errors import InputError
from lachesis.traces.generator.draws import Floats, stratified_lognormal

DATA_DIRECTORY = Path(__file__).parent / "data"
SPECIFICATION_DIRECTORY = DATA_DIRECTORY / "specifications"

T = TypeVar("T")
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Correlation = Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Whole = Annotated[int, msgspec.Meta(ge=0)]


class Sourced(msgspec.Struct, Generic[T], forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A value and where it comes from."""

    value: T
    source: Annotated[str, msgspec.Meta(min_length=4)]


class Counts(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Table 3's row: what the corpus meets exactly."""

    sessions: Sourced[Count]
    requests: Sourced[Count]
    tokens_written: Sourced[Count]
    tokens_processed: Sourced[Count] | None = None


class Tail(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The highest ``share`` of the values is raised by one factor, which the mean decides."""

    share: Share
    bulk_sigma: NotNegative
    """Spread of the logarithm before the tail is raised."""


class Spread(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A law by its median and mean (tokens): a log-normal, or one whose top share is raised."""

    median: Sourced[Positive]
    mean: Sourced[Positive]
    tail: Sourced[Tail] | None = None

    def values(self, length: int) -> Floats:
        """``length`` values of the law, ascending."""
        shape = {}
        if self.tail is not None:
            shape = {
                "bulk_sigma": self.tail.value.bulk_sigma,
                "tail_share": self.tail.value.share,
            }
        return stratified_lognormal(self.median.value, self.mean.value, length, **shape)


class ToolShare(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One tool class and the share of calls that go to it."""

    name: str
    share: Share


class TurnsPerSession(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """How many turns a session has: a clipped log-normal."""

    total: Sourced[Count] | None = None
    """All turns of the workload; absent when they follow from tokens written and Figure 4(b)."""
    minimum: Sourced[Count]
    maximum: Sourced[Count]
    sigma: Sourced[NotNegative]
    """Spread of the logarithm of a session's turns."""


class Temporal(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A single agent in a multi-turn session whose harness strips reasoning at turn end."""

    turns: TurnsPerSession
    laden_tokens: Spread
    stripped_tokens: Spread
    laden_stripped_correlation: Sourced[Correlation]
    """Of the normal scores of a turn's laden and stripped tokens."""
    session_correlation: Sourced[Share]
    """Share of the variance of a turn's laden score that its session explains."""
    last_turn_shift: Sourced[float]
    """Added to the laden score of a session's last turn (negative: last turns are small)."""
    rounds_correlation: Sourced[Correlation]
    """Of the rounds of a turn with its stripped tokens."""
    rounds_sigma: Sourced[NotNegative]
    """Spread of the logarithm of rounds a turn."""
    user_tokens: Spread
    observation_share: Sourced[Share]
    """Observations' share of what a turn with tool calls carries beyond the user's text."""
    shared_prompt_tokens: Sourced[Count]
    tools: Sourced[list[ToolShare]]
    last_turn_carried_share: Sourced[Share] | None = None
    """Of a last turn's laden tokens, what is no reasoning; absent: as in any other turn."""
    reasoning_tokens: Spread | None = None
    """Reasoning of a turn with tool calls, at most; what else the turn does not carry forward are
    observations. Absent: all that a turn does not carry is reasoning."""
    first_round_reasoning_share: Sourced[Share] | None = None
    """Of a turn's reasoning, what it does before its first tool call; absent: an even share."""
    own_prompt_sigma: Sourced[NotNegative] | None = None
    """Spread of the logarithm of a session's own tool set; absent where prompts are shared."""


class Lead(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Agent 0 of a multi-agent session."""

    share_of_writes: Sourced[Share]
    output_share: Sourced[Share]
    """Outputs' share of what the lead writes (the rest: the task, and what sub-agents return)."""
    task_share: Sourced[Share]
    """The task text's share of the lead's input."""
    own_rounds: Sourced[NotNegative]
    """Mean of rounds a session in which the lead works alone."""
    session_sigma: Sourced[NotNegative]
    """Spread of the logarithm of a session's lead writes per round."""
    prompt_tokens: Sourced[Whole]


class Worker(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Sub-agents that carry out a delegated task."""

    per_session: Sourced[Positive]
    """Mean number of workers."""
    per_session_sigma: Sourced[NotNegative]
    per_session_maximum: Sourced[Count]
    concurrent: Sourced[list[Share]]
    """Shares of the delegations that start 1, 2, ... workers at once."""
    rounds_sigma: Sourced[NotNegative]
    rounds_maximum: Sourced[Count]
    session_correlation: Sourced[Share]
    """Share of the variance of log rounds that the session explains."""
    output_share: Sourced[Share]
    """Outputs' share of what workers write."""
    output_sigma: Sourced[NotNegative]
    """Spread of a worker's mean log output a round."""
    observation_sigma: Sourced[NotNegative]
    """Spread of a worker's mean log observation."""
    round_sigma: Sourced[NotNegative]
    """Spread between the rounds of one worker, of outputs and of observations."""
    observation_trend: Sourced[float]
    """Log observation size falls (< 0) or rises with the worker's rounds, per unit of log."""
    parallel_calls: Sourced[Share]
    """Share of rounds that make a second tool call."""
    instruction_tokens: Spread
    context_tokens: Spread
    prompt_tokens: Sourced[Whole]
    tools: Sourced[list[ToolShare]]


class WorkerTask(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the workers' spawn records talk about."""

    objects: Sourced[list[str]]
    tools: Sourced[list[str]]
    optional_tools: Sourced[list[str]]


class Reviewer(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One sub-agent after each worker, given a share of the finished trace as its prompt."""

    trace_share: Sourced[Share]
    trace_share_sigma: Sourced[NotNegative]
    output_tokens: Spread
    prompt_tokens: Sourced[Whole]


class Structural(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A lead that delegates to workers, each of which a reviewer follows."""

    lead: Lead
    worker: Worker
    task: WorkerTask
    reviewer: Reviewer


class Specification(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One workload."""

    name: str
    harness: str
    benchmark: str
    seed: Whole
    counts: Counts
    temporal: Temporal | None = None
    structural: Structural | None = None


@cache
def names() -> tuple[str, ...]:
    """Names of the workloads that have a specification, sorted.

    >>> "tau3-airline" in names()
    True
    """
    return tuple(sorted(path.stem for path in SPECIFICATION_DIRECTORY.glob("*.toml")))


@cache
def load(name: str) -> Specification:
    """Read the specification of a workload.

    >>> load("tau3-airline").counts.sessions.value
    58
    """
    if name not in names():
        raise InputError(f"must be one of {', '.join(names())}", field="corpus", value=name)
    return read(SPECIFICATION_DIRECTORY / f"{name}.toml")


def read(path: Path) -> Specification:
    """Read a specification file; raises ``InputError`` naming the file and the key."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
        specification = msgspec.convert(document, Specification)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(str(error), path=path.name) from error
    except OSError as error:
        raise InputError(str(error.strerror), path=path) from error
    if (specification.temporal is None) == (specification.structural is None):
        raise InputError("must have exactly one of [temporal] and [structural]", path=path.name)
    return specification
