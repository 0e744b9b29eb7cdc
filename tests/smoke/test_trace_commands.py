"""``trace stats``, ``show``, ``filter``, ``merge`` and ``reproduce`` as users start them."""

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from lachesis.results.stats_document import stats_schema
from lachesis.traces import Trace

Lachesis = Callable[..., tuple[int, str, str]]


def width(text: str) -> int:
    return max(len(line) for line in text.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "stats"),
        ("trace", "show"),
        ("trace", "filter"),
        ("trace", "merge"),
        ("reproduce",),
    ],
)
def test_help_fits_a_terminal(words: tuple[str, ...], lachesis_here: Lachesis) -> None:
    code, out, err = lachesis_here(*words, "--help")
    assert (code, err) == (0, "")
    assert width(out) <= 80


def test_stats_prints_writes_and_draws(lachesis: Lachesis, tmp_path: Path) -> None:
    words = ("trace", "stats", "tau3-airline", "--json", "s.json", "--plots", "figures")
    code, out, err = lachesis(*words, cwd=tmp_path)
    assert (code, err) == (0, "")
    assert width(out) <= 80
    assert "reasoning-laden" in out
    assert "a prompt that sessions" in out
    document = json.loads((tmp_path / "s.json").read_text())
    jsonschema.validate(document, stats_schema())
    assert document["provenance"]["command"] == "lachesis trace stats tau3-airline --seed 0"
    assert list(document["provenance"]["corpora"]) == ["tau3-airline"]
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "lifetimes.png", "read_write_ratios.png", "tokens_per_turn.png",
    }  # fmt: skip


def test_stats_of_logs_and_json_on_standard_output(
    small_log: Path, lachesis_here: Lachesis
) -> None:
    code, out, err = lachesis_here("trace", "stats", str(small_log), "--json", "-")
    assert code == 0
    document = json.loads(out)
    jsonschema.validate(document, stats_schema())
    assert document["workloads"][0]["requests"] == 5
    assert "T_norm" in err
    again = lachesis_here("trace", "stats", str(small_log), "--json", "-", "--quiet")
    assert (again[0], again[1], again[2]) == (0, out, "")


def test_show_lists_sessions_and_shows_one(small_log: Path, lachesis_here: Lachesis) -> None:
    code, out, err = lachesis_here("trace", "show", str(small_log))
    assert (code, err) == (0, "")
    assert "Name a session" in out
    code, out, err = lachesis_here("trace", "show", str(small_log), "a", "--json", "a.json")
    assert (code, err) == (0, "")
    assert width(out) <= 80
    assert out.startswith("Session a\n")
    document = json.loads(Path("a.json").read_text())
    assert document["session"]["requests"] == 3
    code, out, _ = lachesis_here("trace", "show", "tau3-airline")
    assert "38 more; --all lists them." in out
    code, out, _ = lachesis_here("trace", "show", "tau3-airline", "--all")
    assert "more;" not in out
    assert out.count("tau3-airline-") == 58


def test_filter_and_merge_write_traces(small_log: Path, lachesis_here: Lachesis) -> None:
    code, out, err = lachesis_here(
        "trace", "filter", str(small_log), "--min-requests", "3", "-o", "long.trace"
    )
    assert (code, err) == (0, "")
    assert "Kept 1 of 2 sessions; left out: 1 × too few requests." in " ".join(out.split())
    kept = Trace.load("long.trace")
    assert kept.sessions["session"].to_pylist() == ["a"]
    assert "at least 3 requests" in kept.source
    code, out, err = lachesis_here(
        "trace", "merge", "long.trace", str(small_log), "-o", "both.trace"
    )
    assert (code, err) == (0, "")
    both = Trace.load("both.trace")
    assert sorted(both.sessions["session"].to_pylist()) == ["a", "a~2", "b"]
    assert "1 session has the content of another." in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("trace stats", "name at least one trace"),
        ("trace stats nope", "no such built-in corpus"),
        ("trace stats tau3-airline --seed -1", "--seed = -1, must be 0 or more"),
        ("trace stats tau3-airline --plots no/such", "no folder no"),
        ("trace stats tau3-airline --latency nope", "nope"),
        ("trace show", "TRACE"),
        ("trace show tau3-airline zzz", "SESSION = zzz, no such session"),
        ("trace show tau3-airline tau3-airline-0000 --all", "--all, lists every session"),
        ("trace filter tau3-airline -o x.trace", "name at least one condition"),
        ("trace filter tau3-airline -o x.trace --min-requests 0", "must be at least 1"),
        ("trace filter tau3-airline -o x.trace --has-class lad", "invalid value"),
        ("trace filter tau3-airline -o x.trace --workload x", "no session of 58 meets"),
        ("trace filter tau3-airline -o x --workload x", "ends in .trace"),
        ("trace merge tau3-airline -o x.trace", "name at least two traces"),
        ("reproduce --figure 8", "--figure = 8, must be one of 4, 5, 6, 7, 9, 10, 11, 12"),
        ("reproduce --figure 9 --jobs 0", "--jobs = 0"),
        ("reproduce --table 3 --quick", "--quick, changes nothing about Table 3"),
        ("reproduce --table 3 -o no/such", "no folder no"),
        ("reproduce --seed -1", "--seed = -1"),
    ],
)
def test_mistakes_end_in_one_line_and_no_file(
    words: str, says: str, lachesis_here: Lachesis, tmp_path: Path
) -> None:
    code, out, err = lachesis_here(*words.split())
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_reproduce_compares_and_writes(lachesis_here: Lachesis, tmp_path: Path) -> None:
    code, out, err = lachesis_here("reproduce", "--figure", "4,6", "--table", "3", "-o", "out")
    assert (code, err) == (0, "")
    assert width(out) <= 80
    document = json.loads((tmp_path / "out" / "comparison.json").read_text())
    figures = {row["figure"] for row in document}
    assert figures == {"Table 3", "Figure 4(a)", "Figure 4(b)", "Figure 6(a)", "Figure 6(b)"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "comparison.json", "comparison.parquet", "comparison.md",
        *(f"figure_{name}.{kind}" for name in ("4a", "4b", "6") for kind in ("png", "svg")),
    }  # fmt: skip


@pytest.mark.samples
def test_show_answers_where_context_went(samples_dir: Path, lachesis_here: Lachesis) -> None:
    folder = str(samples_dir / "claude_code_spotter")
    code, out, _ = lachesis_here("trace", "show", folder, "258c")
    assert code == 0
    assert width(out) <= 80
    assert "most by: compaction." in out
    assert "✂ compaction: 155,410 of 173,252 thrown away" in out
    folder = str(samples_dir / "tau2_bench")
    code, out, _ = lachesis_here("trace", "show", folder, "712e")
    assert "most by: reasoning stripped every round." in out
