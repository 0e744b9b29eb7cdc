"""A policy written in Python: in the layer, in a run, and when it fails."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from lachesis.errors import InputError
from lachesis.placement import OutOfBlocks, Placement, PolicyError, PythonPolicy
from lachesis.policy import choose_policy
from lachesis.policy.python_policy import load
from lachesis.presets import Settings
from lachesis.simulation import Load, compare
from lachesis.simulation.plan import Plan, Stopping
from lachesis.traces import open_trace


class Deterministic(PythonPolicy):
    """What `lachesis-deterministic` does."""

    def __init__(self):
        self.ended = []

    def segment_opened(self, segment, node):
        self.seen = (segment, node)
        short = segment.kind in ("worker", "reviewer", "reasoning-laden")
        return "hbm" if short else "hbf"

    def boundary(self, segment, tier, blocks):
        self.ended.append((segment.kind, tier, blocks))


def test_it_is_asked_at_openings_and_told_of_ends():
    policy = Deterministic()
    placement = Placement(4, 8, policy=policy)
    placement.open("lead", "lead", session="s")
    placement.open("w", "worker", session="s")
    segment, node = policy.seen
    assert (segment.kind, segment.number, segment.score) == ("worker", 2, None)
    assert (node.hbm_free, node.hbf_free, node.hbm_total, node.gpus) == (4, 8, 4, 1)
    placement.commit("w", [0, 1])
    placement.boundary("session_end", session="s")
    assert policy.ended == [("worker", "hbm", 2), ("lead", "hbf", 0)]
    assert placement.stats().policy == "Deterministic"


def test_its_scores_come_before_the_predictors():
    class Scoring(Deterministic):
        needs_scores = True

        def spawn(self, record):
            return 3.0 if record.instruction else None

    class Predictor:
        def score(self, record):
            return 7.0

    placement = Placement(4, 8, policy=Scoring(), predictor=Predictor())
    assert placement.spawn("a", {"instruction": "x"}, session="s").value == 3.0
    assert placement.spawn("b", {}, session="s").value == 7.0
    Scoring.needs_scores = False
    assert placement.spawn("c", {}, session="s").value is None


def test_it_may_refuse_the_other_tier_and_keep_blocks():
    class Strict(Deterministic):
        keeps_past_boundaries = True

        def pressure(self):
            return "refuse"

    placement = Placement(1, 8, policy=Strict())
    placement.open("w", "worker", session="s")
    placement.commit("w", [0])
    assert placement.boundary("session_end", session="s").kept_blocks == 1
    placement.open("v", "worker", session="s")
    with pytest.raises(OutOfBlocks, match="0 free, 1 kept past their boundary"):
        placement.plan("v", 1)


class Failing(Deterministic):
    def segment_opened(self, segment, node):
        if segment.kind == "lead":
            return {}["no such key"]
        return "HBM" if segment.kind == "summary" else "hbm"

    def boundary(self, segment, tier, blocks):
        if segment.kind == "worker":
            raise ZeroDivisionError("by the\nnumber")

    def spawn(self, record):
        return "soon"


@pytest.mark.parametrize(
    ("call", "line", "message"),
    [
        (lambda p: p.open("x", "lead", session="s"), "no such key", "KeyError: 'no such key'"),
        (
            lambda p: p.open("x", "summary", session="s"),
            "def segment_opened",
            "segment_opened returned 'HBM', must be 'hbm' or 'hbf'",
        ),
        (
            lambda p: p.boundary("session_end", session="s"),
            'raise ZeroDivisionError("by the',
            "ZeroDivisionError: by the number",
        ),
        (
            lambda p: p.spawn("x", {}, session="s"),
            'def spawn(self, record):\n        return "soon"',
            "spawn returned 'soon', must be a finite number or None",
        ),
    ],
)
def test_its_errors_name_file_and_line_and_change_nothing(call, line, message):
    placement = Placement(4, 8, policy=Failing())
    placement.open("w", "worker", session="s")
    placement.commit("w", [0])
    before = placement.stats()
    with pytest.raises(PolicyError) as raised:
        call(placement)
    source = Path(__file__).read_text(encoding="utf-8")
    place = source[source.index("class Failing") :]
    number = source[: source.index("class Failing")].count("\n")
    number += place[: place.index(line)].count("\n") + 1
    assert str(raised.value) == f"{__file__}:{number}: {message}"
    assert placement.stats() == before
    placement.check()


class NoLists:
    def alloc(self, tier):
        raise NotImplementedError

    def free(self, blocks):
        raise NotImplementedError

    def free_blocks(self, tier):
        return 0


@pytest.mark.parametrize("engine", [None, NoLists()])
def test_it_cannot_call_the_layer_that_asks_it(engine):
    class Calling(Deterministic):
        def segment_opened(self, segment, node):
            self.placement.reclaim(1)
            return "hbm"

    policy = Calling()
    policy.placement = placement = Placement(4, 8, policy=policy, engine=engine)
    with pytest.raises(PolicyError, match="cannot call the placement that is asking it"):
        placement.open("w", "worker", session="s")
    assert placement.stats().live_segments == 0


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module into the working directory; returns the reference of its class."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, body: str) -> str:
        (tmp_path / f"{name}.py").write_text(
            "from lachesis.policy import PythonPolicy\n" + textwrap.dedent(body)
        )
        return f"{name}:Mine"

    return write


GOOD = """
    class Mine(PythonPolicy):
        '''Short-lived classes to HBM.'''
        def segment_opened(self, segment, node):
            short = segment.kind in ("worker", "reviewer", "reasoning-laden")
            return "hbm" if short else "hbf"
