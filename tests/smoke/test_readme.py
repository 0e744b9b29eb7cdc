"""Every command of the README runs as it stands, on small logs in the places that it names."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(), flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line[2:].split("  #")[0].strip() for line in lines if line.startswith("$ ")]


@pytest.fixture(scope="module")
def home(tmp_path_factory, fixtures_dir):
    """A home with the logs that the README speaks of."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(
        fixtures_dir / "traces" / "claude_code" / "projects", home / ".claude" / "projects"
    )
    (home / "results").mkdir()
    (blocks,) = re.findall(r"```toml\n(# splits.toml\n.*?)```", README.read_text(), re.DOTALL)
    # At a small load, and short: the search for the load is tested elsewhere.
    small = blocks.replace("turnovers = 10", 'turnovers = 2\nload = "8"')
    assert small != blocks
    (home / "splits.toml").write_text(small)
    shutil.copy(fixtures_dir / "traces" / "tau2.json", home / "results/airline.json")
    rows = ["trace_id,input_tokens,output_tokens,timestamp"]
    rows += [
        f"t{s},{500 + 300 * r},{50 + r},{1e9 + 60 * s + 10 * r}" for s in range(4) for r in range(5)
    ]
    (home / "requests.csv").write_text("\n".join(rows) + "\n")
    return home


def test_the_readme_has_the_commands_that_this_test_thinks_of():
    words = {shlex.split(command)[1] for command in commands()}
    assert words == {
        "run", "trace", "presets", "reproduce", "predictor", "sweep", "report", "find",
    }  # fmt: skip


def test_every_command_runs(home):
    for command in commands():
        words = shlex.split(command.replace("~", str(home)))
        assert words.pop(0) == "lachesis"
        if "largest-load" in words:
            words += ["--precision", "20%", "--turnovers", "1"]
        elif words[0] in ("run", "find"):
            words += ["--turnovers", "2"]
            # The search for the load is tested elsewhere.
            words += [] if "--load" in words else ["--load", "8"]
        done = subprocess.run(
            [sys.executable, "-m", "lachesis", *words],
            cwd=home, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout, command
    assert (home / "multi-agent.png").stat().st_size > 10_000
    assert (home / "mine.trace").is_dir()
    assert (home / "result.json").is_file()
    assert (home / "splits" / "manifest.json").is_file()
    assert (home / "splits.html").stat().st_size > 1_000_000
