"""Random small cases: valid workloads, and nodes so small that everything that can run out does.

One generator serves both hypothesis (`cases`, which shrinks) and fixed seeds (`random_case` with a
`random.Random`). Times are small whole numbers of picoseconds, so that events often coincide.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from .case import (
    CLASSES,
    HBF,
    HBM,
    POLICIES,
    Config,
    Policy,
    Ranking,
    Request,
    Segment,
    Session,
    StepCost,
    Workload,
)

MAX_REQUESTS = 12
MAX_SESSIONS = 4
LONGEST_DELAY_PS = 12
POLICY_NAMES = [*POLICIES, "by-class"]  # the last: any map of classes to tiers


class SessionWriter:
    """Writes one session request by request, and keeps it valid.

    A segment's first use writes tokens; whoever uses a segment that is not shared comes after
    those who used it before (the caller names the edges); segments close after their last user.
    """

    def __init__(
        self, rng: Random, prefix_tokens: dict[int, int], most_requests: int = MAX_REQUESTS
    ) -> None:
        self.rng, self.prefix_tokens, self.most_requests = rng, prefix_tokens, most_requests
        self.requests: list[Request] = []
        self.segments: list[Segment] = []
        self.tokens: list[int] = []  # by segment, as last_user
        self.last_user: list[int] = []

    def full(self) -> bool:
        return len(self.requests) >= self.most_requests

    def delay_ps(self) -> int:
        return self.rng.randint(0, LONGEST_DELAY_PS)

    def chance(self, percent: int) -> bool:
        return self.rng.randint(1, 100) <= percent

    def open(self, segment_class: str, prefix_key: int | None = None) -> int:
        self.segments.append(Segment(segment_class, prefix_key))
        self.tokens.append(0)
        self.last_user.append(-1)
        return len(self.segments) - 1

    def open_prompt(self) -> int:
        """A prompt of the agent's own, or one that is shared, in this session and with others."""
        key = self.rng.choice([None, *self.prefix_tokens])
        for index, segment in enumerate(self.segments):
            if key is not None and segment.prefix_key == key:
                return index
        return self.open("prompt", key)

    def close(self, segment: int, boundary: str, request: int) -> None:
        after = max(request, self.last_user[segment])
        spec = self.segments[segment]
        self.segments[segment] = replace(spec, closed_by=boundary, closed_after=after)

    def written(self, segment: int, may_write: bool) -> int:
        key = self.segments[segment].prefix_key
        if key is not None:
            return 0 if self.tokens[segment] else self.prefix_tokens[key]
        if self.tokens[segment]:
            return self.rng.randint(0, 9) if may_write and self.chance(60) else 0
        return self.rng.randint(1, 12)

    def request(
        self,
        after: list[tuple[int, str]],
        context: list[int],
        output_segment: int,
        may_write: tuple[int, ...] = (),
    ) -> int:
        """Append a request that reads `context`; `may_write` may be written again."""
        uses = [(segment, self.written(segment, segment in may_write)) for segment in context]
        edges = [(before, kind, self.delay_ps()) for before, kind in after]
        output_tokens = self.rng.randint(1, 10)
        if self.chance(15):
            output_tokens = self.rng.choice([0, 0, self.rng.randint(20, 70)])
        for segment, written in [*uses, (output_segment, output_tokens)]:
            self.tokens[segment] += written
            self.last_user[segment] = len(self.requests)
        self.requests.append(Request(edges, uses, output_segment, output_tokens))
        return len(self.requests) - 1

    def session(self, start_ps: int) -> Session:
        last = len(self.requests) - 1
        for segment, spec in enumerate(self.segments):  # what else it says closes nothing earlier
            if spec.closed_by == "session_end" and self.chance(50):
                self.close(segment, "session_end", last)
            elif spec.closed_after is not None and self.chance(15):
                # A later request may well end earlier than the segment's last reader.
                later = self.rng.randint(spec.closed_after, last)
                self.close(segment, spec.closed_by, later)
        return Session(self.requests, self.segments, start_ps)


