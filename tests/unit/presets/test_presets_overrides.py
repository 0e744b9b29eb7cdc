"""Overrides by KEY=VALUE and by file: what they change, and what they refuse."""

import msgspec
import pytest

from lachesis.errors import InputError
from lachesis.presets import (
    Settings,
    apply_override_file,
    apply_overrides,
    load_hardware,
    load_model,
    override_keys,
)
from lachesis.presets.base import value_at


def test_values_and_sources_change_together():
    settings = Settings.choose()
    changed = apply_overrides(
        settings,
        [
            "hardware.hbf_write_gb_per_s_per_stack=27.2",
            "model.kv_bytes_per_value=1",
            "flash.pe_cycles=30000",
            "memory=3/5",
            "node.windowed_kv=trim",
            "slo.tpot_p99_ms=80",
            "latency.tool_mean_s.retrieval=0.5",
            "model.layer_groups.0.window=4096",
        ],
    )
    assert changed.hardware.hbf_write_gb_per_s_per_stack == 27.2
    assert changed.model.kv_bytes_per_token == 98_304
    assert changed.flash.pe_cycles == 30_000
    assert (changed.memory.hbm_stacks, changed.memory.hbf_stacks) == (3, 5)
    assert changed.node.windowed_kv == "trim"
    assert changed.slo.tpot_p99_s == 0.08
    assert changed.latency.tool_means()["retrieval"] == 0.5
    assert changed.model.layer_groups[0].window == 4096
    assert changed.model.source_of("layer_groups.0.window") == "set by user"
    assert changed.latency.source_of("tool_mean_s.retrieval") == "set by user"
    assert changed.flash.source_of("pe_cycles") == "set by user"
    assert changed.flash.source_of("dies") == settings.flash.source_of("dies")


def test_the_originals_do_not_change():
    settings = Settings.choose()
    apply_overrides(settings, ["hardware.slots=9", "memory=2/7", "model.layer_groups.0.window=1"])
    assert settings == Settings.choose()
    assert settings.hardware == load_hardware()
    assert settings.model == load_model()


def test_no_override_changes_nothing_but_still_checks():
    assert apply_overrides(Settings.choose(), []) == Settings.choose()
    with pytest.raises(InputError, match="has no HBF"):
        apply_overrides(Settings.choose(hardware="rubin-r200"), [])


def test_custom_stacks_by_flags():
    settings = Settings.choose(hardware="b200", memory="2/6")
    changed = apply_overrides(
        settings,
        [
            "hardware.hbf_gb_per_stack=1000",
            "hardware.hbf_read_tb_per_s_per_stack=1.0",
            "hardware.hbf_write_gb_per_s_per_stack=20",
        ],
    )
    assert changed.kv_capacity().hbf_bytes == 6 * 1000 * 10**9


def test_slots_and_memory_change_together():
    with pytest.raises(InputError, match="memory = 2/6, must be one of 1/5"):
        apply_overrides(Settings.choose(), ["hardware.slots=6"])
    changed = apply_overrides(Settings.choose(), ["memory=6/6*", "hardware.slots=6"])
    assert str(changed.memory) == "6/6*"


def test_last_of_a_repeated_key_counts():
    changed = apply_overrides(Settings.choose(), ["flash.pe_cycles=1", "flash.pe_cycles=2"])
    assert changed.flash.pe_cycles == 2


