"""A live placement layer in the shadow of a simulation: told what happens in it, in order.

The run's journal tells every event of a segment. A harness and an engine are played from it,
through the public interface of `lachesis.placement`: real block ids, free lists a GPU, prompts that
sessions share through a prefix cache. After every event the layer must have placed as the simulator
did.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from lachesis.placement import Placement
from lachesis.policy import Policy

from .case import BOUNDARIES, CLASSES

OPEN, START, WRITE, DRAW, EVICT, END, BOUNDARY, CLOSE = range(8)
TIERS = ("hbm", "hbf")


class Engine:
    """Free lists of every GPU, and a cache of prompts that no session holds.

    GPU g has every tier's g-th run of ids. Calls speak of the GPU in `gpu`; of all if it is None,
    and then what is cached counts as free, since for the layer nobody holds it.
    """

    def __init__(self, gpus: int, blocks: Mapping[str, int], *, layer_caches: bool) -> None:
        self.gpu: int | None = None
        self.layer_caches = layer_caches
        self.blocks, self.hbm_ids = blocks, gpus * blocks["hbm"]
        ids = iter(range(gpus * sum(blocks.values())))
        by_tier = {tier: [list(islice(ids, blocks[tier])) for _ in range(gpus)] for tier in TIERS}
        self.lists = [{tier: by_tier[tier][gpu] for tier in TIERS} for gpu in range(gpus)]
        self.cached: set[int] = set()  # blocks of prompts: once free, they stay in the cache
        self.unheld = (0, 0)  # those of them that no session holds, by tier
        self.reclaimed: list[int] = []  # blocks of prompts that came back all the same

    def place(self, block: int) -> tuple[int, str]:
        if block < self.hbm_ids:
            return block // self.blocks["hbm"], "hbm"
        return (block - self.hbm_ids) // self.blocks["hbf"], "hbf"

    def alloc(self, tier: str) -> int:
        assert self.gpu is not None
        return self.lists[self.gpu][tier].pop()

    def free(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            if block in self.cached and not self.layer_caches:
                continue
            if block in self.cached:
                self.cached.remove(block)
                self.reclaimed.append(block)
            gpu, tier = self.place(block)
            self.lists[gpu][tier].append(block)

    def free_blocks(self, tier: str) -> int:
        if self.gpu is not None:
            return len(self.lists[self.gpu][tier])
        return sum(len(lists[tier]) for lists in self.lists) + self.unheld[TIERS.index(tier)]

    def counts(self, blocks: Sequence[int]) -> tuple[int, int]:
        in_hbm = sum(block < self.hbm_ids for block in blocks)
        return in_hbm, len(blocks) - in_hbm


class Prompt:
    """A GPU's copy of a shared prompt."""

    def __init__(self) -> None:
        self.blocks: list[int] = []
        self.holders: dict[int, None] = {}  # segments of sessions


class KnownScore:
    """A predictor that says what the simulator was told."""

    value = 0.0

    def score(self, _record: object) -> float:
        return self.value


