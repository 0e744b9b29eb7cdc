"""Sessions of a single agent whose harness strips reasoning when a turn ends.

A turn k of a session writes ``laden[k]`` tokens into its reasoning-laden segment (the user's text,
outputs, observations) and, unless it is the session's last, ``stripped[k]`` tokens into the
reasoning-stripped segment that the next turn starts with: the same content less the reasoning.

    tokens written    = shared prompt + own prompts + sum laden + sum stripped but the last turns'
    tokens processed  = sum over requests (prompts + stripped before + laden so far + output)

Tokens written are met exactly: by the number of turns where the benchmark does not fix it, by the
sessions' own prompts where it does. Tokens processed are met by the length that the specification
gives the shared prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lachesis.errors import InputError
from lachesis.traces.generator.draws import (
    Flags,
    Floats,
    Ints,
    apportion,
    index_within,
    normals,
    permutation,
    place,
    strata,
    stream,
    sums_before,
    whole_numbers,
)
from lachesis.traces.generator.specification import Specification, Temporal

# The least a turn carries: a token of user text, one of visible output a round, one an observation.
_USER_MINIMUM = 4
_VISIBLE_MINIMUM = 4
_OBSERVATION_MINIMUM = 2
# Reasoning takes at least this share of a laden turn, so that stripping always removes something.
_REASONING_SHARE_MINIMUM = 0.05
_SWAP_PASSES = 10_000


@dataclass(frozen=True)
class TemporalSizes:
    """Sizes of one workload, per session, turn and round (turns by session, rounds by turn)."""

    turns: Ints
    """Turns of each session."""
    laden: Ints
    stripped: Ints
    """Tokens a turn carries forward (for a last turn: would carry, had the session gone on)."""
    rounds: Ints
    """Rounds of each turn."""
    user: Ints
    """Tokens of user text of each turn."""
    output: Ints
    """Output tokens of each round, reasoning included."""
    reasoning: Ints
    observation: Ints
    """Tokens of the observation in each round's input (0 in a turn's first round)."""
    shared_prompt: int
    own_prompt: Ints
    """Prompt tokens of each session that no other session shares."""

    @property
    def context_before(self) -> Ints:
        """For each round, the tokens in its input beyond the prompts."""
        carried = np.repeat(sums_before(self.stripped, self.turns), self.rounds)
        so_far = sums_before(self.output + self.observation, self.rounds)
        return carried + np.repeat(self.user, self.rounds) + so_far + self.observation


def draw(specification: Specification, seed: int, scale: float) -> TemporalSizes:
    """Draw the sizes of every session; raises ``InputError`` if the specification cannot be met."""
    law = specification.temporal
    if law is None:
        raise InputError("must have [temporal]", path=specification.name)
    counts = specification.counts
    sessions = max(1, round(counts.sessions.value * scale))
    requests = max(1, round(counts.requests.value * scale))
    written = max(1, round(counts.tokens_written.value * scale))
    rng = _Streams(seed, specification.name)

    turns = _turns(law, sessions, written, scale, rng)
    laden = _laden(law, turns, rng)
    stripped = _stripped(law, turns, laden, rng)
    if law.turns.total is None:
        laden, stripped = _meet_written(
            laden, stripped, turns, written, law.shared_prompt_tokens.value
        )
    rounds = _rounds(law, turns, stripped, requests, rng)
    user = _user(law, turns, stripped, rounds, rng)
    output, reasoning, observation = _split(law, laden, stripped, rounds, user, rng)

    shared = law.shared_prompt_tokens.value
    own = np.zeros(sessions, dtype=np.int64)
    if law.own_prompt_sigma is not None:
        kept = int(stripped[~_last(turns)].sum())
        weights = np.exp(law.own_prompt_sigma.value * normals(rng["own prompt"], sessions))
        left = np.array([written - shared - int(laden.sum()) - kept])
        own = apportion(left, weights, np.array([sessions]), minimum=1)
    return TemporalSizes(
        turns, laden, stripped, rounds, user, output, reasoning, observation, shared, own
    )


class _Streams:
    """Streams of one workload by purpose, so that a change in one draw leaves the others alone."""

    def __init__(self, seed: int, workload: str) -> None:
        self.seed = seed
        self.workload = workload

    def __getitem__(self, purpose: str) -> np.random.Generator:
        return stream(self.seed, self.workload, purpose)


def _last(turns: Ints) -> Flags:
    last: Flags = index_within(turns) == np.repeat(turns, turns) - 1
    return last


def _turns(law: Temporal, sessions: int, written: int, scale: float, rng: _Streams) -> Ints:
    """Turns of each session; their total, where free, is what tokens written leave room for."""
    laden, stripped = law.laden_tokens.mean.value, law.stripped_tokens.mean.value
    if law.turns.total is not None:
        total = round(law.turns.total.value * scale)
    else:
        # written = prompt + turns x laden + (turns - sessions) x stripped
        total = round(
            (written - law.shared_prompt_tokens.value + sessions * stripped) / (laden + stripped)
        )
    minimum, maximum = law.turns.minimum.value, law.turns.maximum.value
    total = min(max(total, minimum * sessions), maximum * sessions)
    scores = law.turns.sigma.value * strata(sessions)
    ascending = whole_numbers(lambda s: np.exp(s + scores), total, minimum, maximum)
    return ascending[permutation(rng["turns"], sessions)]


def _laden(law: Temporal, turns: Ints, rng: _Streams) -> Ints:
    count = int(turns.sum())
    explained = law.session_correlation.value
    of_session = np.repeat(normals(rng["laden of session"], len(turns)), turns)
    score = np.sqrt(explained) * of_session
    score = score + np.sqrt(1.0 - explained) * normals(rng["laden"], count)
    score = score + law.last_turn_shift.value * _last(turns)
    return np.rint(place(law.laden_tokens.values(count), score)).astype(np.int64)


def _stripped(law: Temporal, turns: Ints, laden: Ints, rng: _Streams) -> Ints:
    """Carried tokens: the published law over turns that write them, correlated with laden tokens.

    The law is dealt out by rank; where a turn would carry more than it may (its laden tokens less
    the least reasoning), it swaps with a turn that has room, so the law itself stays untouched.
    """
    count = len(laden)
    correlation = law.laden_stripped_correlation.value
    noise = normals(rng["stripped"], count)
    laden_score = place(strata(count), laden.astype(np.float64) + 1e-6 * noise)
    score = correlation * laden_score + np.sqrt(1.0 - correlation**2) * noise
    room = np.floor(laden * (1.0 - _REASONING_SHARE_MINIMUM)).astype(np.int64)
    stripped = np.empty(count, dtype=np.int64)
    last = _last(turns)
    for is_last in (False, True):
        members = np.flatnonzero(last == is_last)
        values = law.stripped_tokens.values(len(members))
        dealt = np.rint(place(values, score[members])).astype(np.int64)
        if is_last:  # It writes no stripped segment, so no published law binds it.
            if law.last_turn_carried_share is not None:
                share = law.last_turn_carried_share.value
                dealt = np.rint(share * laden[members]).astype(np.int64)
            dealt = np.minimum(dealt, room[members])
        stripped[members] = _fit_into(dealt, room[members], rng["swaps"])
    least = _USER_MINIMUM + _VISIBLE_MINIMUM
    carried: Ints = np.maximum(stripped, np.minimum(least, room))
    return carried


def _fit_into(values: Ints, room: Ints, rng: np.random.Generator) -> Ints:
    """Permute ``values`` by swaps until each is at most its ``room``.

    Where even the best order leaves some value without room, the largest are cut to what there is
    and the others raised in proportion, so that the sum stays as long as there is room for it.
    """
    values = _dominated(values, np.sort(room))
    for _ in range(_SWAP_PASSES):
        excess = np.flatnonzero(values > room)
        if len(excess) == 0:
            return values
        item = excess[np.argmax(values[excess])]
        able = room >= values[item]
        partners = np.flatnonzero(able & (values <= room[item]))
        if len(partners) == 0:
            # Nobody can trade places outright; a smaller value still makes the excess smaller.
            partners = np.flatnonzero(able & (values < values[item]))
        partner = partners[int(rng.random() * len(partners))]
        values[item], values[partner] = values[partner], values[item]
    raise InputError("could not be fitted into the laden tokens", field="stripped_tokens")


def _dominated(values: Ints, room: Ints) -> Ints:
    """Cut each rank of the values to the room of that rank (``room`` ascending); keep the sum."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    cut = np.minimum(ranked, room)
    while (missing := int(ranked.sum() - cut.sum())) > 0:
        able = (cut < room).astype(np.int64)
        if not able.any():
            # A small corpus can deal its few long turns to sessions' ends; it then carries less.
            break
        weights = cut * able.astype(np.float64)
        cut = np.minimum(cut + apportion(np.array([missing]), weights, np.array([len(cut)])), room)
    fitted = np.empty_like(values)
    fitted[order] = cut
    return fitted


