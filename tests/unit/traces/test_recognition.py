"""No file belongs to two formats, whether a sample or one of the project's own fixtures."""

from pathlib import Path

import pytest

from lachesis.traces.readers.protocol import HEAD_BYTES, SourceFile
from lachesis.traces.readers.registry import READERS, read

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
#: Folder of the samples → the formats that are in it, and how many files of each.
EXPECTED = {
    "atif_from_claude_code": {"atif": 2},
    "claude_code_spotter": {"claude-code": 7},
    "codex_gemini_agtrace": {"claude-code": 2, "codex": 7, "gemini-cli": 1},
    "openhands": {"openhands-events": 4, "openhands-completions": 6},
    "pi_coding_agent": {"pi": 1},
    "swe_agent": {"swe-agent": 6},
    "tau2_bench": {"tau": 4},
    "tau_bench_v1": {"tau": 1},
    "whowhen_magentic_one": {"magentic-one": 10},
}


def recognised_by(path):
    head = SourceFile(str(path), str(path)).read_bytes(HEAD_BYTES)
    if not head.strip():
        return []
    file = SourceFile(str(path), str(path), head)
    return [reader.name for reader in READERS if reader.recognises(file)]


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_fixture_has_one_reader():
    for path in files_below(FIXTURES):
        if path.stat().st_size:
            assert len(recognised_by(path)) == 1, path


@pytest.mark.samples
def test_every_sample_has_one_reader_or_none(samples_dir):
    for path in files_below(samples_dir):
        found = recognised_by(path)
        assert len(found) <= 1, (path, found)
        if path.suffix in (".txt", ".md"):
            assert not found, path


@pytest.mark.samples
@pytest.mark.parametrize("folder", EXPECTED)
def test_samples_are_recognised(samples_dir, folder):
    counts = {}
    for path in files_below(samples_dir / folder):
        for name in recognised_by(path):
            counts[name] = counts.get(name, 0) + 1
    assert counts == EXPECTED[folder]
    assert len(read([samples_dir / folder]).requests) > 0
