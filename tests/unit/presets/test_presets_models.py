"""Model presets against figures published for, or computed apart from, each model's config."""

import pytest

from lachesis.errors import InputError
from lachesis.presets import load_model, preset_names

# name: KV bytes a token in BF16, and parameters in 1e9: total, active, routed, other;
# bytes of one expert in one layer in BF16 (aiconfigurator 095f58a configs, computed apart)
REFERENCE = {
    "llama-4-maverick": (196_608, 400.71, 17.18, 386.55, 14.16, 251_658_240),
    "qwen3-235b-a22b": (192_512, 235.09, 22.19, 227.10, 8.00, 37_748_736),
    "kimi-k2": (70_272, 1026.41, 32.86, 1014.69, 11.72, 88_080_384),
    "kimi-k2.5": (70_272, 1026.41, 32.86, 1014.69, 11.72, 88_080_384),
    "deepseek-v3": (70_272, 671.03, 37.55, 653.91, 17.12, 88_080_384),
    "deepseek-v3.2": (70_272, 671.88, 38.40, 653.91, 17.97, 88_080_384),
    "glm-5": (89_856, 743.91, 41.78, 724.78, 19.14, 75_497_472),
    "glm-4.6": (376_832, 352.80, 33.63, 335.96, 16.83, 47_185_920),
    "gpt-oss-120b": (73_728, 116.79, 5.71, 114.66, 2.13, 49_766_400),
    "llama-3.1-70b": (327_680, 70.55, 70.55, 0.0, 70.55, 0),
    "llama-3.1-405b": (516_096, 405.85, 405.85, 0.0, 405.85, 0),
    "qwen3-32b": (262_144, 32.76, 32.76, 0.0, 32.76, 0),
    "gemma-3-27b": (507_904, 27.01, 27.01, 0.0, 27.01, 0),
    "gemma-4-31b": (901_120, 30.70, 30.70, 0.0, 30.70, 0),
    "mixtral-8x7b": (131_072, 46.70, 12.88, 45.10, 1.61, 352_321_536),
}
# Growth of a context once its windowed layers are full, BF16.
BEYOND_WINDOW = {
    "llama-4-maverick": 49_152,
    "gpt-oss-120b": 36_864,
    "gemma-3-27b": 81_920,
    "gemma-4-31b": 81_920,
}
INDEX_VALUES = {"deepseek-v3.2": 7_808, "glm-5": 9_984}


def test_every_shipped_model_has_reference_figures():
    assert set(preset_names("models")) == set(REFERENCE)


@pytest.mark.parametrize("name", REFERENCE)
def test_kv_bytes_per_token(name, tmp_path):
    model = load_model(name)
    kv_bf16 = REFERENCE[name][0]
    assert model.kv_bytes_per_token == kv_bf16
    file = tmp_path / "fp8.toml"
    file.write_text(f'extends = "{name}"\nkv_bytes_per_value = 1\n')
    assert load_model(str(file)).kv_bytes_per_token * 2 == kv_bf16


@pytest.mark.parametrize("name", REFERENCE)
def test_parameters_within_one_percent(name):
    model = load_model(name)
    _, total, active, routed, other, expert_bytes = REFERENCE[name]
    assert model.params / 1e9 == pytest.approx(total, rel=0.01)
    assert model.active_params / 1e9 == pytest.approx(active, rel=0.01)
    assert model.routed_params / 1e9 == pytest.approx(routed, rel=0.001)
    assert model.non_routed_params / 1e9 == pytest.approx(other, rel=0.01)
    assert model.routed_weight_bytes == 2 * model.routed_params
    if expert_bytes:
        assert 2 * model.params_per_routed_expert == expert_bytes


@pytest.mark.parametrize("name", REFERENCE)
def test_growth_beyond_the_window(name):
    model = load_model(name)
    growth = model.stored_bytes(1_000_001, "trim") - model.stored_bytes(1_000_000, "trim")
    expected = BEYOND_WINDOW.get(name, model.kv_bytes_per_token)
    assert model.kv_bytes_per_token_beyond_window == expected
    assert growth == expected + model.index_key_bytes_per_token


@pytest.mark.parametrize("name", REFERENCE)
def test_index_keys_belong_to_sparse_attention_alone(name):
    model = load_model(name)
    assert model.index_key_bytes_per_token == INDEX_VALUES.get(name, 0)
    assert (model.dsa is not None) == (name in INDEX_VALUES)
    assert model.stored_bytes_per_token == (
        model.kv_bytes_per_token + model.index_key_bytes_per_token
    )


def test_trimmed_context_keeps_the_window_in_windowed_layers():
    model = load_model("llama-4-maverick")
    a_layer = 2 * 8 * 128 * 2
    assert model.stored_bytes(100, "trim") == model.stored_bytes(100, "full")
    assert model.stored_bytes(20_000, "trim") == a_layer * (12 * 20_000 + 36 * 8_192)


