"""Words of spawn records, with a planted signal about the worker's lifetime.

The signal is planted, not measured. A worker's log lifetime is standardised over the five corpora,
blurred by noise (less of it for short workers), and the blurred score sets how elaborate the
sentences of its instruction and context sound, and how many optional tools it is given. A linear
model over a bag of words can recover the blurred score, and no more than that.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from lachesis.traces.generator.draws import Floats, Ints, normals, stream
from lachesis.traces.generator.specification import DATA_DIRECTORY, Share, Sourced, WorkerTask


class SpawnSignal(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """How the text of spawn records tells a worker's lifetime (``data/spawn_signal.toml``)."""

    log_lifetime_center: Sourced[float]
    log_lifetime_scale: Sourced[float]
    noise_short: Sourced[float]
    """Blur of the standard score of workers that are told clearly."""
    noise_long: Sourced[float]
    noise_limit: Sourced[float]
    """Largest noise, in standard deviations."""
    clear_below: Sourced[float]
    """Standard score below which a worker counts as short."""
    turned_back: Sourced[Share]
    """Share of longer workers that noise makes sound short, and that are turned back."""
    words_per_score: Sourced[float]
    word_noise: Sourced[float]
    tokens_per_sentence: Sourced[float]
    optional_tool_slope: Sourced[float]
    verbs: Sourced[list[list[str]]]
    qualifiers: Sourced[list[list[str]]]


@dataclass(frozen=True)
class SpawnTexts:
    """What each worker's spawn record says."""

    instructions: list[str]
    contexts: list[str]
    tools: list[list[str]]


@cache
def load_signal() -> SpawnSignal:
    """The planted signal's parameters."""
    document = tomllib.loads((DATA_DIRECTORY / "spawn_signal.toml").read_text("utf-8"))
    return msgspec.convert(document, SpawnSignal)


def blurred_score(signal: SpawnSignal, lifetime_s: Floats, rng: np.random.Generator) -> Floats:
    """Standard score of each log lifetime plus noise, with short lifetimes told more clearly.

    Below ``clear_below`` the noise is small. Of the others that noise carries below it, a share is
    turned back above it by the same distance: a longer worker seldom sounds like a short one.
    """
    score = np.log(lifetime_s) - signal.log_lifetime_center.value
    score = score / signal.log_lifetime_scale.value
    bound = signal.clear_below.value
    clear = score < bound
    noise = np.where(clear, signal.noise_short.value, signal.noise_long.value)
    limit = signal.noise_limit.value
    blurred = score + noise * np.clip(normals(rng, len(score)), -limit, limit)
    mistaken = ~clear & (blurred < bound)
    turned = mistaken & (rng.random(len(score)) < signal.turned_back.value)
    told: Floats = np.where(turned, 2.0 * bound - blurred, blurred)
    return told


def write_texts(
    workload: str,
    task: WorkerTask,
    lifetime_s: Floats,
    instruction_tokens: Ints,
    context_tokens: Ints,
    seed: int,
) -> SpawnTexts:
    """Texts of the workers with these lifetimes and record sizes."""
    signal = load_signal()
    score = blurred_score(signal, lifetime_s, stream(seed, workload, "signal"))

    def text(purpose: str, tokens: Ints) -> list[str]:
        return _sentences(signal, task, score, tokens, stream(seed, workload, purpose))

    return SpawnTexts(
        instructions=text("instruction text", instruction_tokens),
        contexts=text("context text", context_tokens),
        tools=_tools(signal, task, score, stream(seed, workload, "spawn tools")),
    )


def _sentences(
    signal: SpawnSignal, task: WorkerTask, score: Floats, tokens: Ints, rng: np.random.Generator
) -> list[str]:
    counts = np.maximum(np.rint(tokens / signal.tokens_per_sentence.value), 1).astype(np.int64)
    total = int(counts.sum())
    mean_level = np.repeat(signal.words_per_score.value * score, counts)
    verbs = _pick(signal.verbs.value, mean_level, signal.word_noise.value, rng)
    qualifiers = _pick(signal.qualifiers.value, mean_level, signal.word_noise.value, rng)
    objects = task.objects.value
    chosen = (rng.random(total) * len(objects)).astype(np.int64).tolist()
    sentences = [
        f"{verb} the {objects[choice]} {qualifier}."
        for verb, choice, qualifier in zip(verbs, chosen, qualifiers, strict=True)
    ]
    ends = np.cumsum(counts).tolist()
    return [
        " ".join(sentences[end - count : end])
        for end, count in zip(ends, counts.tolist(), strict=True)
    ]


def _pick(
    levels: list[list[str]], mean_level: Floats, noise: float, rng: np.random.Generator
) -> list[str]:
    """One phrase a sentence, of a level that strays around its worker's."""
    middle = (len(levels) - 1) / 2.0
    strayed = middle + mean_level + noise * normals(rng, len(mean_level))
    level = np.clip(np.rint(strayed), 0, len(levels) - 1).astype(np.int64)
    sizes = np.array([len(each) for each in levels])
    within = (rng.random(len(level)) * sizes[level]).astype(np.int64)
    flat: NDArray[np.object_] = np.array(
        [phrase for each in levels for phrase in each], dtype=object
    )
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    phrases: list[str] = flat[first[level] + within].tolist()
    return phrases


def _tools(
    signal: SpawnSignal, task: WorkerTask, score: Floats, rng: np.random.Generator
) -> list[list[str]]:
    optional = task.optional_tools.value
    chance = 1.0 / (1.0 + np.exp(-signal.optional_tool_slope.value * score))
    given = rng.random((len(score), len(optional))) < chance[:, None]
    always = task.tools.value
    return [
        [*always, *(tool for tool, has in zip(optional, row, strict=True) if has)]
        for row in given.tolist()
    ]
