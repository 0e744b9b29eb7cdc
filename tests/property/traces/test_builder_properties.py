"""Whatever a log says, the builder gives a valid trace that conserves its tokens."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lachesis.traces import Part, PartKind, Status, Trace, TraceBuilder, concat, validate
from lachesis.traces.trace import session_digests

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Script:
    """What to push for one session: (method, keyword arguments) in order."""

    stripping: str
    calls: list[tuple[str, dict]] = field(default_factory=list)
    inputs: dict[int, int] = field(default_factory=dict)  # by handle
    outputs: dict[int, int] = field(default_factory=dict)

    def push(self, builder: TraceBuilder, name: str) -> None:
        session = builder.session(name, workload="w", harness="h", stripping=self.stripping)
        for method, arguments in self.calls:
            getattr(session, method)(**arguments)


@st.composite
def count_scripts(draw) -> Script:
    """A log of counts: any inputs, sub-agents in any order, compactions, rewinds, aborts."""
    script = Script(draw(st.sampled_from(["auto", "turn", "round", "off"])))
    latest = {}
    open_agents = []
    for handle in range(draw(st.integers(1, 14))):
        agents = [0, *open_agents]
        agent = draw(st.sampled_from(agents)) if handle else 0
        if handle and len(open_agents) < 3 and draw(st.integers(0, 4)) == 0:
            agent = f"sub{len(open_agents)}"
            parent = draw(st.sampled_from(sorted(latest.values())))
            script.calls.append(
                ("spawn", {"agent": agent, "spawned_by": parent,
                           "role": draw(st.sampled_from(["worker", "reviewer"]))})
            )  # fmt: skip
            open_agents.append(agent)
        status = draw(st.sampled_from([Status.OK] * 6 + [Status.ABORTED, Status.ERROR]))
        output = draw(st.integers(1 if status is Status.OK else 0, 60))
        known = st.none() | st.integers(0, 80)
        arguments = {
            "agent": agent,
            "input_tokens": draw(st.integers(0, 400)),
            "output_tokens": output,
            "reasoning_tokens": draw(st.integers(0, output)),
            "opens_turn": draw(st.booleans()),
            "appended_tokens": draw(known),
            "carried_tokens": draw(known),
            "prompt_tokens": draw(known),
            "prefix_key": draw(st.sampled_from([None, "a", "b"])),
            "model": draw(st.sampled_from([None, "m", "m", "n"])),
            "reported_cached_tokens": draw(known),
            "start_s": draw(st.none() | st.floats(0, 100)),
            "status": status,
            "compacts": draw(st.integers(0, 9)) == 0,
            "rewinds_to": draw(st.sampled_from([None] * 5 + [-1, max(handle - 1, -1)])),
        }
        script.calls.append(("request", arguments))
        script.inputs[handle] = arguments["input_tokens"]
        script.outputs[handle] = output
        if agent == 0 and open_agents and draw(st.booleans()):
            returning = draw(st.sampled_from(open_agents))
            spawned_by = next(
                c[1]["spawned_by"] for c in script.calls
                if c[0] == "spawn" and c[1]["agent"] == returning
            )  # fmt: skip
            pushed = [c[1] for c in script.calls if c[0] == "request"]
            if returning in latest and pushed[spawned_by]["agent"] == 0 and spawned_by != handle:
                script.calls.append(("returns", {"agent": returning, "to": handle}))
                if draw(st.booleans()):
                    script.calls.append(("resume", {"agent": returning, "resumed_by": handle}))
        latest[agent] = handle
    return script


@st.composite
def text_scripts(draw) -> Script:
    """A log with text: a harness that appends, edits, and may leave out reasoning."""
    script = Script(draw(st.sampled_from(["auto", "turn", "round", "off"])))
    serial = 0

    def part(kind: PartKind) -> Part:
        nonlocal serial
        serial += 1
        return Part(serial, draw(st.integers(0, 40)), kind)

    context = [part(PartKind.SYSTEM)]
    for handle in range(draw(st.integers(1, 12))):
        opens = draw(st.booleans())
        if len(context) > 2 and draw(st.integers(0, 5)) == 0:
            del context[draw(st.integers(1, len(context) - 1)) :]
        context += [part(PartKind.USER if opens else PartKind.OBSERVATION)]
        keeps = draw(st.sampled_from(["all", "this turn", "none"]))
        if keeps != "all":
            last_user = max(
                (i for i, p in enumerate(context) if p.kind is PartKind.USER), default=0
            )
            context = [
                p for i, p in enumerate(context)
                if p.kind is not PartKind.REASONING or (keeps == "this turn" and i > last_user)
            ]  # fmt: skip
        output = [part(kind) for kind in (PartKind.REASONING, PartKind.ANSWER, PartKind.CALL)]
        total = sum(p.tokens for p in output)
        reported = draw(st.none() | st.integers(0, 500))
        script.calls.append((
            "request",
            {
                "opens_turn": opens,
                "parts": tuple(context),
                "input_tokens": reported,
                "output_tokens": max(1, total),
                "reasoning_tokens": output[0].tokens,
                "output_parts": draw(st.sampled_from([output, None])),
                "compacts": draw(st.integers(0, 9)) == 0,
            },
        ))  # fmt: skip
        script.inputs[handle] = sum(p.tokens for p in context) if reported is None else reported
        script.outputs[handle] = max(1, total)
        context += output
    return script


scripts = st.one_of(count_scripts(), text_scripts())


def build(scripts_by_name: dict[str, Script]) -> Trace:
    builder = TraceBuilder(source="test")
    for name, script in scripts_by_name.items():
        script.push(builder, name)
    return builder.build()


def by_request(trace: Trace) -> dict[int, int]:
    totals = dict.fromkeys(trace.requests["request"].to_pylist(), 0)
    for span in trace.spans.to_pylist():
        totals[span["request"]] += span["tokens"]
    return totals


@FEW
@given(scripts)
def test_any_log_gives_a_valid_trace_whose_tokens_are_the_logs(script):
    trace = build({"s": script})  # validates
    assert trace.requests.num_rows == len(script.inputs)
    pushed = sorted(zip(script.inputs.values(), script.outputs.values(), strict=True))
    read = zip(by_request(trace).values(), trace.requests["output_tokens"].to_pylist(), strict=True)
    assert sorted(read) == pushed


@FEW
@given(scripts)
def test_what_is_written_is_live_until_its_boundary_and_no_longer(script):
    """Replayed by hand: at each request, the named segments hold what was written to them."""
    trace = build({"s": script})
    live: dict[int, int] = {}
    closed = {row["segment"]: row["closed_after"] for row in trace.segments.to_pylist()}
    spans = trace.spans.to_pylist()
    for request in trace.requests.to_pylist():
        for span in (s for s in spans if s["request"] == request["request"]):
            if span["written"]:
                live[span["segment"]] = live.get(span["segment"], 0) + span["tokens"]
            else:
                assert live[span["segment"]] == span["tokens"]
            assert closed[span["segment"]] >= request["request"]
        live[request["segment"]] = live.get(request["segment"], 0) + request["output_tokens"]
    written = sum(s["tokens"] for s in spans if s["written"])
    assert sum(live.values()) == written + sum(script.outputs.values())


@FEW
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=10))
def test_a_log_that_only_grows_writes_every_token_once(steps):
    builder = TraceBuilder(source="test")
    session = builder.session("s", workload="w", harness="h")
    context = 0
    for new, output in steps:
        session.request(input_tokens=context + new, output_tokens=output)
        context += new + output
    spans = builder.build().spans.to_pylist()
    assert sum(s["tokens"] for s in spans if s["written"]) == sum(new for new, _ in steps)


@FEW
@given(st.lists(scripts, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_digest_depends_on_neither_names_nor_order(many, random):
    names = [f"s{i}" for i in range(len(many))]
    trace = build(dict(zip(names, many, strict=True)))
    shuffled = list(many)
    random.shuffle(shuffled)
    other = build({f"other {i}": script for i, script in enumerate(shuffled)})
    assert trace.sha256 == other.sha256
    assert set(session_digests(trace).values()) == set(session_digests(other).values())


@FEW
@given(count_scripts())
def test_digest_sees_a_changed_token(script):
    trace = build({"s": script})
    method, arguments = next(call for call in script.calls if call[0] == "request")
    arguments["output_tokens"] += 1
    assert method == "request"
    assert build({"s": script}).sha256 != trace.sha256


@settings(max_examples=15, deadline=None)
@given(many=st.lists(scripts, min_size=1, max_size=3))
def test_saved_and_loaded_is_the_same(many, tmp_path_factory):
    trace = build({f"s{i}": script for i, script in enumerate(many)})
    place = tmp_path_factory.mktemp("saved") / "t.trace"
    trace.save(place)
    loaded = Trace.load(place)
    validate(loaded, place)
    assert loaded.sha256 == trace.sha256
    assert loaded.quality == trace.quality
    assert all(loaded.tables[name].equals(table) for name, table in trace.tables.items())


@settings(max_examples=15, deadline=None)
@given(st.lists(scripts, min_size=2, max_size=3))
def test_joining_and_selecting_undo_each_other(many):
    traces = [build({"s": script}) for script in many]
    joined = concat(traces)
    validate(joined)
    assert len(joined) == len(many)
    names = joined.sessions["session"].to_pylist()
    assert [joined.select([name]).sha256 for name in names] == [t.sha256 for t in traces]


@FEW
@given(text_scripts())
def test_without_stripping_nothing_ends_with_a_turn_or_request(script):
    script.stripping = "off"
    closed_by = set(build({"s": script}).segments["closed_by"].to_pylist())
    assert not closed_by & {"turn_end", "request_end"}
