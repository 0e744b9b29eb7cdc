"""Sessions of one agent whose context only grows, as columns: from a log to the five tables.

The same rows as `recover_session` gives, made for many sessions at once. Every input holds all that
the session's requests before it read and wrote, so that nothing dies before the session ends: there
is one segment of class `lead`, beside that of the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lachesis.traces.agent_recovery import PROMPT_BY_CACHE, PROMPT_UNKNOWN
from lachesis.traces.logged import Stripping
from lachesis.traces.quality import Quality
from lachesis.traces.schema import (
    AFTER_TYPE,
    REQUESTS,
    SEGMENTS,
    SESSIONS,
    SPANS,
    SPAWNS,
    TOKENS_MAX,
    Boundary,
    EdgeKind,
    SegmentClass,
    Status,
    UsageSource,
)
from lachesis.traces.spool import Tables

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RECOGNISED_OFF = "stripping", "recognised: off"
_SESSION_END = str(Boundary.SESSION_END)


@dataclass(frozen=True, slots=True)
class CountedRequests:
    """Requests of which only counts are known, session by session, each session's in order.

    Attributes:
        lengths: how many requests each session has, at least 1.
        input_tokens, output_tokens, reasoning_tokens: as of `SessionBuilder.request`.
        agreed_tokens: how much of an input the context held; None if only lengths tell.
        start_s, end_s, delay_s: in seconds; NaN where the log says nothing.
        opens_turn: whether a request opens one; a session's first does anyway.
        inferred: whether the input's count is no report.
        cached_tokens, model: Arrow arrays with nulls where the log says nothing.
        prompt_tokens: of each session's first input; None if only its cache hit tells.
        prompt_key: an Arrow array; of each session, null where prompts are not told apart.
    """

    lengths: Ints
    input_tokens: Ints
    output_tokens: Ints
    reasoning_tokens: Ints
    agreed_tokens: Ints | None
    start_s: Floats
    end_s: Floats
    delay_s: Floats
    opens_turn: Bools
    inferred: Bools
    cached_tokens: pa.Array
    model: pa.Array
    prompt_tokens: Ints | None
    prompt_key: pa.Array

    @property
    def starts(self) -> Ints:
        """Where each session begins."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def session(self) -> Ints:
        """Which session each request is of."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def prompts(self) -> Ints:
        """The tokens of each session's prompt."""
        given = self.prompt_tokens
        if given is None:
            given = pc.fill_null(self.cached_tokens, 0).to_numpy()[self.starts]
        return np.minimum(given, self.input_tokens[self.starts])

    def grow(self) -> Bools:
        """Which sessions only grow, and break no rule for which `recover_session` looks."""
        first = np.zeros(len(self.input_tokens), np.bool_)
        first[self.starts] = True
        held = np.roll(self.input_tokens + self.output_tokens, 1)
        fits = first | (self.input_tokens >= held)
        if self.agreed_tokens is not None:
            fits &= first | (self.agreed_tokens == held)
        fits &= (self.input_tokens <= TOKENS_MAX) & (self.output_tokens >= 1)
        fits &= self.reasoning_tokens <= self.output_tokens
        fits &= ~np.isinf(self.start_s) & ~np.isinf(self.end_s) & ~(self.end_s < self.start_s)
        model = pc.fill_null(self.model.dictionary_encode().indices, -1).to_numpy()
        most = np.maximum.reduceat(model, self.starts)[self.session]
        fits &= (model < 0) | (model == most)
        return np.logical_and.reduceat(fits, self.starts)

    def where(self, kept: Bools) -> CountedRequests:
        """Those sessions for which `kept` is true."""
        if kept.all():
            return self
        rows = kept[self.session]
        mask, whole = pa.array(rows), pa.array(kept)
        return CountedRequests(
            self.lengths[kept], self.input_tokens[rows], self.output_tokens[rows],
            self.reasoning_tokens[rows],
            None if self.agreed_tokens is None else self.agreed_tokens[rows],
            self.start_s[rows], self.end_s[rows], self.delay_s[rows], self.opens_turn[rows],
            self.inferred[rows], self.cached_tokens.filter(mask), self.model.filter(mask),
            None if self.prompt_tokens is None else self.prompt_tokens[kept],
            self.prompt_key.filter(whole),
        )  # fmt: skip


def grown_sessions(
    requests: CountedRequests, names: Sequence[str], *, workload: str, harness: str, source: str
) -> Tables:
    """The five tables of sessions, called `names`, that only grow."""
    name = pa.array(names, pa.string())
    session = requests.session
    within = np.arange(len(session)) - requests.starts[session]
    prompt = requests.prompts
    tables = {
        "sessions": _table(
            SESSIONS,
            session=name,
            workload=_same(workload, len(name)),
            harness=_same(harness, len(name)),
            source=_same(source, len(name)),
            starts_midway=_same(False, len(name)),
            ends_open=_same(False, len(name)),
        ),
        "requests": _requests(requests, name, session, within, prompt),
        "spans": _spans(requests, name, session, within, prompt),
        "segments": _segments(requests, name, prompt),
    }
    return {**tables, "spawns": SPAWNS.empty_table()}


