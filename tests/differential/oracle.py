"""The rules of replay in plain Python, to be read beside `docs/engine.md`. Nothing here is fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from .case import HBF, HBM, Config, MemoryTooSmallError, Request, Result, Segment, Workload
from .placing import Placing

TIMER, ARRIVAL, NEVER = 4, 5, 2**63  # the phases of an instant that take events; no instant


@dataclass(eq=False)
class Gpu:
    free: list[int]  # blocks by tier
    segments: list[LiveSegment] = field(default_factory=list)
    sessions: list[LiveSession] = field(default_factory=list)  # all, by start; ended ones too
    queue: list[tuple[int, tuple[int, int], Run]] = field(default_factory=list)  # time queued, key
    running: list[Run] = field(default_factory=list)  # in admission order
    landed_in_hbf: int = 0  # tokens of the suffixes of this boundary


@dataclass(eq=False)
class LiveSegment:
    spec: Segment
    prefix_tokens: int  # of a shared prompt, else 0
    tokens: int = 0  # materialised so far, resident or not
    resident: int = 0
    blocks: list[int] = field(default_factory=list)  # a stack; a block is known by its tier
    pins: int = 0
    holders: set[LiveSession] = field(default_factory=set)  # that have used it and not ended
    released: int = 0  # place in the reclaim list


@dataclass(eq=False)
class LiveSession:
    gpu: Gpu
    segments: list[LiveSegment] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def has_ended(self) -> bool:
        return all("end" in run.times for run in self.runs)


@dataclass(eq=False)
class Run:
    session: LiveSession
    key: tuple[int, int]  # (draw, request), the tie-breaker
    spec: Request
    segments: list[LiveSegment]  # of its uses, in context order
    output: LiveSegment
    to_write: dict[LiveSegment, int]  # tokens still to be materialised; shared prompts apart
    times: dict[str, int] = field(default_factory=dict)
    context_tokens: int = 0  # n₀
    generated: int = 0


class Simulator:
    def __init__(self, workload: Workload, config: Config) -> None:
        self.workload, self.config, self.policy = workload, config, config.policy
        self.placing = Placing(config)
        self.gpus = [Gpu([config.hbm_blocks, config.hbf_blocks]) for _ in range(config.gpus)]
        self.now, self.step_end, self.result, self.releases = 0, NEVER, Result(), count(1)
        starts = [workload.sessions[index].start_ps for index in config.draws]
        if config.arrivals[0] == "closed":
            _, sessions, ramp_ps = config.arrivals
            starts = [i * ramp_ps // sessions for i in range(min(sessions, len(config.draws)))]
        self.events = [(start_ps, ARRIVAL, (draw, 0), None) for draw, start_ps in enumerate(starts)]
        self.next_draw = len(starts)

    def run(self) -> Result:
        while self.events or self.step_end < NEVER:
            self.now = min([self.step_end, *(event[0] for event in self.events)])
            if self.step_end == self.now:
                self.end_step()
            self.fire_events()
            if self.step_end in (NEVER, self.now):  # a step boundary
                self.admit()
                self.draw_blocks()
                self.start_step()
        self.result.end_ps, self.result.free = self.now, [gpu.free for gpu in self.gpus]
        return self.result

    def end_step(self) -> None:  # phase 1
        running = sorted((run for gpu in self.gpus for run in gpu.running), key=lambda run: run.key)
        for run in running:
            run.generated += 1
            run.times.setdefault("first_token", self.now)
        self.finish([run for run in running if run.generated == run.spec.output_tokens])

    def finish(self, done: list[Run]) -> None:  # phases 2 and 3
        for run in done:
            run.times["end"], gpu = self.now, run.session.gpu
            gpu.running = [other for other in gpu.running if other is not run]
            for segment in reversed(run.segments):
                segment.pins, segment.released = segment.pins - 1, next(self.releases)
            for successor in run.session.runs:
                edges = [(run.session.runs[r].times, delay) for r, _, delay in successor.spec.after]
                if any(t is run.times for t, _ in edges) and all("end" in t for t, _ in edges):
                    ready_ps = max(times["end"] + delay for times, delay in edges)
                    self.events.append((ready_ps, TIMER, successor.key, successor))
        for run in done:
            self.close_segments(run.session)
        for run in done:
            self.write_carried(run)
        for session in dict.fromkeys(run.session for run in done if run.session.has_ended()):
            self.end_session(session)

    def close_segments(self, session: LiveSession) -> None:
        later = ["session_end"] + ["turn_end"] * (self.config.turn_end == "next-message")
        for segment in session.segments:
            if segment.spec.closed_by not in later:
                users = [run for run in session.runs if segment in run.segments]
                if all("end" in r.times for r in [session.runs[segment.spec.closed_after], *users]):
                    self.close(session.gpu, [segment])

    def close(self, gpu: Gpu, segments: list[LiveSegment]) -> None:
        for segment in [] if self.policy.keeps else segments:
            self.placing.close(segment)
            self.lose_blocks(gpu, [segment])
            segment.released = next(self.releases)

    def write_carried(self, ended: Run) -> None:
        runs = ended.session.runs if self.config.turn_end == "last-output" else []
        for run in [r for r in runs if max(r.spec.user_predecessors, default=-1) == ended.key[1]]:
            for segment in [s for s in run.segments if "stripped" in s.spec.segment_class]:
                first_writer = next((r for r in runs if r.to_write.get(segment)), None)
                if first_writer is run and segment.tokens == 0:
                    self.placing.open(segment, self.gpus)
                    write = (segment, 0, run.to_write[segment])
                    if self.can_be_had(run.session.gpu, [write]):
                        run.to_write[segment], segment.released = 0, next(self.releases)
                        self.write(run.session.gpu, *write)

    def end_session(self, session: LiveSession) -> None:
        for segment in session.segments:
            segment.holders.discard(session)
        self.close(session.gpu, session.segments)
        if self.next_draw < len(self.config.draws):  # closed loop: the next one takes its place
            self.events.append((self.now, ARRIVAL, (self.next_draw, 0), None))
            self.next_draw += 1

    def fire_events(self) -> None:  # phases 4 and 5
        due = sorted(event for event in self.events if event[0] == self.now)
        self.events = [event for event in self.events if event[0] > self.now]
        for _, phase, (draw, _), timed in due:
            run = self.arrive(draw) if phase == ARRIVAL else timed
            if "ready" not in run.times:
                self.become_ready(run)
            else:  # its prefill has ended
                run.session.gpu.queue.append((self.now, run.key, run))

    def arrive(self, draw: int) -> Run:  # returns the first request
        gpu = min(self.gpus, key=lambda gpu: sum(not s.has_ended() for s in gpu.sessions))
        spec, session = self.workload.sessions[self.config.draws[draw]], LiveSession(gpu)
        gpu.sessions.append(session)
        for index, segment in enumerate(spec.segments):
            key, written = segment.prefix_key, [dict(r.uses).get(index, 0) for r in spec.requests]
            live = LiveSegment(segment, prefix_tokens=0 if key is None else sum(written))
            copies = [s for s in gpu.segments if key is not None and s.spec.prefix_key == key]
            gpu.segments += [] if copies else [live]
            session.segments += copies or [live]
        for index, request in enumerate(spec.requests):
            writes = {session.segments[used]: written for used, written in request.uses}
            output = session.segments[request.output_segment]
            to_write = {s: written for s, written in writes.items() if not s.prefix_tokens}
            run = Run(session, (draw, index), request, list(writes | {output: 0}), output, to_write)
            session.runs.append(run)
            self.result.requests[run.key] = run.times
        return session.runs[0]

    def become_ready(self, run: Run) -> None:
        gpu, run.times["ready"] = run.session.gpu, self.now
        if self.config.turn_end == "next-message":
            turns = [s for s in run.session.segments if s.spec.closed_by == "turn_end"]
            self.close(gpu, [s for s in turns if s.spec.closed_after in run.spec.user_predecessors])
        for segment in run.segments:
            self.placing.open(segment, self.gpus)
            segment.pins += 1
            segment.holders.add(run.session)
        if any(again + new for _, again, new in self.suffix(run)):
            self.events.append((self.now + self.config.ttft_ref_ps, TIMER, run.key, run))
        else:
            gpu.queue.append((self.now, run.key, run))

    def suffix(self, run: Run) -> list[tuple[LiveSegment, int, int]]:  # (…, again, new) tokens
        new = {s: s.prefix_tokens for s in run.segments if s.tokens == 0} | run.to_write
        return [(s, s.tokens - s.resident, new.get(s, 0)) for s in run.segments]

    def admit(self) -> None:  # phase 6
        for gpu in self.gpus:
            gpu.landed_in_hbf = 0
            while gpu.queue:
                head, timers = min(gpu.queue)[2], [run for _, _, _, run in self.events if run]
                suffix, named = self.suffix(head), len(head.spec.uses)
                if len(gpu.running) < self.config.slots and self.can_be_had(gpu, suffix):
                    gpu.queue.remove(min(gpu.queue))
                    gpu.landed_in_hbf += sum(self.write(gpu, *part) for part in suffix)
                    head.to_write.clear()
                    head.times.setdefault("admitted", self.now)
                    if not head.generated:  # else it comes back after a preemption
                        head.context_tokens = sum(s.tokens for s in head.segments[:named])
                    if head.spec.output_tokens:
                        gpu.running.append(head)
                    else:
                        self.finish([head])
                elif gpu.running or any(run.session.gpu is gpu for run in timers):
                    break
                else:
                    self.lose_a_session(gpu, head)

    def draw_blocks(self) -> None:  # phase 7
        for gpu in self.gpus:
            for run in list(gpu.running):
                while run in gpu.running and not self.can_be_had(gpu, [(run.output, 0, 1)]):
                    if len(gpu.running) > 1:
                        self.preempt(gpu.running.pop())
                    else:
                        self.lose_a_session(gpu, run)
                if run in gpu.running:
                    self.write(gpu, run.output, 0, 1)

    def preempt(self, run: Run) -> None:
        self.result.preemptions += 1
        self.lose_blocks(run.session.gpu, [s for s in run.segments if s.pins == 1])
        self.events.append((self.now + self.config.ttft_ref_ps, TIMER, run.key, run))

    def lose_a_session(self, gpu: Gpu, spared: Run) -> None:
        kept = spared.segments + self.reclaim_list(gpu)
        for session in reversed(gpu.sessions):
            if self.lose_blocks(gpu, [s for s in session.segments if s not in kept]):
                self.result.session_losses += 1
                return
        raise MemoryTooSmallError(spared.key)

    def lose_blocks(self, gpu: Gpu, segments: list[LiveSegment]) -> int:
        lost = [s for s in segments for _ in s.blocks if not s.prefix_tokens]
        for segment in lost:
            self.free_top_block(gpu, segment)
        return len(lost)

    def free_top_block(self, gpu: Gpu, segment: LiveSegment) -> None:
        gpu.free[segment.blocks.pop()] += 1
        segment.resident = min(segment.resident, len(segment.blocks) * self.config.block_tokens)

    def reclaim_list(self, gpu: Gpu) -> list[LiveSegment]:  # least recent first
        unread = [s for s in gpu.segments if s.blocks and not s.pins]
        if not self.policy.keeps:
            unread = [s for s in unread if s.prefix_tokens and not s.holders]
        return sorted(unread, key=lambda segment: segment.released)

    def can_be_had(self, gpu: Gpu, writes: list[tuple[LiveSegment, int, int]]) -> bool:
        had, needed = list(gpu.free), [0, 0]
        for tier in [tier for segment in self.reclaim_list(gpu) for tier in segment.blocks]:
            had[tier] += 1
        for segment, again, new in writes:
            blocks = -(-(segment.resident + again + new) // self.config.block_tokens)
            needed[self.placing.tiers[segment]] += blocks - len(segment.blocks)
        if self.policy.falls_back:
            return sum(needed) <= sum(had)
        return needed[HBM] <= had[HBM] and needed[HBF] <= had[HBF]

    def write(self, gpu: Gpu, segment: LiveSegment, again: int, new: int) -> int:  # tokens in HBF
        name, in_hbf = segment.spec.segment_class, 0
        for tokens in [self.result.rematerialised] * again + [self.result.materialised] * new:
            if segment.resident % self.config.block_tokens == 0:
                segment.blocks.append(self.draw_block(gpu, self.placing.tiers[segment]))
            segment.resident += 1
            tokens[name][segment.blocks[-1]] += 1
            in_hbf += segment.blocks[-1] == HBF
        segment.tokens += new
        return in_hbf

    def draw_block(self, gpu: Gpu, target: int) -> int:
        while True:
            for tier in (target, 1 - target) if self.policy.falls_back else (target,):
                if gpu.free[tier]:
                    gpu.free[tier] -= 1
                    self.result.fallbacks += tier != target
                    return tier
            self.free_top_block(gpu, self.reclaim_list(gpu)[0])
            self.result.reclaimed_blocks += 1

    def start_step(self) -> None:  # phase 8
        cost, running = self.config.cost, sum(len(gpu.running) for gpu in self.gpus)
        local_ps = max(self.local_ps(gpu) for gpu in self.gpus)
        step_ps = local_ps + cost.shared_ps[running] + cost.overhead_ps
        self.step_end = self.now + step_ps if running else NEVER
        self.result.steps += running > 0

    def local_ps(self, gpu: Gpu) -> int:
        cost, reads = self.config.cost, [run.context_tokens + run.generated for run in gpu.running]
        chunked = cost.window_kind == "chunked" and cost.window
        windowed = sum(c % cost.window if chunked else min(c, cost.window) for c in reads)
        flushed = sum(run.output.blocks[-1] == HBF for run in gpu.running)
        flushed += gpu.landed_in_hbf if self.config.landing == "sync" else 0
        local_ps = cost.local_ps[len(reads)] + cost.context_ps * sum(reads)
        return (local_ps + cost.window_ps * windowed + cost.flush_ps * flushed) if reads else 0
