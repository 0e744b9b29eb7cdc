"""The planted signal: there, clearer for short workers, and no stronger than it should be."""

import msgspec
import numpy as np
import pytest

from lachesis.calibrate import signal_check
from lachesis.traces.generator import corpora, published
from lachesis.traces.generator.draws import stream
from lachesis.traces.generator.spawn_text import blurred_score, load_signal, write_texts
from lachesis.traces.generator.specification import load


@pytest.fixture
def signal():
    return load_signal()


@pytest.fixture
def task():
    law = load("webarena").structural
    return law.task


def lifetimes(signal, scores):
    center, scale = signal.log_lifetime_center.value, signal.log_lifetime_scale.value
    return np.exp(center + scale * np.asarray(scores))


def test_short_workers_are_told_with_less_noise(signal):
    for score, noise in ((-2.0, signal.noise_short.value), (2.5, signal.noise_long.value)):
        told = blurred_score(signal, lifetimes(signal, np.full(4000, score)), stream(1, "x"))
        assert told.std() == pytest.approx(noise, rel=0.2)
        assert told.mean() == pytest.approx(score, abs=0.1)


def test_longer_workers_seldom_sound_short(signal):
    told = blurred_score(signal, lifetimes(signal, np.full(4000, -0.5)), stream(1, "x"))
    unturned = msgspec.structs.replace(
        signal, turned_back=msgspec.structs.replace(signal.turned_back, value=0.0)
    )
    plain = blurred_score(unturned, lifetimes(signal, np.full(4000, -0.5)), stream(1, "x"))
    bound = signal.clear_below.value
    share = (told < bound).mean() / (plain < bound).mean()
    assert share == pytest.approx(1.0 - signal.turned_back.value, abs=0.05)


def test_words_rise_with_the_score(signal, task):
    tokens = np.full(400, 300)
    words = {}
    for score in (-3.0, 3.0):
        texts = write_texts("w", task, lifetimes(signal, np.full(400, score)), tokens, tokens, 1)
        joined = " ".join(texts.instructions + texts.contexts)
        words[score] = {
            level: sum(joined.count(verb) for verb in signal.verbs.value[level])
            for level in (0, len(signal.verbs.value) - 1)
        }
    assert words[-3.0][0] > 10 * words[3.0][0]
    assert words[3.0][6] > 2 * words[-3.0][6]


def test_texts_are_as_long_as_their_token_counts(task):
    tokens = np.array([60, 600])
    texts = write_texts("w", task, np.array([900.0, 900.0]), tokens, tokens, 1)
    lengths = [len(text.split()) * 1.3 for text in texts.instructions]
    assert lengths == pytest.approx(tokens.tolist(), rel=0.25)


def test_tools_come_from_the_task(task):
    tokens = np.full(200, 50)
    texts = write_texts("w", task, np.full(200, 900.0), tokens, tokens, 1)
    always, optional = set(task.tools.value), set(task.optional_tools.value)
    for tools in texts.tools:
        assert always <= set(tools) <= always | optional
    assert len({tuple(tools) for tools in texts.tools}) > 4


def test_a_linear_model_reads_the_published_order():
    ours = signal_check.check(corpora.load("multi-agent"))
    wanted = published.load().predictor
    assert ours["kendall_tau"] == pytest.approx(wanted.kendall_tau, abs=wanted.tolerance)
    assert ours["shortest_tenth_found"] == pytest.approx(
        wanted.shortest_tenth_found, abs=wanted.tolerance
    )
    assert ours["longest_tenth_taken"] == wanted.longest_tenth_taken