class Shadow:
    """The layer, and those that tell and ask it.

    Prompts that no session holds stay in the engine's cache, or with the layer (`layer_caches`).
    The layer reclaims over the whole node, so that only a node of one GPU can compare the latter.
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        scores: np.ndarray | None,
        policy: Policy,
        config: Mapping[str, Any],
        *,
        layer_caches: bool = False,
        check_every: int = 1,
    ) -> None:
        self.columns = {name: values.tolist() for name, values in columns.items()}
        self.scores = scores
        gpus = config["gpus"]
        blocks = {tier: int(config[f"{tier}_blocks"]) for tier in TIERS}
        self.falls_back = policy.name not in ("hbf-only", "hbm-only")
        self.engine, self.predictor = Engine(gpus, blocks, layer_caches=layer_caches), KnownScore()
        self.layer = Placement(
            gpus * blocks["hbm"],
            gpus * blocks["hbf"],
            policy=policy,
            predictor=self.predictor,
            keeps_prompts=layer_caches,
            engine=self.engine,
        )
        self.layer_caches = layer_caches
        self.own: dict[int, list[int]] = defaultdict(list)  # blocks of segments
        self.in_use: dict[int, int] = defaultdict(int)  # requests that have started on a segment
        self.running: dict[str, None] = {}
        self.live: dict[int, list[int]] = defaultdict(list)  # segments of sessions
        self.prompts: dict[tuple[int, int], Prompt] = defaultdict(Prompt)
        self.unheld: list[list[tuple[int, int]]] = [[] for _ in range(gpus)]  # least recent first
        self.waiting: set[int] = set()
        self.ended_early: dict[int, tuple[int, list[int]]] = {}  # GPU and blocks, until it is told
        self.check_every, self.events, self.seen = check_every, 0, [0] * 8
        self.reclaimed = self.adopted = self.deferred = 0

    def __call__(self, tables: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Hear what happened since the last call."""
        for event in rows(tables["segments"]):
            self.hear(event)

    def hear(self, event: dict[str, int]) -> None:
        hear = (self.open, self.start, self.write, self.drew, self.evict, self.end, self.boundary,
                self.close)  # fmt: skip
        self.seen[event["what"]] += 1
        self.engine.gpu = event["gpu"]
        hear[event["what"]](event, event["draw"] << 20 | event["segment"])
        self.events += 1
        gpu = event["gpu"]
        if event["what"] != DRAW:  # the free lists are told after all draws of a step
            free = [len(self.engine.lists[gpu][tier]) for tier in TIERS]
            for early_gpu, blocks in self.ended_early.values():
                if early_gpu == gpu:
                    free = [n - early for n, early in zip(free, self.counts(blocks), strict=True)]
            assert free == [event["hbm_free"], event["hbf_free"]], event
        if self.events % self.check_every == 0:
            self.census()

    def counts(self, blocks: Sequence[int]) -> tuple[int, int]:
        return self.engine.counts([block for block in blocks if block not in self.engine.cached])

    def census(self) -> None:
        """The layer adds up, and has those blocks free that lie on the engine's lists or caches."""
        unheld: list[int] = []
        for prompt in self.prompts.values() if not self.layer_caches else ():
            unheld += prompt.blocks if set(prompt.holders) <= set(self.ended_early) else []
        self.engine.gpu, self.engine.unheld = None, self.engine.counts(unheld)
        self.layer.check()

    def row(self, event: dict[str, int]) -> int:
        return self.columns["session_segment_offsets"][event["session"]] + event["segment"]

    def prompt(self, event: dict[str, int]) -> Prompt | None:
        key = self.columns["segment_prefix"][self.row(event)]
        return self.prompts[event["gpu"], key] if key >= 0 else None

    def open(self, event: dict[str, int], name: int) -> None:
        row, session = self.row(event), event["draw"]
        kind = CLASSES[self.columns["segment_class"][row]]
        closes = BOUNDARIES[self.columns["segment_closed_by"][row]]
        score = np.nan if self.scores is None else self.scores[row]
        if kind == "reviewer" or (kind == "worker" and not np.isnan(score)):
            self.predictor.value = score
            record = {"instruction": "", "role": kind}
            spawned = self.layer.spawn(name, record, session=session, closes=closes)
            assert spawned.tier == TIERS[event["tier"]], "the same target"
        else:
            self.layer.open(name, kind, session=session, closes=closes)
            target = TIERS[event["tier"]]
            if self.layer.stats().free_blocks[target]:
                assert self.layer.plan(name, 1) == [target], "the same target"
        self.live[session].append(name)
        prompt = self.prompt(event)
        if prompt is not None:
            key = event["gpu"], self.columns["segment_prefix"][row]
            if prompt.blocks:
                cached = not prompt.holders and not self.layer_caches
                self.layer.adopt(name, prompt.blocks, cached=cached)
                self.adopted += len(prompt.blocks)
            if key in self.unheld[event["gpu"]]:
                self.unheld[event["gpu"]].remove(key)
            prompt.holders[name] = None

    def used(self, event: dict[str, int]) -> list[int]:
        request = self.columns["session_request_offsets"][event["session"]] + event["number"]
        first, last = self.columns["use_offsets"][request : request + 2]
        uses = [*self.columns["use_segment"][first:last], self.columns["output_segment"][request]]
        return [event["draw"] << 20 | segment for segment in dict.fromkeys(uses)]

    def start(self, event: dict[str, int], _name: int) -> None:
        used = self.used(event)
        request = f"{event['draw']}:{event['number']}"
        self.layer.start_request(request, used)
        self.running[request] = None
        for segment in used:
            self.in_use[segment] += 1

    def reclaim(self, gpu: int, needed: int, target: str) -> None:
        """Make room for a draw: off the least recent prompt that no session holds, end first."""
        if self.layer_caches:
            return
        lists = self.engine.lists[gpu]
        free = sum(map(len, lists.values())) if self.falls_back else len(lists[target])
        for _ in range(needed - free):
            key = self.unheld[gpu][0]
            block = self.prompts[key].blocks.pop()
            self.engine.cached.remove(block)
            self.engine.free([block])
            self.reclaimed += 1
            if not self.prompts[key].blocks:
                del self.unheld[gpu][0]

    def extend(self, event: dict[str, int], name: int, blocks: int) -> list[int]:
        if not blocks:
            return []
        gpu = event["gpu"]
        self.reclaim(gpu, blocks, TIERS[event["tier"]])
        drawn = self.layer.extend(name, blocks)
        for block in self.engine.reclaimed:
            key = self.unheld[gpu][0]
            assert self.prompts[key].blocks.pop() == block, "least recent prompt, last block first"
            self.reclaimed += 1
            if not self.prompts[key].blocks:
                del self.unheld[gpu][0]
        self.engine.reclaimed.clear()
        return drawn

    def write(self, event: dict[str, int], name: int) -> None:
        held = event["hbm_blocks"] + event["hbf_blocks"]
        prompt = self.prompt(event)
        own = self.own[name] if prompt is None else prompt.blocks
        written = self.extend(event, name, held - len(own))
        own += written
        assert self.engine.counts(own) == (event["hbm_blocks"], event["hbf_blocks"]), event
        if prompt is not None and written:
            self.engine.cached.update(written)
            for other in prompt.holders:
                if other != name:
                    self.layer.adopt(other, written)
                    self.adopted += len(written)

    def drew(self, event: dict[str, int], name: int) -> None:
        drawn = self.extend(event, name, 1)
        assert self.engine.place(drawn[0]) == (event["gpu"], TIERS[event["tier"]]), event
        self.own[name] += drawn

    def evict(self, event: dict[str, int], name: int) -> None:
        assert self.layer.evict(name).freed == sorted(self.own.pop(name, [])), event

    def end(self, event: dict[str, int], name: int) -> None:
        request = f"{event['draw']}:{event['number']}"
        if self.prompt(event) is None:
            held = self.engine.counts(self.own[name])
            assert held == (event["hbm_blocks"], event["hbf_blocks"]), event
        for segment in self.used(event):
            self.in_use[segment] -= 1
        released = self.layer.finish_request(request)
        del self.running[request]
        waited = {segment for segment in self.used(event) if segment in self.waiting}
        over = {segment for segment in waited if not self.in_use[segment]}
        assert set(released.closed) == over, "what waited ends with the last request"
        self.ends_early(event["gpu"], released.closed, released.freed)
        self.waiting -= over
        assert self.layer.finish_request(request).ignored == "repeated"

    def ends_early(self, gpu: int, closed: Sequence[Any], freed: Sequence[int]) -> None:
        """The layer has ended segments of which the simulator will tell within the instant."""
        held = [block for segment in closed for block in self.own.get(segment, [])]
        assert sorted(held) == [block for block in freed if block not in self.engine.cached]
        for segment in closed:
            self.ended_early[segment] = gpu, self.own.pop(segment, [])

    def boundary(self, event: dict[str, int], name: int) -> None:
        if self.in_use[name] < event["number"]:
            return  # Who has not started cannot be waited for: the harness holds the boundary back.
        kind, session = BOUNDARIES[event["boundary"]], event["draw"]
        released = self.layer.boundary(kind, session=session, segment=name)
        assert (released.waiting, released.closed, released.freed) == ([name], [], [])
        assert released.deferred == sorted(self.own[name])
        assert self.layer.boundary(kind, session=session, segment=name).ignored == "repeated"
        self.waiting.add(name)
        self.deferred += 1

    def close(self, event: dict[str, int], name: int) -> None:
        kind, session = BOUNDARIES[event["boundary"]], event["draw"]
        as_a_whole = session % 2 and not self.layer_caches
        if kind == "session_end" and as_a_whole and name not in self.ended_early:
            # In which order segments end that end together, decides what is reclaimed first.
            over = self.layer.boundary(kind, session=session)
            assert set(over.closed) == set(self.live[session]) - set(self.ended_early)
            self.ends_early(event["gpu"], over.closed, over.freed)
        prompt = self.prompt(event)
        if name in self.ended_early:
            del self.ended_early[name]
            assert self.layer.boundary(kind, session=session, segment=name).ignored == "late"
        else:
            released = self.layer.boundary(kind, session=session, segment=name)
            held = self.own.pop(name, []) if prompt is None else prompt.blocks
            is_kept = prompt is not None and self.layer_caches
            is_last = prompt is None or list(prompt.holders) == [name]
            assert released.closed == [name]
            assert released.freed == (sorted(held) if is_last and not is_kept else []), event
            assert released.still_shared == ([] if is_last or is_kept else sorted(held)), event
            assert released.kept_blocks == (len(held) if is_kept else 0), event
        self.live[session].remove(name)
        if prompt is not None:
            del prompt.holders[name]
            if prompt.blocks and not prompt.holders:
                key = event["gpu"], self.columns["segment_prefix"][self.row(event)]
                self.unheld[event["gpu"]].append(key)

    def over(self, fallbacks: int) -> None:
        """The run is over: what is left ends, and everything comes back."""
        assert self.layer.stats().fallback_blocks == fallbacks
        self.census()
        for session in [session for session, live in self.live.items() if live]:
            self.layer.boundary("session_end", session=session)
        for request in self.running:
            self.layer.abort(request)
        self.layer.reclaim(2**31)
        for prompt in self.prompts.values():
            prompt.holders.clear()
        self.census()
        left = self.layer.stats()
        assert left.free_blocks == left.total_blocks, "nothing is left"
        assert (left.sessions, left.running_requests, left.extents, left.reopened) == (0, 0, 0, 0)


def rows(columns: Mapping[str, np.ndarray]) -> Iterator[dict[str, int]]:
    """Records of columns, one by one."""
    names = list(columns)
    for values in zip(*(columns[name].tolist() for name in names), strict=True):
        yield dict(zip(names, values, strict=True))