def count_filled(requests: CountedRequests, stripping: Stripping, quality: Quality) -> None:
    """Count what `recover_session` would have filled in."""
    count = len(requests.lengths)
    if stripping == "auto":
        quality.fill(*RECOGNISED_OFF, count)  # what only grows shows no fall
    if requests.prompt_tokens is None:
        hit = int((requests.prompts > 0).sum())
        for filled, sessions in ((PROMPT_BY_CACHE, hit), (PROMPT_UNKNOWN, count - hit)):
            if sessions:
                quality.fill(*filled, sessions)


def _requests(
    requests: CountedRequests, name: pa.Array, session: Ints, within: Ints, prompt: Ints
) -> pa.Table:
    count = len(session)
    first = within == 0
    turn = np.cumsum(requests.opens_turn & ~first)
    turn -= turn[requests.starts][session]
    empty = pa.array(np.zeros(count + 1, np.int32))
    return _table(
        REQUESTS,
        session=name.take(pa.array(session)),
        request=within,
        turn=turn,
        agent=np.zeros(count, np.int32),
        model=requests.model,
        status=_same(str(Status.OK), count),
        after=_after(requests, within),
        segment=(prompt > 0)[session],
        output_tokens=requests.output_tokens,
        reasoning_tokens=requests.reasoning_tokens,
        observations=np.zeros(count, np.int32),
        tools=pa.ListArray.from_arrays(empty, pa.array([], pa.string())),
        reported_cached_tokens=requests.cached_tokens,
        start_s=_known(requests.start_s),
        end_s=_known(requests.end_s),
        usage_source=_either(requests.inferred, UsageSource.INFERRED, UsageSource.REPORTED),
    )


def _after(requests: CountedRequests, within: Ints) -> pa.Array:
    """Every request but the first waits for the one before it."""
    later = np.flatnonzero(within > 0)
    waited = requests.start_s[later] - requests.end_s[later - 1]
    delay_s = np.where(
        np.isnan(requests.delay_s[later]),
        np.maximum(0.0, waited) + 0.0,  # never -0.0
        requests.delay_s[later],
    )
    edges = pa.StructArray.from_arrays(
        [
            pa.array(within[later] - 1, pa.int32()),
            _either(requests.opens_turn[later], EdgeKind.USER, EdgeKind.TOOL),
            _known(delay_s),
        ],
        fields=list(AFTER_TYPE),
    )
    offsets = np.concatenate([[0], np.cumsum(within > 0)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), edges)


def _spans(
    requests: CountedRequests, name: pa.Array, session: Ints, within: Ints, prompt: Ints
) -> pa.Table:
    """Prompt, what the session had written besides, and what is new, as far as there is any."""
    of_prompt = prompt[session]
    held = np.roll(requests.input_tokens + requests.output_tokens, 1)
    held = np.where(within == 0, of_prompt, held)
    tokens = np.stack([of_prompt, held - of_prompt, requests.input_tokens - held], axis=1)
    segment = np.stack([np.zeros_like(session), *[of_prompt > 0] * 2], axis=1)
    written = np.zeros(tokens.shape, np.bool_)
    written[:, 0] = within == 0
    written[:, 2] = True
    there = tokens > 0
    position = np.cumsum(there, axis=1) - 1
    row = np.repeat(np.arange(len(session)), there.sum(axis=1))
    return _table(
        SPANS,
        session=name.take(pa.array(session[row])),
        request=within[row],
        position=position[there],
        segment=segment[there],
        tokens=tokens[there],
        written=written[there],
    )


def _segments(requests: CountedRequests, name: pa.Array, prompt: Ints) -> pa.Table:
    has_prompt = prompt > 0
    row = np.repeat(np.arange(len(prompt)), 1 + has_prompt)
    is_prompt = has_prompt[row] & (np.diff(row, prepend=-1) > 0)
    keys = requests.prompt_key.take(pa.array(row))
    return _table(
        SEGMENTS,
        session=name.take(pa.array(row)),
        segment=has_prompt[row] & ~is_prompt,
        **{"class": _either(is_prompt, SegmentClass.PROMPT, SegmentClass.LEAD)},
        agent=np.zeros(len(row), np.int32),
        closed_by=_same(_SESSION_END, len(row)),
        closed_after=requests.lengths[row] - 1,
        prefix_key=pc.if_else(pa.array(is_prompt), keys, pa.scalar(None, pa.string())),
    )


def _table(schema: pa.Schema, **columns: pa.Array | np.ndarray) -> pa.Table:
    return pa.Table.from_arrays(
        [
            values if isinstance(values, pa.Array) else pa.array(values.astype(_NUMPY[field.type]))
            for field in schema
            for values in (columns[field.name],)
        ],
        schema=schema,
    )


_NUMPY = {pa.int32(): np.int32, pa.int64(): np.int64, pa.bool_(): np.bool_}


def _same(value: str | bool, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)


def _known(seconds: Floats) -> pa.Array:
    return pa.array(seconds, mask=np.isnan(seconds))


def _either(which: Bools, yes: str, no: str) -> pa.Array:
    return pc.if_else(pa.array(which), pa.scalar(str(yes)), pa.scalar(str(no)))
