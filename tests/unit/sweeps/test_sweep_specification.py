"""What a specification may say, and how each mistake in one is told."""

import os
import socket
from pathlib import Path

import pytest

from lachesis.errors import InputError
from lachesis.sweeps import Specification, expand, on_threads, sweep
from lachesis.sweeps.ray_execution import on_ray

BAD = {
    "not TOML": ("grid = [", "is not valid TOML"),
    "nothing to run": ('title = "x"', "names nothing to run"),
    "unknown table": ('[grids]\ntrace = "tau3"', "grids, unknown key; did you mean grid?"),
    "an axis outside of a table": ('trace = "tau3"', "trace, belongs into a table"),
    "a preset value outside of a table": (
        '"flash.pe_cycles" = 3\n[grid]\ntrace = "tau3"',
        "flash.pe_cycles, belongs into a table",
    ),
    "no trace": ("[grid]\nload = 8", "[grid]: must hold the key trace"),
    "an empty axis": ('[grid]\ntrace = "tau3"\nload = []', "load = [], must hold at least one"),
    "an unknown axis": (
        '[grid]\ntrace = "tau3"\npolicys = "lachesis"',
        "policys, unknown key; did you mean policy?",
    ),
    "policies for policy": ('[grid]\ntrace = "tau3"\npolicies = ["x"]', "did you mean policy?"),
    "set for a key": ('[grid]\ntrace = "tau3"\nset = ["a=b"]', "write the key of a preset value"),
    "an unknown preset value": (
        '[grid]\ntrace = "tau3"\n"flash.pe_cyclos" = 3',
        "flash.pe_cyclos, unknown key; did you mean pe_cycles?",
    ),
    "an unknown part": ('[grid]\ntrace = "tau3"\n"flush.x" = 3', "flush.x, unknown key"),
    "a preset value of the wrong type": (
        '[grid]\ntrace = "tau3"\n"flash.pe_cycles" = "many"',
        "flash.pe_cycles = many, must be int",
    ),
    "a preset value out of range": (
        '[grid]\ntrace = "tau3"\n"flash.pe_cycles" = [3, 0]',
        "flash.pe_cycles = 0, must be int >= 1",
    ),
    "a preset value without effect": (
        '[grid]\ntrace = "tau3"\n"flash.dies" = 4',
        "flash.dies = 4, has no effect",
    ),
    "an unknown model": (
        '[grid]\ntrace = "tau3"\nmodel = "llama4"',
        "model = llama4, no such preset; did you mean llama-4-maverick?",
    ),
    "an unknown policy": ('[grid]\ntrace = "tau3"\npolicy = "hbm"', "policy = hbm, must be one of"),
    "a split that is none": ('[grid]\ntrace = "tau3"\nmemory = "2/7"', "memory = 2/7, must be one"),
    "a split that suits no GPU of its grid": (
        '[grid]\ntrace = "tau3"\nhardware = ["rubin-hbf", "b200"]\nmemory = ["2/6", "3/3"]',
        "memory = 3/3, must be one",
    ),
    "a model that fits no memory of the sweep": (
        '[grid]\ntrace = "tau3"\nmodel = "kimi-k2"\nmemory = "8/0"\nhardware = "h100-sxm"\n'
        '"hardware.slots" = 8',
        "memory = 8/0, weights of kimi-k2 take",
    ),
    "a load that is none": ('[grid]\ntrace = "tau3"\nload = "many"', "load = many, must be a numb"),
    "a load of the wrong type": ('[grid]\ntrace = "tau3"\nload = true', "load = true, must be a n"),
    "a seed of the wrong type": ('[grid]\ntrace = "tau3"\nseed = "1"', "seed = 1, must be a whole"),
    "a seed out of range": ('[grid]\ntrace = "tau3"\nseed = -1', "seed = -1, must be from 0"),
    "a value twice": ('[grid]\ntrace = "tau3"\nload = [8, "8"]', "load = 8, comes twice"),
    "a joined trace twice": (
        '[grid]\ntrace = [["a", "b"], ["a", "b"]]',
        "trace = a, b, comes twice",
    ),
    "a range without an end": (
        '[grid]\ntrace = "tau3"\nseed = {from = 1}',
        "must be {from = N, to = M}",
    ),
    "a range downwards": ('[grid]\ntrace = "tau3"\nseed = {from = 3, to = 1}', "must go upwards"),
    "a range of what has none": (
        '[grid]\ntrace = "tau3"\nturnovers = {from = 1, to = 3}',
        "turnovers.from, unknown key",
    ),
    "an SLO named twice": ('[grid]\ntrace = "tau3"\nslo = "tight"\ntpot = "60ms"', "slo = tight"),
    "an overhead of a constant step": (
        '[grid]\ntrace = "tau3"\nstep_time = 0.03\nstep_overhead = "3ms"',
        "step_overhead = 3ms, has no effect beside --step-time",
    ),
    "a default without effect": (
        '[defaults]\nload = 4\n[grid]\ntrace = "tau3"\nload = 8',
        "[defaults]: load, has no effect",
    ),
    "a run twice": (
        '[grid]\ntrace = "tau3"\nload = 8\n[[run]]\ntrace = "tau3"\nload = 8\nmemory = "2/6"',
        "[[run]] 1: the run of hbm-first on tau3 at load 8, seed 1, comes twice",
    ),
    "a run that is no list": ('[run]\ntrace = "tau3"', "run, must be a list of tables"),
    "a title that is no text": ('title = 3\n[grid]\ntrace = "tau3"', "title = 3, must be a text"),
    "an interval without unit": (
        'timeline_interval = "60"\n[grid]\ntrace = "tau3"',
        "timeline_interval = 60, must be a time",
    ),
    "an interval that is no text": (
        'timeline_interval = 60\n[grid]\ntrace = "tau3"',
        "timeline_interval = 60, must be a time",
    ),
    "too many runs": (
        '[grid]\ntrace = "tau3"\nseed = {from = 1, to = 2000}\nload = {from = 1, to = 2000}',
        "asks for 8,000,000 runs",
    ),
    "two formats": ('[grid]\ntrace = "tau3"\nformat = ["otel", "vllm"]', "must be one value"),
    "a file that is not there": (
        '[grid]\ntrace = "tau3"\nconfig = "absent.toml"',
        "absent.toml: cannot be read",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_told_in_one_line_with_its_place(name: str, tmp_path: Path) -> None:
    text, said = BAD[name]
    file = tmp_path / "spec.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        expand(Specification.load(file))
    message = str(caught.value)
    assert said in message
    assert "\n" not in message
    assert message.startswith(str(tmp_path))


def of(**axes: object) -> Specification:
    return Specification.parse({"grid": {"trace": "tau3-airline", **axes}})


def test_the_axis_written_last_varies_fastest() -> None:
    cells = expand(of(memory=["1/7", "2/6"], load=[8, 16]))
    assert [(str(cell.plan.settings.memory), cell.load.sessions) for cell in cells] == [
        ("1/7", 8), ("1/7", 16), ("2/6", 8), ("2/6", 16),
    ]  # fmt: skip
    assert [cell.number for cell in cells] == [0, 1, 2, 3]


def test_defaults_hold_for_every_table_that_does_not_say_otherwise() -> None:
    asked = Specification.parse(
        {
            "defaults": {"trace": "tau3-airline", "turnovers": 3, "load": 8},
            "grid": {"memory": ["1/7", "2/6"]},
            "run": [{"load": 16}, {"memory": "1/7", "load": 4, "policy": "hbf-only"}],
        }
    )
    cells = expand(asked)
    assert [cell.load.sessions for cell in cells] == [8, 8, 16, 4]
    assert {cell.plan.stopping.turnovers for cell in cells} == {3.0}
    assert cells[3].policies == ("hbf-only",)


def test_policies_of_one_cell_may_stand_in_two_tables() -> None:
    asked = Specification.parse(
        {
            "defaults": {"trace": "tau3-airline", "load": 8},
            "run": [{"policy": "hbm-first"}, {"policy": "hbf-only", "memory": "2/6"}],
        }
    )
    (cell,) = expand(asked)
    assert cell.policies == ("hbm-first", "hbf-only")


def test_an_id_tells_what_is_run_and_not_how_it_is_written() -> None:
    (bare,) = expand(of(load=8))
    (spelled,) = expand(of(load="8", memory="2/6", seed=1, slo="tight", turnovers=40))
    (other,) = expand(of(load=8, seed=2))
    assert bare.id == spelled.id
    assert bare.id != other.id
    assert bare.run_id("hbm-first") != bare.run_id("hbf-only")


def test_overrides_name_what_no_column_shows() -> None:
    (cell,) = expand(
        of(load="each", **{"flash.pe_cycles": 30_000}, flash="sandisk-gen2", cold=True)
    )
    assert set(cell.overrides) == {
        "flash=sandisk-gen2", "cold=true", "load=each", "flash.pe_cycles=30000",
    }  # fmt: skip


def test_preset_values_may_be_nested_tables() -> None:
    nested = Specification.parse(
        {"grid": {"trace": "tau3-airline", "flash": {"pe_cycles": [1, 2]}, "load": 8}}
    )
    flat = of(**{"flash.pe_cycles": [1, 2]}, load=8)
    assert [cell.id for cell in expand(nested)] == [cell.id for cell in expand(flat)]


def test_a_combination_that_cannot_be_run_is_a_cell_that_says_why() -> None:
    cells = expand(
        of(hardware=["rubin-hbf", "b200"], memory=["2/6", "8/0"], load=["auto", 8], seed=[1, 2])
    )
    assert len(cells) == 16
    assert len({cell.id for cell in cells}) == 16
    for cell in cells:
        settings = cell.plan.settings
        lacking = settings.hardware.name == "b200" and str(settings.memory) == "2/6"
        assert (cell.infeasible is not None) == lacking
        if lacking:
            assert cell.infeasible is not None
            assert "b200 has no HBF" in cell.infeasible
            assert cell.first_alike is None
    # Searches start from a cell that can be run.
    searched = [cell for cell in cells if cell.load.is_searched and not cell.infeasible]
    assert all(cell.first_alike is not None for cell in searched)


def test_splits_of_gpus_with_other_slots_may_stand_in_one_grid() -> None:
    cells = expand(of(**{"hardware.slots": [4, 8]}, memory=["1/3", "1/7"], load=8))
    assert [cell.infeasible is None for cell in cells] == [True, False, False, True]
    assert cells[1].infeasible is not None
    assert "must be one of 1/3, 2/2, 3/1, 4/0, 4/4* for 4 slots" in cells[1].infeasible


def test_files_are_looked_for_beside_the_specification(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "tight"\ntpot_p99_ms = 80\n')
    file = tmp_path / "spec.toml"
    file.write_text('[grid]\ntrace = ["logs/a.jsonl", "tau3-airline"]\nslo = "mine.toml"\nload = 8')
    first, second = expand(Specification.load(file))
    assert first.source.names == (str(tmp_path / "logs/a.jsonl"),)
    assert first.trace == "logs/a.jsonl"
    assert second.source.names == ("tau3-airline",)
    assert first.plan.settings.slo.tpot_p99_s == 0.08


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = " + "[" * 50_000 + "]" * 50_000, "nested too deeply"),
        ("[grid]\nflash = " + "{a = " * 3_000 + "1" + "}" * 3_000, "nested too deeply"),
        ("[grid]\nseed = " + "9" * 5_000, "cannot be read"),
    ],
    ids=["lists", "tables", "digits"],
)
def test_a_file_that_python_cannot_take_is_refused(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=told) as caught:
        Specification.load(file)
    assert "sweep.toml" in str(caught.value)


def test_a_pipe_is_no_specification(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "sweep.toml")
    with pytest.raises(InputError, match="is no regular file"):
        Specification.load(tmp_path / "sweep.toml")


def test_the_longest_axes_are_counted_and_refused() -> None:
    longest = {"from": 1, "to": 999_999}  # looking at every pair would take hours
    with pytest.raises(InputError, match="asks for"):
        of(trace="tau3-airline", seed=longest, load=longest)


@pytest.mark.parametrize(
    "axes",
    [
        {"trace": "none/log.jsonl"}, {"trace": "a\0b/log.jsonl"},
        {"trace": "tau3-airline", "format": "table"},
        {"trace": "tau3-airline", "map": {"session": "trace_id"}},
    ],
)  # fmt: skip
def test_a_trace_that_cannot_be_read_leaves_no_folder(
    axes: dict[str, object], tmp_path: Path
) -> None:
    with pytest.raises(InputError):
        sweep(of(load=8, **axes), tmp_path / "out", on_threads(1))
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError):
        sweep(of(load=8, **axes), tmp_path / "mine", on_threads(1))
    assert (tmp_path / "mine").is_dir()


@pytest.mark.parametrize("address", ["", " ", "nowhere", "host:0", "host:99999999", "host:x"])
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.raises(InputError, match="HOST:PORT"):
        on_ray(address)


def test_an_address_where_nothing_listens_is_refused() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(InputError, match="no Ray cluster there"):
            on_ray(f"127.0.0.1:{taken.getsockname()[1]}")
