"""Options of ``run``: the command that they stand for, and the order in which changes apply."""

from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

from lachesis.cli.run import run
from lachesis.errors import InputError
from lachesis.presets import Settings
from lachesis.presets.settings import DEFAULT_MEMORY
from lachesis.simulation import Stopping
from lachesis.simulation.run_options import RunOptions


def test_defaults_stand_for_the_bare_command() -> None:
    assert RunOptions(traces=("tau3",)).command() == ["lachesis", "run", "tau3"]


def test_every_option_but_those_of_output_and_speed_is_in_the_command() -> None:
    told = {field.name for field in fields(RunOptions)}
    taken = {name.rstrip("_") for name in signature(run).parameters}
    of_output = {
        "json", "plot", "timeline", "timeline_interval", "trace_events", "trace_events_window",
        "quiet", "debug", "threads",
    }  # fmt: skip
    assert taken - of_output == (told - {"policies"}) | {"policy"}


def test_defaults_of_the_command_line_are_those_of_the_package() -> None:
    for name, parameter in signature(run).parameters.items():
        if name in {field.name for field in fields(RunOptions)} - {"traces", "map", "set"}:
            assert parameter.default == getattr(RunOptions(traces=()), name), name
    plan = RunOptions(traces=("a",)).plan()
    assert plan.settings == Settings.choose()
    assert str(plan.settings.memory) == DEFAULT_MEMORY
    assert plan.stopping == Stopping()


def test_the_command_gives_back_what_was_written() -> None:
    options = RunOptions(
        traces=("a.jsonl", "tau3"), memory="1/7", set=("flash.pe_cycles=3", "node.gpus=4"),
        policies=("hbf-only",), cold=True, seed=7, step_time="0.05",
    )  # fmt: skip
    assert options.command() == [
        "lachesis", "run", "a.jsonl", "tau3", "--memory", "1/7", "--set", "flash.pe_cycles=3",
        "--set", "node.gpus=4", "--step-time", "0.05", "--policy", "hbf-only", "--seed", "7",
        "--cold",
    ]  # fmt: skip


def test_file_then_named_options_then_set(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[slo]\ntpot_p99_ms = 50\nttft_p99_s = 5\n[hardware]\nstep_overhead_ms = 1\n")
    options = RunOptions(
        traces=("a",), config=str(file), tpot="70ms", step_overhead="2ms",
        set=("hardware.step_overhead_ms=3",),
    )  # fmt: skip
    settings = options.settings()
    assert settings.slo.tpot_p99_s == 0.07
    assert settings.slo.ttft_p99_s == 5.0
    assert settings.hardware.step_overhead_ms == 3.0


def test_a_limit_that_breaks_a_rule_is_named_by_its_option() -> None:
    with pytest.raises(InputError, match=r"--tpot = 100d, "):
        RunOptions(traces=("a",), tpot="100d").settings()
    with pytest.raises(InputError, match="--slo = loose, names both limits"):
        RunOptions(traces=("a",), slo="loose", ttft="1s").settings()


def test_a_cold_start_is_refused_where_nothing_could_start_aged() -> None:
    freeing = {"traces": ("tau3",), "policies": ("hbf-only", "lachesis"), "cold": True}
    with pytest.raises(InputError, match="--cold"):
        RunOptions(**freeing, load="8").plan()
    assert not RunOptions(**freeing).plan().aged
    assert not RunOptions(**{**freeing, "policies": ("hbm-first",)}, load="8").plan().aged
    assert not RunOptions(traces=("tau3",), cold=True, load="8").plan().aged