def write_turns(writer: SessionWriter) -> None:
    """A single agent: turns with reasoning that is stripped at their ends, or every round."""
    prompt, carried, last = writer.open_prompt(), list[int](), -1
    every_round = writer.chance(20)
    for turn in range(writer.rng.randint(1, 4)):
        laden, edge = -1, "user"
        for _ in range(writer.rng.randint(1, 3)):
            if writer.full():
                return
            if laden < 0 or every_round:
                laden = writer.open("reasoning-laden")
            after = [(last, edge)] if last >= 0 else []
            rewritten = (laden, *(carried[-1:] if writer.chance(10) else []))
            last = writer.request(after, [prompt, *carried, laden], laden, rewritten)
            edge = "tool"
            if every_round:
                writer.close(laden, "request_end", last)
        if not every_round:
            writer.close(laden, "turn_end", last)
        if writer.chance(15):  # a compaction, or an edit of what came before
            for segment in carried:
                writer.close(segment, writer.rng.choice(["compaction", "reset"]), last)
            carried = []
        if turn == 0 or writer.chance(85):
            carried.append(writer.open("reasoning-stripped"))


def write_agents(writer: SessionWriter) -> None:
    """A lead that spawns workers and reviewers, waits for some, and may be compacted."""
    prompt, lead = writer.open_prompt(), writer.open("lead")
    context = [prompt, lead]
    first = [prompt] if writer.chance(30) else context  # the output may open the lead's segment
    last, returns = writer.request([], first, lead), list[int]()
    for _ in range(writer.rng.randint(1, 5)):
        kind = writer.rng.choice(["tool", "user", "tool"])
        if writer.full():
            return
        returned = [(end, "return") for end in returns]
        if writer.chance(15):
            summary = writer.open("summary")
            last = writer.request([(last, kind), *returned], context, summary)
            writer.close(lead, "compaction", last)
            lead, returns = writer.open("lead"), []
            context = [prompt, summary, lead]
            continue
        if writer.chance(10):
            writer.close(lead, "reset", last)
            lead = writer.open("lead")
            context = [*context[:-1], lead]
        last = writer.request([(last, kind), *returned], context, lead, (lead,))
        returns = []
        for _ in range(writer.rng.randint(0, 3)):
            end = write_sub_agent(writer, last)
            if end is not None and writer.chance(85):  # others run on in the background
                returns.append(end)
        if writer.chance(25) and not returns and not writer.full():
            # One agent that was given the lead's own context reads it before the lead goes on.
            fork = writer.open("worker")
            reader = writer.request([(last, "spawn")], [*context, fork], fork)
            writer.close(fork, "subagent_return", reader)
            returns = [reader]


def write_swarm(writer: SessionWriter) -> None:
    """A lead that delegates everything, several times: workers beside each other, and reviewers."""
    prompt, lead = writer.open_prompt(), writer.open("lead")
    last, returns = writer.request([], [prompt, lead], lead), list[int]()
    while not writer.full():
        roles, agents = ("worker", "worker", "reviewer"), writer.rng.randint(1, 7)
        ends = [write_sub_agent(writer, last, roles) for _ in range(agents)]
        returns = [end for end in ends if end is not None]
        if writer.full() or not returns:
            return
        after = [(last, "tool"), *((end, "return") for end in returns)]
        last = writer.request(after, [prompt, lead], lead, (lead,))


def write_sub_agent(
    writer: SessionWriter, spawned_by: int, roles: tuple[str, ...] = ("worker", "reviewer")
) -> int | None:
    """Append up to three requests in a chain, and return the last; none if the session is full."""
    if writer.full():
        return None
    context = [writer.open_prompt(), writer.open(writer.rng.choice(roles))]
    last, edge = spawned_by, "spawn"
    for _ in range(writer.rng.randint(1, 3)):
        if not writer.full():
            last, edge = writer.request([(last, edge)], context, context[1], (context[1],)), "tool"
    for segment in context if writer.chance(50) else context[1:]:
        if writer.segments[segment].prefix_key is None:
            writer.close(segment, "subagent_return", last)
    return last


