"""Cases worked out by hand are replayed by both simulators."""

from __future__ import annotations

from functools import partial

import pytest

from . import census, engine
from .by_hand import Replay, replay_with


@pytest.fixture(params=[census, engine], ids=["oracle", "engine"])
def replay(request: pytest.FixtureRequest) -> Replay:
    return partial(replay_with, request.param.simulate)
