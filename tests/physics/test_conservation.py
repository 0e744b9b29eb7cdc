"""Tokens written equal what the replay has to materialise, counted apart from the trace's rows."""

from __future__ import annotations

from collections import Counter

import pytest

from lachesis.policy import POLICIES, choose_policy
from lachesis.policy.ratio import fix_threshold
from lachesis.presets import Settings, apply_overrides
from lachesis.traces import concat, open_trace

from .tiny_nodes import drain

# Sessions by their place; some come twice, as they do when a load draws them for ever.
DRAWS = [3, 0, 5, 1, 4, 2, 0, 3]


def some_sessions(corpus, count=6):
    trace = open_trace(corpus)
    return trace.select(trace.sessions["session"].to_pylist()[:count])


@pytest.fixture(
    scope="module",
    params=["tau3-airline", "bfclv4-base", "swe-bench-verified", "webarena", "mixed"],
)
def trace(request):
    if request.param == "mixed":
        return concat([some_sessions(name, 2) for name in ("tau3-retail", "appworld", "webarena")])
    return some_sessions(request.param)


def to_materialise(trace, draws, *, gpus=1):
    """Tokens by class: written spans and outputs of every draw; a shared prompt once a GPU."""
    names = trace.sessions["session"].to_pylist()
    drawn = Counter(names[place] for place in draws)
    segments = {(row["session"], row["segment"]): row for row in trace.segments.to_pylist()}
    private: Counter[str] = Counter()
    prompts: dict[str, int] = {}
    rows = [
        ((row["session"], row["segment"]), row["tokens"])
        for row in trace.spans.to_pylist()
        if row["written"]
    ]
    rows += [
        ((row["session"], row["segment"]), row["output_tokens"])
        for row in trace.requests.to_pylist()
    ]
    for key, tokens in rows:
        segment = segments[key]
        if segment["prefix_key"] is None:
            private[segment["class"]] += tokens * drawn[key[0]]
        elif drawn[key[0]]:
            # Every session that has the key has the same prompt.
            assert prompts.setdefault(segment["prefix_key"], tokens) == tokens
    private["prompt"] += sum(prompts.values()) * gpus
    return {name: tokens for name, tokens in private.items() if tokens}


def chosen(name, trace, settings, load_sessions):
    policy = choose_policy(name)
    if name == "read-write-ratio":
        return fix_threshold(policy, trace, settings, load_sessions)
    return policy


@pytest.mark.parametrize("memory", ["1/7", "4/4"])
@pytest.mark.parametrize("name", POLICIES)
def test_written_is_what_the_trace_says(name, memory, trace):
    # Memory of full size and few sessions: no policy has a reason to write anything again.
    settings = apply_overrides(
        Settings.choose(memory=memory), ["node.gpus=1", "model.weight_bytes_per_value=0.5"]
    )
    load = 4
    run = drain(
        trace, chosen(name, trace, settings, load), settings, draws=DRAWS, load_sessions=load,
        step_time_s=None,
    )  # fmt: skip
    assert run.tokens("rematerialised") == {}
    written = {segment_class: sum(tiers) for segment_class, tiers in run.tokens().items()}
    assert written == to_materialise(trace, DRAWS)
    assert run.measured["whole"]["sessions"] == len(DRAWS)
    names = trace.sessions["session"].to_pylist()
    per_session = Counter(trace.requests["session"].to_pylist())
    assert run.measured["whole"]["requests"] == sum(per_session[names[d]] for d in DRAWS)


@pytest.mark.parametrize("name", POLICIES)
def test_on_eight_gpus_all_but_prompts_is_the_same(name, trace):
    settings = Settings.choose(memory="2/6")
    run = drain(
        trace, chosen(name, trace, settings, 8), settings, draws=DRAWS, load_sessions=8,
        step_time_s=0.05,
    )  # fmt: skip
    written = {segment_class: sum(tiers) for segment_class, tiers in run.tokens().items()}
    # Eight sessions at once take a GPU each; a prompt is written on each GPU that one uses it on.
    one_each = [to_materialise(trace, [place]).get("prompt", 0) for place in DRAWS]
    assert written.pop("prompt", 0) == sum(one_each)
    expected = to_materialise(trace, DRAWS)
    expected.pop("prompt", None)
    assert written == expected
    assert run.tokens("rematerialised") == {}


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "hbm-first"])
def test_without_pressure_for_flash_even_a_small_hbm_writes_nothing_twice(name, trace):
    # Boundary policies reclaim nothing: a small HBM sends blocks elsewhere, and no byte is lost.
    hbm = 20.0 if name == "hbm-only" else 0.2
    settings = apply_overrides(
        Settings.choose(memory="1/7"),
        ["node.gpus=1", "model.weight_bytes_per_value=0.5", f"hardware.hbm_gb_per_stack={hbm}"],
    )
    load = 1 if name == "hbm-only" else 6
    run = drain(
        trace, chosen(name, trace, settings, load), settings, draws=DRAWS, load_sessions=load,
        step_time_s=0.05,
    )  # fmt: skip
    written = {segment_class: sum(tiers) for segment_class, tiers in run.tokens().items()}
    assert written == to_materialise(trace, DRAWS)
    assert run.tokens("rematerialised") == {}
    free = settings.kv_capacity()
    kept = run.tokens().get("prompt", (0, 0))
    hbm_free, hbf_free = run.measured["free_blocks"][0]
    # At the end prompts lie cached, each in blocks of its own; everything else is free.
    # Under hbm-only HBM holds prompts of one session, which end with it; shared ones lie in flash.
    assert (hbm_free == free.hbm_blocks) == (kept[0] == 0 or name == "hbm-only")
    assert (hbf_free == free.hbf_blocks) == (kept[1] == 0)