def random_ranking(rng: Random) -> Ranking:
    return Ranking(
        ranked_against=rng.choice(["live-workers", "workers-in-hbm"]),
        capacity=rng.choice(["total", "free"]),
        reserve=rng.choice(["expected", "live", "nothing"]),
        margin=rng.choice([1.0, 0.3, 0.7, 1.5, 3.0]),
    )


def with_scores(rng: Random, workload: Workload, *, all_known: bool) -> Workload:
    """Scores for workers, and for others, whose scores count for nothing.

    Few different ones, so that many are equal; the two zeros are equal as well.
    """
    scores = [-1.5, -0.0, 0.0, 0.1, 0.25, 0.5, 1.0, 3.0, 1e9][: rng.choice([3, 5, 9])]
    unknown = [] if all_known else [None, None]
    sessions = [
        replace(
            session,
            segments=[
                spec if spec.prefix_key is not None else replace(spec, score=score)
                for spec in session.segments
                for score in [rng.choice([*scores, *unknown])]
            ],
        )
        for session in workload.sessions
    ]
    return Workload(sessions)


def random_workload(rng: Random, *, agents_only: bool = False) -> Workload:
    prefix_tokens = {key: rng.randint(1, 24) for key in range(rng.choice([1, 2, 4, 9]))}
    sessions: list[Session] = []
    start_ps, longest_gap_ps = 0, rng.choice([2, 30, 600])
    for _ in range(rng.randint(1, MAX_SESSIONS)):
        writer = SessionWriter(rng, prefix_tokens, MAX_REQUESTS + 8 * agents_only)
        agents = [write_agents, write_swarm, write_swarm]
        write = rng.choice(agents if agents_only else [write_turns, write_agents])
        write(writer)
        sessions.append(writer.session(start_ps))
        start_ps += rng.randint(1, longest_gap_ps)
    return Workload(sessions)


