"""Where a session threw context away, and why: the tree, the totals, and the text."""

import io
import json

import pytest
from rich.console import Console

from lachesis.characterise.outline import AgentOutline, Rewrite, Run
from lachesis.characterise.outliner import find_session, outline
from lachesis.characterise.session_list import session_list
from lachesis.errors import InputError
from lachesis.report.session_outline import print_outline, print_sessions
from lachesis.traces import Boundary, Role, TraceBuilder, open_trace


def shown(found):
    screen = Console(file=io.StringIO(), width=80, markup=False, emoji=False, highlight=False)
    print_outline(screen, found)
    text = screen.file.getvalue()
    assert max(len(line) for line in text.splitlines()) <= 80
    return text


def kinds(items):
    return [type(item).__name__ for item in items]


@pytest.fixture
def compacted():
    builder = TraceBuilder(source="compacted")
    session = builder.session("long-one", workload="w", harness="h", stripping="off")
    session.request(input_tokens=500, prompt_tokens=100, output_tokens=100)
    session.request(input_tokens=900, output_tokens=100)
    session.compacted(summary_tokens=80)
    session.request(input_tokens=250, output_tokens=20)
    return builder.build()


@pytest.fixture
def delegated():
    builder = TraceBuilder(source="delegated")
    session = builder.session("s", workload="w", harness="h", stripping="off")
    lead = session.request(input_tokens=50, output_tokens=10, tools=["spawn"])
    session.spawn("x", spawned_by=lead, role=Role.WORKER, agent_type="Explore")
    child = session.request(agent="x", input_tokens=200, output_tokens=30, tools=["spawn"])
    session.spawn("y", spawned_by=child, role=Role.WORKER)
    session.request(agent="y", input_tokens=70, output_tokens=5)
    back = session.request(agent="x", input_tokens=260, output_tokens=30, observations=1)
    session.returns("y", to=back)
    last = session.request(input_tokens=90, output_tokens=10, observations=1)
    session.returns("x", to=last)
    return builder.build()


def test_a_compaction_says_what_it_dropped_and_what_followed(compacted):
    found = outline(compacted, "long-one")
    (lead,) = found.agents
    assert kinds(lead.items) == ["Run", "Rewrite", "Run"]
    rewrite = lead.items[1]
    assert (rewrite.why, rewrite.request) == (Boundary.COMPACTION, 2)
    assert (rewrite.before_tokens, rewrite.kept_tokens, rewrite.dropped_tokens) == (1000, 100, 900)
    assert rewrite.written_tokens == 150
    assert [each.kind for each in rewrite.dropped_segments] == ["lead"]
    assert {each.kind: each.tokens for each in rewrite.written_segments} == {
        "summary": 80, "lead": 70,
    }  # fmt: skip
    text = " ".join(shown(found).split())
    assert "900 tokens of context (77% of those written) were thrown away early," in text
    assert "most by: compaction." in text
    assert "✂ compaction: 900 of 1,000 thrown away" in text
    assert "■ end: the last 270 tokens go with the session" in text


def test_what_is_dropped_is_what_was_written(compacted, delegated):
    for trace, name in ((compacted, "long-one"), (delegated, "s")):
        found = outline(trace, name)
        prompts = sum(
            tokens
            for tokens, kind in zip(*_tokens_of_segments(trace), strict=True)
            if kind == "prompt"
        )
        lead_prompt = sum(
            each.tokens
            for rewrite in found.rewrites()
            for each in rewrite.dropped_segments
            if each.kind == "prompt"
        )
        dropped = sum(rewrite.dropped_tokens for rewrite in found.rewrites())
        assert dropped + prompts - lead_prompt == found.written_tokens


def _tokens_of_segments(trace):
    from lachesis.characterise.reference_clock import written_tokens

    return written_tokens(trace).tolist(), trace.segments["class"].to_pylist()


def test_subagents_stand_where_they_were_started(delegated):
    found = outline(delegated, "s")
    (lead,) = found.agents
    assert kinds(lead.items) == ["Run", "AgentOutline", "Run"]
    explore = lead.items[1]
    assert (explore.agent_type, explore.spawned_by, explore.return_requests) == ("Explore", 0, [4])
    assert kinds(explore.items) == ["Run", "AgentOutline", "Run"]
    assert [each.why for each in explore.end] == ["subagent_return"]
    assert explore.end[0].dropped_tokens == 290
    text = shown(found)
    assert "└ 1 Explore" in text
    assert "  └ 2 worker" in text
    assert "↩ r4" in text
    assert "most by: sub-agent return." in text


