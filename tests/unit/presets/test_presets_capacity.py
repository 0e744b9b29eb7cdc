"""Memory splits, sizes, and the KV capacity that weights leave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lachesis.errors import InputError
from lachesis.presets import (
    MemorySplit,
    Settings,
    kv_capacity,
    load_hardware,
    load_model,
    parse_bytes,
    preset_names,
    split_names,
)


@pytest.mark.parametrize("text", [f"{h}/{8 - h}" for h in range(1, 9)])
def test_splits_of_eight_slots(text):
    split = MemorySplit.parse(text)
    assert str(split) == text
    assert split.hbm_stacks + split.hbf_stacks == 8
    assert not split.chain


@pytest.mark.parametrize("text", ["8/8*", "8/8-chain", " 8/8* "])
def test_daisy_chain_has_two_spellings(text):
    split = MemorySplit.parse(text)
    assert (split.hbm_stacks, split.hbf_stacks, split.chain) == (8, 8, True)
    assert str(split) == "8/8*"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "2/5",
        "0/8",
        "8/8",
        "9/0",
        "2/6*",
        "4/4-chain",
        "-1/9",
        "2/6/0",
        "a/b",
        "2.0/6",
        "٢/6",
    ],
)
def test_wrong_split_lists_the_valid_ones(text):
    with pytest.raises(InputError) as caught:
        MemorySplit.parse(text)
    for valid in split_names():
        assert valid in str(caught.value)


@given(st.integers(1, 40), st.data())
def test_every_listed_split_parses_and_fits(slots, data):
    text = data.draw(st.sampled_from(split_names(slots)))
    split = MemorySplit.parse(text, slots=slots)
    assert str(split) == text
    assert split.fits(slots)
    assert not split.fits(slots + 1)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("36 GB", 36 * 10**9),
        ("36GiB", 36 * 2**30),
        ("1.5 kB", 1500),
        ("0.5KiB", 512),
        ("3 TB", 3 * 10**12),
        ("2 TiB", 2 * 2**40),
        ("7 B", 7),
        ("1_000 MB", 10**9),
        ("0.1 MiB", None),
        ("1.0001 kB", None),
        ("36", None),
        ("36 G", None),
        ("36 gb", None),
        ("36 Gb", None),
        ("36 KB", None),
        ("-1 GB", None),
        ("1e3 GB", None),
        ("GB", None),
        ("nan GB", None),
        ("", None),
    ],
)
def test_parse_bytes(text, size):
    if size is None:
        with pytest.raises(InputError):
            parse_bytes(text)
    else:
        assert parse_bytes(text) == size


def test_capacity_by_hand():
    # Qwen3 32B, 8 slots 1/7: 65.53 GB of BF16 weights on each GPU, 262,144 B of KV a token.
    model, gpu = load_model("qwen3-32b"), load_hardware()
    weights = 2 * (64 * 5120 * (2 * 64 * 128 + 2 * 8 * 128 + 3 * 25_600) + 2 * 151_936 * 5120)
    capacity = kv_capacity(model, gpu, MemorySplit.parse("1/7"))
    assert capacity.weights_bytes_per_gpu == weights
    assert capacity.weights_in_hbf
    assert capacity.block_bytes == 16 * 262_144
    assert capacity.hbm_blocks == 36 * 10**9 // (16 * 262_144)
    assert capacity.hbf_blocks == (7 * 512 * 10**9 - weights) // (16 * 262_144)


def test_capacity_shares_match_what_the_paper_implies():
    # Its "1-7 %" of HBM-first writes: 0.99, 2.29, 4.05, 6.57 % before weights are taken off.
    gpu = load_hardware()
    for split, whole in (("1/7", 0.0099), ("2/6", 0.0229), ("3/5", 0.0405), ("4/4", 0.0657)):
        memory = MemorySplit.parse(split)
        hbm, hbf = gpu.hbm_bytes(memory), gpu.hbf_bytes(memory)
        assert hbm / (hbm + hbf) == pytest.approx(whole, abs=1e-4)
        share = Settings.choose(memory=split).kv_capacity().hbm_share
        assert whole < share < whole * 1.08


@given(
    st.sampled_from(preset_names("models")),
    st.sampled_from(split_names()),
    st.integers(1, 256),
    st.integers(1, 72),
    st.sampled_from(["full", "trim"]),
)
def test_weights_and_blocks_never_exceed_the_memory(name, split, block_tokens, gpus, windowed_kv):
    model, gpu, memory = load_model(name), load_hardware(), MemorySplit.parse(split)
    weights = model.weight_bytes_per_gpu(gpus)
    tier = gpu.hbf_bytes(memory) or gpu.hbm_bytes(memory)
    if weights > tier:
        with pytest.raises(InputError, match="weights of"):
            kv_capacity(model, gpu, memory, gpus=gpus)
        return
    capacity = kv_capacity(
        model, gpu, memory, block_tokens=block_tokens, gpus=gpus, windowed_kv=windowed_kv
    )
    hbf_used = capacity.hbf_blocks * capacity.block_bytes
    hbm_used = capacity.hbm_blocks * capacity.block_bytes
    if memory.hbf_stacks:
        hbf_used += weights
    else:
        assert capacity.hbf_blocks == 0
        hbm_used += weights
    assert capacity.hbf_bytes - capacity.block_bytes < hbf_used <= capacity.hbf_bytes or (
        memory.hbf_stacks == 0
    )
    assert capacity.hbm_bytes - capacity.block_bytes < hbm_used <= capacity.hbm_bytes


def test_without_hbf_the_weights_must_fit_hbm():
    gpu, all_hbm = load_hardware(), MemorySplit.parse("8/0")
    capacity = kv_capacity(load_model("llama-4-maverick"), gpu, all_hbm)
    assert not capacity.weights_in_hbf
    assert (capacity.hbf_bytes, capacity.hbf_blocks) == (0, 0)
    with pytest.raises(InputError, match=r"llama-3.1-405b take 811.7 GB .* more than the HBM"):
        kv_capacity(load_model("llama-3.1-405b"), gpu, all_hbm)


def test_weights_are_never_split_over_both_tiers():
    with pytest.raises(InputError, match=r"more than the HBF of 512\.0 GB"):
        kv_capacity(load_model("llama-3.1-405b"), load_hardware(), MemorySplit.parse("7/1"))


def test_activation_reserve_comes_off_hbm_alone():
    model, gpu, memory = load_model(), load_hardware(), MemorySplit.parse("1/7")
    none, some = (
        kv_capacity(model, gpu, memory, activation_reserve_bytes=r) for r in (0, 6 * 10**9)
    )
    assert none.hbf_blocks == some.hbf_blocks
    assert some.hbm_blocks == 30 * 10**9 // some.block_bytes
    with pytest.raises(InputError, match=r"reserve of 37\.0 GB exceeds the HBM of 36\.0"):
        kv_capacity(model, gpu, memory, activation_reserve_bytes=37 * 10**9)


def test_trim_makes_smaller_blocks_that_are_exact_at_the_stated_context():
    model, gpu, memory = load_model(), load_hardware(), MemorySplit.parse("1/7")
    trimmed = kv_capacity(model, gpu, memory, windowed_kv="trim", trim_context_tokens=16_384)
    assert trimmed.block_bytes == 16 * (49_152 + 147_456 // 2)
    short = kv_capacity(model, gpu, memory, windowed_kv="trim", trim_context_tokens=8_192)
    assert short.block_bytes == kv_capacity(model, gpu, memory).block_bytes


@pytest.mark.parametrize("field", ["block_tokens", "gpus", "trim_context_tokens"])
def test_counts_must_be_positive(field):
    with pytest.raises(InputError, match=f"{field} = 0, must be at least 1"):
        kv_capacity(load_model(), load_hardware(), MemorySplit.parse("1/7"), **{field: 0})


def test_index_keys_take_room_in_a_block():
    capacity = kv_capacity(load_model("deepseek-v3.2"), load_hardware(), MemorySplit.parse("1/7"))
    assert capacity.block_bytes == 16 * (70_272 + 7_808)
