"""Small traces of leads that delegate, for tests of the predictor."""

from collections.abc import Sequence

from lachesis.traces import Trace, TraceBuilder

SHORT = "Look up the name at a glance."
LONG = "Rebuild the whole module from scratch."

#: Instruction and output tokens of one worker; it lives 0.2 s a token.
Delegation = tuple[str | None, int]


def delegating(
    sessions: Sequence[Sequence[Delegation]],
    *,
    names: Sequence[str] | None = None,
    workload: str = "w",
    tools: Sequence[str] = ("shell",),
) -> Trace:
    """One session a list; its lead spawns the workers one after another."""
    builder = TraceBuilder(source="delegations")
    for index, workers in enumerate(sessions):
        name = f"s{index}" if names is None else names[index]
        session = builder.session(name, workload=workload, harness="h", stripping="off")
        tokens = 50
        for number, (instruction, output_tokens) in enumerate(workers):
            by = session.request(input_tokens=tokens, output_tokens=5)
            tokens += 20
            session.spawn(
                f"w{number}", spawned_by=by, instruction=instruction, context=None,
                instruction_tokens=None if instruction is None else 10, tools=list(tools),
            )  # fmt: skip
            session.request(agent=f"w{number}", input_tokens=30, output_tokens=output_tokens)
            to = session.request(input_tokens=tokens, output_tokens=5)
            session.returns(f"w{number}", to=to)
            tokens += 20
    return builder.build()


def telling(sessions: int = 12) -> Trace:
    """Sessions whose instructions tell the order: short ones 2 to 5 s, long ones 200 s and more."""
    return delegating(
        [
            [(SHORT, 10 + index), (LONG, 1000 + 7 * index), (SHORT, 12 + index)]
            for index in range(sessions)
        ]
    )
