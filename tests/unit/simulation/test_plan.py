"""What a run at a given load depends on."""

from lachesis.presets import Settings
from lachesis.results.measures import run_object
from lachesis.simulation import Load, LoadedTrace, Plan, Stopping, compare
from lachesis.simulation.plan import SESSION_TPOT_S
from lachesis.traces import open_trace

#: What an SLO says, and the verdict by it.
OF_THE_SLO = {"slo", "slo_tpot_p99_s", "slo_ttft_p99_s", "meets_slo", "warnings", "wall_s"}


def test_at_a_given_load_a_run_does_not_depend_on_the_slo() -> None:
    trace = LoadedTrace(open_trace("tau3-airline"))
    runs = {}
    for slo in ("tight", "loose"):
        plan = Plan(Settings.choose(slo=slo), stopping=Stopping(turnovers=3.0))
        told = compare(trace, plan, ["hbm-first", "lachesis-deterministic"], Load("closed", 24))
        runs[slo] = [run_object(told, replay) for replay in told.replays]
    for tight, loose in zip(runs["tight"], runs["loose"], strict=True):
        differ = {name for name in tight if tight[name] != loose[name]}
        assert {"slo", "slo_tpot_p99_s"} <= differ <= OF_THE_SLO


def test_the_duration_of_a_session_is_reckoned_by_the_default_slo() -> None:
    assert Settings.choose().slo.tpot_p99_s == SESSION_TPOT_S