def _meet_written(
    laden: Ints, stripped: Ints, turns: Ints, written: int, prompt: int
) -> tuple[Ints, Ints]:
    """Final whole-number adjustment: spread what is left of tokens written over laden turns."""
    missing = written - prompt - int(laden.sum()) - int(stripped[~_last(turns)].sum())
    one_group = np.array([len(laden)])
    share = apportion(np.array([abs(missing)]), laden.astype(np.float64), one_group)
    return laden + np.sign(missing) * share, stripped


def _rounds(law: Temporal, turns: Ints, stripped: Ints, requests: int, rng: _Streams) -> Ints:
    count = int(turns.sum())
    correlation = law.rounds_correlation.value
    noise = normals(rng["rounds"], count)
    score = correlation * place(strata(count), stripped + 1e-6 * noise)
    score = score + np.sqrt(1.0 - correlation**2) * noise
    # A round needs visible output, and all but the first an observation.
    most = (stripped - _USER_MINIMUM + _OBSERVATION_MINIMUM) // (
        _VISIBLE_MINIMUM + _OBSERVATION_MINIMUM
    )
    most = np.maximum(most, 1)
    shape = law.rounds_sigma.value * place(strata(count), score)
    return _capped(shape, requests, most)


def _capped(log_shape: Floats, total: int, most: Ints) -> Ints:
    """Whole numbers of at least 1 and at most ``most`` that sum to ``total``."""
    if not len(most) <= total <= int(most.sum()):
        raise InputError(
            f"must lie between {len(most)} and {int(most.sum())} for the turns drawn",
            field="requests",
            value=total,
        )
    low, high = -20.0, 20.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if np.clip(np.rint(np.exp(middle + log_shape)), 1, most).sum() < total:
            low = middle
        else:
            high = middle
    values = np.clip(np.rint(np.exp(low + log_shape)), 1, most).astype(np.int64)
    exact = np.exp(high + log_shape)
    while (missing := total - int(values.sum())) > 0:
        able = np.flatnonzero(values < most)
        values[able[np.argsort(values[able] - exact[able], kind="stable")[:missing]]] += 1
    return values


