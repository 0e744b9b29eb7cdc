"""When the sessions of an export start."""

import numpy as np
import pytest

from lachesis.characterise.reference_clock import join_rows
from lachesis.presets import load_latency
from lachesis.results.export import request_times
from lachesis.simulation import Load
from lachesis.traces import open_trace


@pytest.mark.parametrize("load", [1, 3, 1_000])
def test_so_many_sessions_are_under_way_and_the_next_follows_the_first_that_ends(load: int) -> None:
    trace = open_trace("tau3-airline")
    times = request_times(trace, Load("closed", load), load_latency(), seed=1)
    starts_s = np.sort(times.start_s[join_rows(trace).first_request])
    assert int((starts_s == 0.0).sum()) == min(load, len(trace))
    assert (np.diff(starts_s[load - 1 :]) > 0.0).all()
