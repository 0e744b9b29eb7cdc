"""A predictor: its kind, the features it reads, and what it was trained on.

All kinds are one class with one interface, `score` and `learn`; both run in Rust.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.predict.spawn_records import SpawnRecords

Floats = NDArray[np.float64]

#: Penalty of the ridge regression, and the first doubt of the online kind (variance 1 / alpha).
#: Chosen on the built-in multi-agent corpora among 0.1, 1, 10, 100, out of fold; the order of
#: workers hardly depends on it (docs/predictor.md).
ALPHA = 10.0
WORD_BUCKETS = 4096
TOOL_BUCKETS = 256


class Kind(StrEnum):
    """What a predictor reads, and how it comes to its weights."""

    RIDGE = "ridge"
    """Ridge regression on everything the spawn record says."""
    COUNTS = "counts"
    """The same without the words: lengths, tools and position, for logs whose text is private."""
    LENGTH = "instruction-length"
    """The instruction's length alone: a baseline that needs no training."""
    ONLINE = "online"
    """Everything, by weights that learn from each worker that returns."""

    @classmethod
    def parse(cls, name: str) -> Kind:
        """The kind of that name.

        Raises:
            InputError: there is none.

        Example:
            >>> Kind.parse("counts") is Kind.COUNTS
            True
        """
        if name not in set(cls):
            raise InputError(f"must be one of {', '.join(cls)}", field="kind", value=name)
        return cls(name)


class FeatureSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which features there are; both numbers of buckets are powers of two up to 2**20.

    Example:
        >>> FeatureSettings(words=False).spec().width
        261
    """

    words: bool = True
    word_buckets: int = WORD_BUCKETS
    tool_buckets: int = TOOL_BUCKETS

    @classmethod
    def of(cls, kind: Kind) -> FeatureSettings:
        """What a kind reads."""
        return cls(words=kind in (Kind.RIDGE, Kind.ONLINE))

    def spec(self) -> _engine.FeatureSpec:
        """The specification as the engine takes it.

        Raises:
            InputError: a number of buckets that is no power of two, or too large.
        """
        for name in ("word_buckets", "tool_buckets"):
            buckets = getattr(self, name)
            if not (0 < buckets <= 2**20 and buckets & (buckets - 1) == 0):
                raise InputError(
                    "must be a power of two up to 1048576", field=f"features.{name}", value=buckets
                )
        return _engine.FeatureSpec(
            words=self.words, word_buckets=self.word_buckets, tool_buckets=self.tool_buckets
        )


class TrainedOn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a predictor's weights come from.

    Attributes:
        workers: worker segments that it learned from.
        workloads: how many of them by workload.
        sessions: heads of the digests of their sessions: whoever evaluates the predictor can tell
            which sessions it saw. A digest does not give its session away.
        trace_sha256: of the whole trace; empty for a predictor that was not trained.
        lifetimes_floored: lifetimes that were raised to the floor of 0.2 s.
        seed: of the delays that the trace left open.
        software: versions of what trained it.
    """

    workers: int = 0
    workloads: dict[str, int] = {}
    sessions: tuple[str, ...] = ()
    trace_sha256: str = ""
    lifetimes_floored: int = 0
    seed: int = 0
    software: str = ""


class TrainedPredictor:
    """Scores spawn records: the lower, the shorter the worker is expected to live.

    Attributes:
        kind: what it reads, and how it came to its weights.
        features: its features' settings.
        alpha: penalty that it was trained with.
        trained_on: where its weights come from.
        engine: the predictor as `lachesis._engine` and the placement layer take it.
    """

    __slots__ = ("alpha", "engine", "features", "kind", "spec", "trained_on")

    def __init__(
        self,
        kind: Kind,
        features: FeatureSettings,
        engine: _engine.Predictor,
        *,
        alpha: float = ALPHA,
        trained_on: TrainedOn | None = None,
    ) -> None:
        self.kind = kind
        self.features = features
        self.spec = features.spec()
        self.engine = engine
        self.alpha = alpha
        self.trained_on = trained_on or TrainedOn()

    def __repr__(self) -> str:
        return f"TrainedPredictor({str(self.kind)!r}, {self.trained_on.workers} workers)"

    def score(self, records: SpawnRecords) -> Floats:
        """One score a record, in natural logarithms of seconds (of tokens for the baseline)."""
        return self.engine.score(records.extract(self.spec))

    def learn(self, records: SpawnRecords, lifetime_s: Floats) -> None:
        """Take in workers that returned, in that order; only the online kind changes.

        Raises:
            InputError: a lifetime that is negative or not finite; nothing changes then.
        """
        lifetimes = np.asarray(lifetime_s, dtype=np.float64)
        wrong = ~(np.isfinite(lifetimes) & (lifetimes >= 0))
        if wrong.any():
            raise InputError(
                "must be a finite time of at least 0", field="lifetime_s",
                value=float(lifetimes[wrong][0]),
            )  # fmt: skip
        self.engine.learn(records.extract(self.spec), lifetimes)
