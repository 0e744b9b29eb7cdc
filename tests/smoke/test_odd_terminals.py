"""What odd shells ask of the command line: closed or narrow output, odd names, half a seed."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cyclopts import App

from lachesis.cli.entry import build_app
from lachesis.cli.options import whole_number
from lachesis.presets.loader import read_toml

Lachesis = Callable[..., tuple[int, str, str]]


def whole_number_options() -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command with every option of it that takes one whole number."""

    def below(app: App, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        for name in app:
            if name.startswith("-"):
                continue
            command = app[name]
            if command.default_command is None:
                yield from below(command, (*words, name))
                continue
            for argument in command.assemble_argument_collection():
                if argument.hint in (int, int | None):
                    assert argument.parameter.converter is whole_number, argument.name
                    yield (*words, name), argument.name

    return below(build_app(), ())


def test_every_option_that_takes_a_whole_number_checks_it():
    found = set(whole_number_options())
    assert (("run",), "--seed") in found
    assert (("sweep",), "--jobs") in found
    assert len(found) > 12


@pytest.mark.parametrize("option", ["--seed", "--threads"])
@pytest.mark.parametrize("value", ["1.5", "1.0", "1e3", "x", "", "nan"])
def test_a_fraction_is_not_rounded(value, option, lachesis_here: Lachesis):
    code, out, err = lachesis_here("run", "tau3-airline", f"{option}={value}")
    assert (code, out) == (2, "")
    assert f"{option} = " in err
    assert "must be a whole number" in err
    assert err.count("\n") == 1


def started(words: list[str], folder: Path, **given) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "lachesis", *words], cwd=folder, timeout=60, check=False, **given
    )


def test_nobody_listens(tmp_path: Path):
    def close() -> None:
        os.close(1)
        os.close(2)

    assert started(["presets", "slo"], tmp_path, preexec_fn=close).returncode == 0
    assert started(["presets", "shoes"], tmp_path, preexec_fn=close).returncode == 2


def test_a_terminal_of_no_width_is_written_to(tmp_path: Path):
    told = started(
        ["presets", "slo"], tmp_path, capture_output=True, env={**os.environ, "COLUMNS": "0"}
    )
    assert b"tight" in told.stdout


def test_names_that_are_no_utf8_are_read_and_written(lachesis_here: Lachesis, tmp_path: Path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    log = '{"session": "a", "input_tokens": 400, "output_tokens": 40}\n'
    (folder / "log.jsonl").write_text(log)
    (folder / "c.toml").write_text("[flash]\npe_cycles = 500\n")
    assert read_toml(folder / "c.toml")
    (tmp_path / "s.toml").write_text(
        '[grid]\ntrace = "tau3-airline"\nload = 8\nturnovers = 2\npolicy = "hbf-only"\n'
    )
    said = f"{folder}/"
    run = ("run", f"{said}log.jsonl", "--load", "1", "--turnovers", "1", "--quiet")
    outputs = (
        "--json", f"{said}j.json", "--timeline", f"{said}t.parquet", "--timeline-interval", "1s",
    )  # fmt: skip
    assert lachesis_here(*run, "--config", f"{said}c.toml", *outputs) == (0, "", "")
    assert lachesis_here("report", f"{said}j.json", "-o", f"{said}r.html", "--quiet")[0] == 0
    for _ in range(2):
        assert lachesis_here("sweep", "s.toml", "-o", f"{said}out", "--quiet") == (0, "", "")
    assert lachesis_here("report", f"{said}out", "-o", f"{said}o.html", "--quiet") == (0, "", "")
    traced = ("trace", "import", f"{said}log.jsonl", "-o", f"{said}x.trace", "--quiet")
    assert lachesis_here(*traced) == (0, "", "")
    assert lachesis_here("trace", "validate", f"{said}x.trace", "--quiet")[0] == 0