def test_stripping_at_each_turn_and_every_round():
    builder = TraceBuilder(source="x")
    session = builder.session("turns", workload="w", harness="h", stripping="turn")
    session.request(input_tokens=100, prompt_tokens=60, output_tokens=30, reasoning_tokens=20)
    session.request(opens_turn=True, input_tokens=120, carried_tokens=50, output_tokens=5)
    session = builder.session("rounds", workload="w", harness="h", stripping="round")
    session.request(input_tokens=100, prompt_tokens=60, output_tokens=30, reasoning_tokens=30)
    session.request(input_tokens=110, output_tokens=30, reasoning_tokens=30)
    session.request(input_tokens=120, output_tokens=30, reasoning_tokens=30)
    trace = builder.build()
    found = outline(trace, "turns")
    first = found.rewrites()[0]
    assert (first.why, first.dropped_tokens) == ("turn_end", 70)
    assert "✂ turn end: 70 of 130 thrown away (#1); wrote #2 stripped 50" in shown(found)
    rounds = outline(trace, "rounds")
    (run,) = rounds.agents[0].items
    assert [each.why for each in run.absorbed] == ["request_end", "request_end"]
    assert "✂ reasoning stripped every round: 2 ×, 60 thrown away" in shown(rounds)


def test_a_large_reset_splits_a_run_and_a_small_one_does_not():
    def session_with(rewound):
        builder = TraceBuilder(source="x")
        session = builder.session("s", workload="w", harness="h", stripping="off")
        session.request(input_tokens=1000, output_tokens=10)
        session.request(input_tokens=1020, output_tokens=10 if rewound == "small" else 400)
        session.request(input_tokens=1040, output_tokens=10, rewinds_to=0)
        return outline(builder.build(), "s")

    small, large = session_with("small"), session_with("large")
    assert kinds(small.agents[0].items) == ["Run"]
    assert "✂ small reset" in shown(small)
    assert kinds(large.agents[0].items) == ["Run", "Rewrite", "Run"]
    assert "✂ reset: 410 of 1,420 thrown away" in shown(large)


def test_another_model_is_named_as_the_cause():
    builder = TraceBuilder(source="x")
    session = builder.session("s", workload="w", harness="h", stripping="off")
    session.request(input_tokens=1000, output_tokens=10, model="one")
    session.request(input_tokens=1020, output_tokens=10, model="two")
    found = outline(builder.build(), "s")
    assert [each.model_switch for each in found.rewrites()] == [True, False]
    assert "✂ model switch: 1,010 of 1,010 thrown away" in shown(found)


def test_a_session_that_keeps_everything_says_so():
    builder = TraceBuilder(source="x")
    session = builder.session("s", workload="w", harness="h", stripping="off", ends_open=True)
    session.request(input_tokens=100, output_tokens=10)
    text = shown(outline(builder.build(), "s"))
    assert "No context was thrown away before the session's end." in text
    assert "just stops" in text
    assert "■ log stops" in text


def test_the_tree_is_json(delegated):
    document = json.loads(json.dumps(outline(delegated, "s").to_json(), allow_nan=False))
    (lead,) = document["tree"]
    assert [item["kind"] for item in lead["items"]] == ["run", "agent", "run"]
    assert document["agents"] == 3
    assert lead["items"][1]["end"][0]["why"] == "subagent_return"


@pytest.mark.parametrize("corpus", ["tau3-retail", "webarena"])
def test_every_request_of_a_corpus_session_stands_in_one_run(corpus):
    trace = open_trace(corpus)

    def runs(agent):
        for item in agent.items:
            if isinstance(item, AgentOutline):
                yield from runs(item)
            elif isinstance(item, Run):
                yield item
            else:
                assert isinstance(item, Rewrite)

    for name in trace.sessions["session"].to_pylist()[:5]:
        found = outline(trace, name)
        numbers = sorted(
            number for agent in found.agents for run in runs(agent) for number in run.requests
        )
        assert numbers == list(range(found.requests))
        written = sum(
            run.written_tokens + run.output_tokens for agent in found.agents for run in runs(agent)
        )
        assert written == found.written_tokens
        shown(found)


def test_a_session_is_found_by_how_its_name_begins(compacted, delegated):
    assert find_session(compacted, "long") == "long-one"
    with pytest.raises(InputError, match="SESSION = nope, no such session"):
        find_session(compacted, "nope")
    with pytest.raises(InputError, match="begins 58 sessions"):
        find_session(open_trace("tau3-airline"), "tau3")


def test_the_list_says_how_much_was_thrown_away(compacted):
    (only,) = session_list(compacted)
    assert (only.turns, only.agents, only.requests) == (1, 1, 3)
    assert only.written_tokens == 1170
    assert only.peak_tokens == 1000
    assert only.dropped_tokens == {"compaction": 900}
    screen = Console(file=io.StringIO(), width=80)
    print_sessions(screen, [only], total=4)
    text = screen.file.getvalue()
    assert "77% compaction" in text
    assert "3 more; --all lists them." in text


def test_what_a_lead_does_beside_a_background_subagent_comes_after_its_start():
    builder = TraceBuilder(source="background")
    session = builder.session("s", workload="w", harness="h", stripping="off")
    lead = session.request(input_tokens=50, output_tokens=10, tools=["spawn"])
    session.spawn("x", spawned_by=lead)
    session.request(agent="x", input_tokens=200, output_tokens=30)
    session.request(input_tokens=70, output_tokens=10)
    last = session.request(input_tokens=90, output_tokens=10)
    session.returns("x", to=last)
    (found,) = outline(builder.build(), "s").agents
    assert kinds(found.items) == ["Run", "AgentOutline", "Run", "Run"]
    assert found.items[1].return_requests == [found.items[3].requests[0]]