def test_layer_groups_of_mixed_models():
    shapes = {
        name: [
            (g.layers, g.kv_heads, g.head_dim, g.window, g.window_kind)
            for g in load_model(name).layer_groups
        ]
        for name in ("llama-4-maverick", "gpt-oss-120b", "gemma-3-27b", "gemma-4-31b", "kimi-k2")
    }
    assert shapes == {
        "llama-4-maverick": [(36, 8, 128, 8192, "chunked"), (12, 8, 128, None, "none")],
        "gpt-oss-120b": [(18, 8, 64, 128, "sliding"), (18, 8, 64, None, "none")],
        "gemma-3-27b": [(52, 16, 128, 1024, "sliding"), (10, 16, 128, None, "none")],
        "gemma-4-31b": [(50, 16, 256, 1024, "sliding"), (10, 4, 512, None, "none")],
        "kimi-k2": [(61, 1, 576, None, "none")],
    }
    assert load_model("gemma-4-31b").kv_heads is None
    assert load_model("gpt-oss-120b").head_dim == 64


def test_experts_that_do_not_divide_fill_one_gpu_more():
    model = load_model("mixtral-8x7b")
    expert = model.moe_layers * model.params_per_routed_expert * 2
    one_each = model.weight_bytes_per_gpu(8)
    assert one_each == model.non_routed_weight_bytes + expert
    assert model.weight_bytes_per_gpu(5) == one_each + expert
    assert model.weight_bytes_per_gpu(1) == model.routed_weight_bytes + (
        model.non_routed_weight_bytes
    )


def test_extending_keeps_the_sources_of_what_is_not_changed():
    base, child = load_model("deepseek-v3"), load_model("deepseek-v3.2")
    assert child.source_of("layers") == base.source_of("layers")
    assert "V3.2" in child.source_of("dsa.top_k_tokens")
    assert child.name == "deepseek-v3.2"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("layers = 33", "layers must equal the sum of layer_groups"),
        ("moe_layers = 31", "layers must equal dense_layers + moe_layers"),
        ("experts_per_token = 9", "experts_per_token must lie between 1 and experts"),
        ("experts_per_token = 0", "experts_per_token must lie between 1 and experts"),
        ("experts = 0", "experts and expert_ffn must be at least 1"),
        ("shared_experts = 1", "shared_ffn must be at least 1"),
        ("heads = 33", "heads must be a multiple"),
        ('attention = "mla"', "mla must be given exactly where attention is mla"),
        ('attention = "linear"', "attention = linear, must be one of gqa, mla"),
        ("kv_bytes_per_value = 0.3", "must give a whole number of bytes"),
        ("vocab = 0", "vocab = 0, must be int >= 1"),
        ("vocab = 3_000_000_000", "must be int <= 2147483647"),
        ("weight_bytes_per_value = nan", "weight_bytes_per_value = nan, must be finite"),
        ("expertz = 8", "expertz, unknown key; did you mean experts"),
        ('sources = ["x"]', "sources, is set from"),
    ],
)
def test_inconsistent_model_file_is_refused(change, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f'extends = "mixtral-8x7b"\n{change}\n')
    with pytest.raises(InputError) as caught:
        load_model(str(file))
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


def test_fault_in_a_list_names_the_entry(tmp_path):
    good = '[[layer_groups]]\nlayers = 31\nkv_heads = 8\nhead_dim = 128\nwindow_kind = "none"\n'
    file = tmp_path / "mine.toml"
    file.write_text(f'extends = "mixtral-8x7b"\n{good}{good.replace("31", "0")}')
    with pytest.raises(InputError, match=r"layer_groups\.1\.layers = 0, must be int >= 1"):
        load_model(str(file))


def test_missing_key_is_named(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('title = "empty"\n')
    with pytest.raises(InputError, match="must hold the key layers"):
        load_model(str(file))


def test_user_file_without_sources_says_who_set_the_values(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "mixtral-8x7b"\nvocab = 1000\n')
    model = load_model(str(file))
    assert model.source_of("vocab") == "set by user in mine.toml"
    assert "mistralai" in model.source_of("hidden")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"layers = ", "is not valid TOML"),
        (b"\xff\xfe", "is not UTF-8"),
        (b'extends = "mixtral"', "extends = mixtral, no such preset; did you mean mixtral-8x7b?"),
        (b"extends = 3", "extends = 3, must be the name of a preset"),
    ],
)
def test_broken_file_is_refused(content, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_model(str(file))
    assert message in str(caught.value)


def test_unknown_model_lists_near_matches():
    with pytest.raises(InputError, match=r"did you mean llama-4-maverick\?"):
        load_model("llama4")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_model("absent.toml")
