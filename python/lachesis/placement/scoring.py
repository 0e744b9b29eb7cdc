"""Scores at the spawn, and lessons at the return, from whatever predictor the layer was given."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from lachesis.errors import InputError
from lachesis.placement.protocols import Name
from lachesis.placement.records import SpawnRecord
from lachesis.predict import Kind, SpawnRecords, TrainedPredictor


class Predictor(Protocol):
    """What scores spawn records: lower lives shorter."""

    def score(self, record: SpawnRecord) -> float:
        """The rank key of a worker's predicted lifetime."""
        ...


class Scorer:
    """One interface to a trained predictor, to any object with `score(record)`, and to none.

    A predictor that learns (the online kind, or any object with `learn(record, lifetime_s)`) hears
    of each worker that returned, with the seconds that it lived on the layer's clock.
    """

    def __init__(self, predictor: Predictor | TrainedPredictor | None) -> None:
        if predictor is not None and not callable(getattr(predictor, "score", None)):
            raise InputError("must have a method score(record)", field="predictor", value=predictor)
        self._predictor: Any = predictor
        self._is_trained = isinstance(predictor, TrainedPredictor)
        self.learns = (
            predictor.kind is Kind.ONLINE
            if isinstance(predictor, TrainedPredictor)
            else callable(getattr(predictor, "learn", None))
        )
        self._spawned: dict[Name, tuple[SpawnRecord, float]] = {}

    def score(self, record: SpawnRecord) -> float | None:
        """The rank key of a record; None without a predictor.

        Raises:
            InputError: the predictor returned no finite number.
        """
        if self._predictor is None:
            return None
        score = self._predictor.score(_columns(record) if self._is_trained else record)
        if self._is_trained:
            score = score[0]
        try:
            value = float(score)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise InputError("must be a finite number", field="predictor.score", value=score)
        return value

    def spawned(self, segment: Name, record: SpawnRecord, now_s: float) -> None:
        """Note a worker, for the lesson at its return."""
        self._spawned[segment] = (record, now_s)

    def returned(self, segments: Iterable[Name], now_s: float) -> None:
        """Have the predictor learn from workers that ended."""
        for segment in segments:
            record, spawned_s = self._spawned.pop(segment, (None, 0.0))
            if record is None:
                continue
            lifetime_s = max(now_s - spawned_s, 0.0)
            if self._is_trained:
                self._predictor.learn(_columns(record), np.array([lifetime_s]))
            else:
                self._predictor.learn(record, lifetime_s)


def _columns(record: SpawnRecord) -> SpawnRecords:
    return SpawnRecords(
        instruction=[record.instruction],
        context=[record.context],
        instruction_tokens=[record.instruction_tokens],
        context_tokens=[record.context_tokens],
        tools=[list(record.tools)],
        position=[record.position or 0],
    )
