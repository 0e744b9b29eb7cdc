"""Scores of a policy in Python in a run: its own, and where it has none the predictor's."""

import numpy as np
import pytest

from lachesis.policy import choose_policy
from lachesis.policy.python_policy import PythonPolicy
from lachesis.presets import load_latency
from lachesis.simulation import LoadedTrace
from lachesis.traces import open_trace

OWN, PREDICTED = 3.0, 7.0


class EverySecond(PythonPolicy):
    needs_scores = True

    def __init__(self):
        self.asked = 0

    def segment_opened(self, segment, node):
        return "hbf"

    def spawn(self, record):
        self.asked += 1
        return OWN if self.asked % 2 else None


class Alone(EverySecond):
    needs_scores = False


@pytest.mark.parametrize(("name", "found"), [("EverySecond", {OWN, PREDICTED}), ("Alone", {OWN})])
def test_the_predictor_fills_in_where_the_policy_asks_for_it(name, found, monkeypatch):
    loaded = LoadedTrace(open_trace("multi-agent"))
    monkeypatch.setattr(
        loaded, "_ranked", lambda *_: np.full(loaded.trace.segments.num_rows, PREDICTED)
    )
    scores = loaded.scores_for(choose_policy(f"{__name__}:{name}"), load_latency())
    assert set(scores[~np.isnan(scores)].tolist()) == found
