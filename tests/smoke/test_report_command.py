"""``lachesis report`` as users call it: on a folder, on a run's JSON, and on what is neither."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import results_directories

Lachesis = Callable[..., tuple[int, str, str]]


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    return results_directories.sweep(tmp_path / "swept", policies=("hbm-first", "hbf-only"))


def test_a_report_on_a_folder_with_figures(
    lachesis_here: Lachesis, swept: Path, tmp_path: Path
) -> None:
    code, out, err = lachesis_here("report", "swept", "-o", "page.html", "--figures", "figures")
    assert (code, err) == (0, "")
    assert out.startswith("2 runs in 1 cell: trace tau3-airline; model llama-4-maverick;")
    assert "Wrote page.html (" in out
    assert "Drew 6 files in figures." in out
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert sorted(path.suffix for path in (tmp_path / "figures").iterdir()) == [
        ".png", ".png", ".png", ".svg", ".svg", ".svg",
    ]  # fmt: skip


def test_a_report_on_the_json_of_a_run(lachesis_here: Lachesis, tmp_path: Path) -> None:
    words = ("tau3-airline", "--load", "8", "--turnovers", "2", "--quiet", "--json", "run.json")
    assert lachesis_here("run", *words)[0] == 0
    code, out, err = lachesis_here("report", "run.json", "-o", "page.html", "--quiet")
    assert (code, out, err) == (0, "", "")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<title>run – Lachesis report</title>" in page
    assert "2 runs in 1 cell" in page
    # Calibrated values stand there with their sources.
    assert '<th scope="row">hardware.step_overhead_ms</th>' in page


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("absent", "-o", "page.html"), "absent: no such folder or file"),
        ((".", "-o", "page.html"), "holds no results: no manifest.json"),
        (("swept", "-o", "page.pdf"), "a report's name ends in .html"),
        (("swept", "-o", "none/page.html"), "no folder none"),
        (("swept", "-o", "page.html", "--figures", "swept/manifest.json"), "is no folder"),
        (("swept",), "requires an argument"),
    ],
)
def test_mistakes_take_one_line(
    lachesis_here: Lachesis, swept: Path, words: tuple[str, ...], told: str
) -> None:
    code, out, err = lachesis_here("report", *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert told in err
    assert not list(swept.parent.glob("*.html"))


def test_no_page_overwrites_its_source(lachesis_here: Lachesis, tmp_path: Path) -> None:
    (tmp_path / "run.html").write_text("{}", "utf-8")
    code, _, err = lachesis_here("report", "run.html", "-o", "run.html")
    assert code == 2
    assert "would overwrite what is read" in err


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys; from lachesis.cli.entry import execute; execute(['report', '--help']);"
        "heavy = {'pyarrow', 'numpy', 'jinja2', 'plotly'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