def least_blocks(
    workload: Workload, policy: Policy, block_tokens: int, *, all_prompts: bool
) -> tuple[int, int]:
    """The blocks by target tier of the largest request and the shared prompts.

    With the prompts of all sessions nothing can fail; with those of its session alone, sessions
    must take turns.
    """
    largest = [0, 0]
    shared: dict[int, int] = {}
    for session in workload.sessions:
        shared = shared if all_prompts else {}
        tokens, needed = [0] * len(session.segments), [[0, 0]]
        for request in session.requests:
            needed.append([0, 0])
            for segment, written in [
                *request.uses,
                (request.output_segment, request.output_tokens),
            ]:
                tokens[segment] += written
            for segment in {*dict(request.uses), request.output_segment}:
                spec, blocks = session.segments[segment], -(-tokens[segment] // block_tokens)
                if spec.prefix_key is None:
                    needed[-1][policy.target(spec)] += blocks
                else:
                    shared[spec.prefix_key] = blocks
        own = [max(tier) for tier in zip(*needed, strict=True)]
        own[policy.targets["prompt"]] += 0 if all_prompts else sum(shared.values())
        largest = [max(pair) for pair in zip(largest, own, strict=True)]
    largest[policy.targets["prompt"]] += sum(shared.values()) if all_prompts else 0
    return largest[0], largest[1]


def random_cost(rng: Random, gpus: int, slots: int) -> StepCost:
    if rng.randint(1, 3) == 1:  # steps of one length, so that many things happen at once
        flat = [0] * (slots * gpus + 1)
        return StepCost(flat[: slots + 1], flat, overhead_ps=rng.randint(1, 4))
    window = rng.choice([0, 0, 1, 5, 16, 40])
    return StepCost(
        local_ps=[0, *(rng.randint(0, 9) for _ in range(slots))],
        shared_ps=[0, *(rng.randint(0, 9) for _ in range(slots * gpus))],
        context_ps=rng.randint(0, 2),
        window_ps=rng.randint(0, 3) if window else 0,
        window=window,
        window_kind=rng.choice(["sliding", "chunked"]),
        flush_ps=rng.choice([0, 0, 1, 4]),
        overhead_ps=rng.randint(1, 6),
    )


def random_policy(rng: Random, name: str) -> Policy:
    if name in POLICIES:
        policy = POLICIES[name]
        return replace(policy, ranking=random_ranking(rng)) if policy.ranking else policy
    targets = {segment_class: rng.choice([HBM, HBF]) for segment_class in CLASSES}
    return Policy(name, targets, falls_back=True, keeps=False)


def random_case(
    rng: Random, policy_name: str, *, memory_may_be_too_small: bool = False
) -> tuple[Workload, Config]:
    """A workload and a node that can just about hold it, for the policy of this name.

    Where the memory may be too small, it may just not hold it, and every session is drawn.
    """
    policy = random_policy(rng, policy_name)
    workload = random_workload(rng, agents_only=bool(policy.ranking) and rng.randint(1, 4) > 1)
    if policy.ranking:
        all_known = policy_name == "lachesis-oracle"
        workload = with_scores(rng, workload, all_known=all_known)
    gpus, slots = rng.randint(1, 3), rng.randint(1, 6)
    block_tokens = rng.choice([1, 2, 4, 4, 8, 16])
    all_prompts = not memory_may_be_too_small
    least = least_blocks(workload, policy, block_tokens, all_prompts=all_prompts)
    slack = rng.choice([0, 1, 2, 4, 8, 30])
    if memory_may_be_too_small and rng.randint(1, 4) == 1:
        least, slack = (least[0] * 3 // 4, least[1] * 3 // 4), max(least) // 2
    if policy.falls_back:
        total = max(2, sum(least) + rng.randint(0, slack))
        hbm_blocks = rng.randint(1, total - 1)
        if policy.ranking and rng.randint(0, 2):  # room for few workers
            hbm_blocks = rng.randint(1, max(1, total // 4))
        hbf_blocks = total - hbm_blocks
    else:
        hbm_blocks, hbf_blocks = (max(1, blocks + rng.randint(0, slack)) for blocks in least)
    sessions = len(workload.sessions)
    draws, arrivals = list(range(sessions)), ("recorded",)
    if rng.randint(0, 2):
        if not memory_may_be_too_small:
            most = 8 if policy.ranking else 6
            draws = [rng.randint(0, sessions - 1) for _ in range(rng.randint(1, most))]
        arrivals = ("closed", rng.randint(1, 5), rng.choice([0, 7, 30, 600, 2000]))
    return workload, Config(
        gpus=gpus,
        hbm_blocks=hbm_blocks,
        hbf_blocks=hbf_blocks,
        slots=slots,
        ttft_ref_ps=rng.randint(1, 12),
        cost=random_cost(rng, gpus, slots),
        draws=draws,
        policy=policy,
        block_tokens=block_tokens,
        turn_end=rng.choice(["last-output", "last-output", "next-message"]),
        landing=rng.choice(["async", "sync"]),
        arrivals=arrivals,
    )


def of_real_size(workload: Workload, config: Config) -> tuple[Workload, Config]:
    """The case with microseconds a step and a prefill, in figures that are not round."""
    scale, cost = 1_000_003, config.cost
    scaled = replace(
        cost,
        local_ps=[scale * ps for ps in cost.local_ps],
        shared_ps=[scale * ps for ps in cost.shared_ps],
        context_ps=scale * cost.context_ps + 1,
        window_ps=scale * cost.window_ps,
        flush_ps=scale * cost.flush_ps,
        overhead_ps=scale * cost.overhead_ps,
    )
    return workload, replace(config, cost=scaled, ttft_ref_ps=scale * config.ttft_ref_ps)


@st.composite
def cases(
    draw: st.DrawFn, policy_name: str, *, memory_may_be_too_small: bool = False
) -> tuple[Workload, Config]:
    rng = draw(st.randoms(use_true_random=False))
    return random_case(rng, policy_name, memory_may_be_too_small=memory_may_be_too_small)