def _user(law: Temporal, turns: Ints, stripped: Ints, rounds: Ints, rng: _Streams) -> Ints:
    count = int(turns.sum())
    values = place(law.user_tokens.values(count), normals(rng["user"], count))
    drawn = np.rint(values).astype(np.int64)
    needed = rounds * _VISIBLE_MINIMUM + (rounds - 1) * _OBSERVATION_MINIMUM
    # Of a short turn the user's text is at most a half.
    most = np.minimum(stripped - needed, np.maximum(stripped // 2, _USER_MINIMUM))
    return np.clip(drawn, 1, np.maximum(most, 1))


def _split(
    law: Temporal, laden: Ints, stripped: Ints, rounds: Ints, user: Ints, rng: _Streams
) -> tuple[Ints, Ints, Ints]:
    """Outputs, reasoning and observations of each round of each turn."""
    carried = stripped - user
    calls = rounds - 1
    needed_visible = rounds * _VISIBLE_MINIMUM
    share = law.observation_share.value
    observed = np.clip(
        np.rint(share * carried).astype(np.int64), calls * _OBSERVATION_MINIMUM,
        np.maximum(carried - needed_visible, calls * _OBSERVATION_MINIMUM),
    )  # fmt: skip
    observed = np.where(calls > 0, observed, 0)
    visible = carried - observed
    reasoned = _reasoned(law, laden - stripped, calls)
    observed = observed + laden - stripped - reasoned
    total_rounds = int(rounds.sum())
    per_round = apportion(
        visible,
        np.exp(0.6 * normals(rng["visible"], total_rounds)),
        rounds,
        minimum=_least(visible, rounds, _VISIBLE_MINIMUM),
    )
    reasoning = apportion(reasoned, _reasoning_weights(law, rounds, rng), rounds)
    observation = np.zeros(total_rounds, dtype=np.int64)
    later = index_within(rounds) > 0
    observation[later] = apportion(
        observed,
        np.exp(0.8 * normals(rng["observation"], int(later.sum()))),
        calls,
        minimum=_least(observed[calls > 0], calls[calls > 0], _OBSERVATION_MINIMUM),
    )
    return per_round + reasoning, reasoning, observation


def _reasoned(law: Temporal, dropped: Ints, calls: Ints) -> Ints:
    """Reasoning of each turn, of what it does not carry forward; the rest are observations.

    The law is dealt out by rank of what is dropped. A turn without tool calls has no observations.
    """
    if law.reasoning_tokens is None:
        return dropped
    values = place(law.reasoning_tokens.values(len(dropped)), dropped.astype(np.float64))
    most = np.maximum(np.rint(values).astype(np.int64), 1)
    reasoned: Ints = np.where(calls > 0, np.minimum(dropped, most), dropped)
    return reasoned


def _reasoning_weights(law: Temporal, rounds: Ints, rng: _Streams) -> Floats:
    """How a turn's reasoning falls on its rounds."""
    weights: Floats = np.exp(0.7 * normals(rng["reasoning"], int(rounds.sum())))
    if law.first_round_reasoning_share is None:
        return weights
    share = law.first_round_reasoning_share.value
    opens = index_within(rounds) == 0
    # Weights of the first rounds are shares of those of the later ones.
    later = np.add.reduceat(np.where(opens, 0.0, weights), np.flatnonzero(opens))
    weights[opens] = np.where(rounds > 1, share * later, 1.0)
    weights[~opens] *= 1.0 - share
    return weights


def _least(totals: Ints, lengths: Ints, wanted: int) -> int:
    """The wanted minimum an item, or less where some group's total does not reach that far."""
    return int(min(wanted, int((totals // np.maximum(lengths, 1)).min()))) if len(totals) else 0