"""


def replays_under(*policies):
    plan = Plan(Settings.choose(), stopping=Stopping(turnovers=1.0))
    outcome = compare(open_trace("webarena"), plan, policies, Load.parse("8"))
    return [replay.measured for replay in outcome.replays]


def test_a_run_under_it_is_the_run_under_the_same_rules_in_rust(module):
    ours, rust = replays_under(module("policy_that_runs", GOOD), "lachesis-deterministic")
    assert ours["window"]["requests"] > 0
    assert ours["window"] == rust["window"]


def test_a_run_gives_it_the_scores_that_it_gave_at_the_spawn(module):
    body = (
        GOOD
        + """
            if segment.kind == "worker":
                assert segment.score == -12.5
                return "hbf"
            assert segment.score is None
            return "hbm" if short else "hbf"
        def spawn(self, record):
            return -12.5
    """
    )
    body = body.replace('            return "hbm" if short else "hbf"\n', "", 1)
    ours, rust = replays_under(module("policy_that_scores", body), "lachesis-deterministic")
    assert ours["window"] != rust["window"]


def test_its_error_ends_a_run_with_file_and_line(module):
    body = (
        GOOD
        + """
        def boundary(self, segment, tier, blocks):
            raise LookupError("lost")
    """
    )
    with pytest.raises(PolicyError, match=r"policy_that_fails\.py:\d+: LookupError: lost$"):
        replays_under(module("policy_that_fails", body))


def test_a_module_is_loaded_from_the_working_directory(module):
    reference = module("policy_that_loads", GOOD)
    assert load(reference).name == reference
    assert choose_policy(reference).summary == "Short-lived classes to HBM."


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (":Mine", "must be module:Class"),
        ("no_such_module:Mine", "no_such_module, no such module"),
        ("policy_of_another_kind:Other", "extends lachesis.policy.PythonPolicy"),
    ],
)
def test_what_cannot_be_loaded_is_refused(module, reference, message):
    module("policy_of_another_kind", "Other = int")
    with pytest.raises(InputError, match=message):
        load(reference)


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("policy_with_a_typo", "def broken(:", r"policy_with_a_typo\.py:2: SyntaxError"),
        ("policy_that_imports", "import no_such_thing", "ModuleNotFoundError.*no_such_thing"),
        (
            "policy_not_made",
            "class Mine(PythonPolicy):\n    def __init__(self):\n        1 / 0",
            r"policy_not_made\.py:4: ZeroDivisionError",
        ),
    ],
)
def test_errors_while_loading_name_file_and_line(module, name, body, message):
    with pytest.raises(PolicyError, match=message):
        load(module(name, body))