def test_sizes_are_read_where_the_key_is_in_bytes():
    changed = apply_overrides(
        Settings.choose(),
        ["node.activation_reserve_bytes_per_gpu=2 GB"],
    )
    assert changed.node.activation_reserve_bytes_per_gpu == 2 * 10**9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flash.pe_cycle=3", "flash.pe_cycle, unknown key; did you mean pe_cycles?"),
        ("hardware.hbf_write=3", "did you mean hbf_write_gb_per_s_per_stack?"),
        ("flsh.pe_cycles=3", "did you mean flash.pe_cycles"),
        ("hardwear=3", "did you mean hardware?"),
        ("slo.zzz=3", "keys of slo: tpot_p99_ms, ttft_p99_s"),
        ("model=3", "model, unknown key"),
        ("model.name=mine", "model.name, unknown key"),
        ("model.sources=3", "model.sources, unknown key"),
        ("model.layer_groups.7.window=3", "unknown key"),
        ("model.mla.kv_lora_rank=3", "unknown key"),
        ("model.layers.x=3", "unknown key"),
        ("flash.pe_cycles=0", "flash.pe_cycles = 0, must be int >= 1"),
        ("flash.pe_cycles=-5", "flash.pe_cycles = -5, must be int >= 1"),
        ("flash.pe_cycles=2.5", "flash.pe_cycles = 2.5, must be int, not float"),
        ("flash.pe_cycles=99999999999999999999", "must be int"),
        ("flash.pe_cycles=true", "must be int, not bool"),
        ("flash.pe_cycles=many", "must be int, not str"),
        ("flash.pe_cycles=[1]", "must be int, not array"),
        ("flash.write_amplification=0.5", "must be float >= 1.0"),
        ("flash.write_amplification=nan", "must be finite"),
        ("hardware.hbm_gb_per_stack=inf", "must be finite"),
        ("hardware.hbm_gb_per_stack=1e300", "must be float <= 1000000000.0"),
        ("hardware.memory_efficiency=1.2", "must be float <= 1.0"),
        ("hardware.step_overhead_ms=-1", "must be float >= 0.0"),
        ("hardware.tdp_w=3", "has no effect here: it is shown in listings only"),
        ("flash.stack.hbf_gb_per_stack=3", "set hardware.hbf_gb_per_stack"),
        ("hardware.hbf_gb_per_stack=0.5", "more than the HBF of 3.0 GB"),
        ("node.windowed_kv=tirm", "must be one of full, trim"),
        ("node.block_tokens=0", "must be int >= 1"),
        ("node.activation_reserve_bytes_per_gpu=2 gb", "must be a number and one of B, kB"),
        ("memory=8/8", "memory = 8/8, must be one of 1/7"),
        ("memory=3", "must be a text"),
        ("model.layers=47", "layers must equal the sum of layer_groups"),
        ("flash.pe_cycles", "must be written KEY=VALUE"),
        ("flash.pe_cycles=", "must be written KEY=VALUE"),
        ("=3", "must be written KEY=VALUE"),
        ("flash.pe_cycles=3\nflash.dies=4", "must be int, not str"),
    ],
)
def test_wrong_override_is_one_clear_line(text, message):
    with pytest.raises(InputError) as caught:
        apply_overrides(Settings.choose(), [text])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_override_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'memory = "1/7"\n[hardware]\nhbm_gb_per_stack = 48\n[flash]\npe_cycles = 3000\n'
    )
    changed = apply_override_file(Settings.choose(), file)
    assert str(changed.memory) == "1/7"
    assert changed.hardware.hbm_gb_per_stack == 48
    assert changed.hardware.source_of("hbm_gb_per_stack") == "set by user in mine.toml"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[flash]\npe_cycle = 3\n", "flash.pe_cycle, unknown key; did you mean pe_cycles?"),
        ("[flash]\npe_cycles = 0\n", "flash.pe_cycles = 0, must be int >= 1"),
        ("[flash\n", "is not valid TOML"),
        ("flash = 3\n", "flash, unknown key"),
        ("[model]\nlayer_groups = []\n", "model.layer_groups, unknown key"),
    ],
)
def test_wrong_override_file_names_the_file(content, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        apply_override_file(Settings.choose(), file)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


def test_missing_override_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        apply_override_file(Settings.choose(), tmp_path / "absent.toml")


@pytest.mark.parametrize("model", ["llama-4-maverick", "deepseek-v3.2", "llama-3.1-70b"])
def test_every_offered_key_accepts_its_own_value(model):
    settings = Settings.choose(model=model)
    for key in override_keys(settings):
        part, _, field = key.partition(".")
        value = (
            str(settings.memory)
            if key == "memory"
            else value_at(msgspec.to_builtins(getattr(settings, part)), field)
        )
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        changed = apply_overrides(settings, [f"{key}={text}"])
        if key != "memory":
            assert getattr(changed, part).source_of(field) == "set by user"
