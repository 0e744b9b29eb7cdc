"""Matching is by what the context holds, never by what the provider's cache happened to hold."""

from collections import Counter

import pytest
from claude_code_log import Transcript, text

from lachesis.traces import read


def written_tokens(trace):
    """Tokens written by each session: the inputs' new parts, and the outputs."""
    found = Counter()
    for span in trace.spans.to_pylist():
        found[span["session"]] += span["tokens"] if span["written"] else 0
    for row in trace.requests.to_pylist():
        found[row["session"]] += row["output_tokens"]
    return found


def written_by_hits(trace):
    """The same, were whatever the provider's cache missed written anew."""
    found = Counter()
    for span in trace.spans.to_pylist():
        found[span["session"]] += span["tokens"]
    for row in trace.requests.to_pylist():
        found[row["session"]] += row["output_tokens"] - (row["reported_cached_tokens"] or 0)
    return found


def test_an_expired_cache_writes_nothing_anew(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 2.0, [text("mended")], given=(5, 995, 0), output=[20])
    log.user("and this", 4000.0)
    log.call("m2", 4002.0, [text("done")], given=(5, 1095, 0), output=[10])
    trace = read([log.write(tmp_path / "s.jsonl")])
    assert written_tokens(trace)["s"] == 1000 + 20 + 80 + 10
    assert written_by_hits(trace)["s"] == 1000 + 20 + 1100 + 10


@pytest.mark.samples
def test_real_sessions_are_not_inflated(samples_dir):
    trace = read([samples_dir / "claude_code_spotter", samples_dir / "atif_from_claude_code"])
    ours, by_hits = written_tokens(trace), written_by_hits(trace)
    inflation = {session: by_hits[session] / ours[session] for session in ours}
    worst = max(inflation, key=inflation.__getitem__)
    assert worst.startswith("7acd37a8")
    assert inflation[worst] == pytest.approx(2.82, abs=0.02)
    # What a context holds is written once: at least its longest, and far less than every miss.
    inputs = Counter()
    for span in trace.spans.to_pylist():
        if span["session"] == worst:
            inputs[span["request"]] += span["tokens"]
    assert max(inputs.values()) < ours[worst] < by_hits[worst]
