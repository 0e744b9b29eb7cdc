"""GPU, flash, latency and SLO presets: the values that results rest on."""

import pytest

from lachesis.errors import InputError
from lachesis.presets import (
    MemorySplit,
    Settings,
    load_flash,
    load_hardware,
    load_latency,
    load_node,
    load_slo,
    preset_names,
)

# HBM in GB, read bandwidth in TB/s and dense BF16 TFLOPS of a whole GPU, as the vendors quote them.
QUOTED = {
    "b200": (192, 8.0, 2250),
    "b300": (288, 8.0, 2250),
    "gb200": (186, 8.0, 2500),
    "gb300": (288, 8.0, 2500),
    "h100-sxm": (80, 3.35, 989),
    "h200-sxm": (141, 4.8, 989),
    "kyung-2026": (256, 8.0, 2250),
    "mi355x": (288, 8.0, 2500),
    "mi455x": (432, 19.6, 10_000),
    "rubin-hbf": (288, 12.8, 4000),
    "rubin-r200": (288, 22.0, 4000),
}


def test_every_gpu_has_quoted_figures():
    assert set(preset_names("gpus")) == set(QUOTED)


@pytest.mark.parametrize("name", QUOTED)
def test_stacks_add_up_to_the_quoted_gpu(name):
    gpu = load_hardware(name)
    all_hbm = MemorySplit.parse(f"{gpu.slots}/0", slots=gpu.slots)
    hbm_gb, read_tb_per_s, tflops = QUOTED[name]
    assert gpu.hbm_bytes(all_hbm) == hbm_gb * 10**9
    assert gpu.pooled_read_bytes_per_s(all_hbm) == pytest.approx(read_tb_per_s * 1e12, rel=1e-12)
    assert gpu.bf16_flops == tflops * 1e12


def test_default_gpu_is_the_papers():
    gpu = load_hardware()
    assert gpu.name == "rubin-hbf"
    assert (gpu.slots, gpu.hbm_gb_per_stack, gpu.hbf_gb_per_stack) == (8, 36, 512)
    assert gpu.hbf_write_bytes_per_s(MemorySplit.parse("2/6")) == 96e9
    assert gpu.nvlink_bytes_per_s == 1.8e12
    assert gpu.nvlink_latency_s == pytest.approx(0.8e-6)
    assert (gpu.compute_efficiency, gpu.memory_efficiency) == (1.0, 1.0)
    assert gpu.max_sequences == 1024
    assert gpu.source_of("max_sequences").startswith("chosen")


def test_step_overhead_says_that_it_is_calibrated_and_only_the_papers_gpu_has_one():
    for name in preset_names("gpus"):
        gpu = load_hardware(name)
        if name == "rubin-hbf":
            assert gpu.step_overhead_s == 0.015
            assert gpu.source_of("step_overhead_ms").startswith("calibrated, not measured")
            assert "fitted together with the" in gpu.source_of("step_overhead_ms")
        else:
            assert gpu.step_overhead_s == 0.0


@pytest.mark.parametrize("split", ["1/7", "2/6", "3/5", "4/4", "5/3", "6/2", "7/1", "8/8*"])
def test_read_bandwidth_is_the_same_in_every_split(split):
    assert load_hardware().pooled_read_bytes_per_s(MemorySplit.parse(split)) == 12.8e12


def test_tier_bandwidths_follow_the_stacks():
    gpu, split = load_hardware(), MemorySplit.parse("3/5")
    assert gpu.hbm_read_bytes_per_s(split) == pytest.approx(4.8e12)
    assert gpu.hbf_read_bytes_per_s(split) == pytest.approx(8e12)
    assert gpu.hbf_bytes(split) == 5 * 512 * 10**9


def test_hbf_fields_come_together(tmp_path):
    file = tmp_path / "half.toml"
    file.write_text('extends = "h100-sxm"\nhbf_gb_per_stack = 512\n')
    with pytest.raises(InputError, match="must be given together"):
        load_hardware(str(file))


def test_gpu_without_hbf_refuses_a_split_with_hbf():
    settings = Settings.choose(hardware="b200", model="qwen3-32b", memory="2/6")
    with pytest.raises(InputError, match="b200 has no HBF"):
        settings.check()
    Settings.choose(hardware="b200", model="qwen3-32b", memory="8/0").check()


def test_default_flash():
    flash = load_flash()
    assert (flash.pe_cycles, flash.write_amplification) == (100_000, 1.02)
    assert flash.seconds_per_year == 31_557_600 == round(365.25 * 86_400)
    assert (flash.page_bytes, flash.erase_block_bytes) == (4096, 4 * 2**20)
    assert flash.planes == 400
    assert flash.program_gb_per_s_per_stack == pytest.approx(16.384)
    assert flash.stack is None


def test_flash_product_replaces_the_stacks_of_the_gpu_and_keeps_its_sources():
    before = Settings.choose().hardware
    after = Settings.choose(flash="kyung-2026").hardware
    assert (before.hbf_write_gb_per_s_per_stack, after.hbf_write_gb_per_s_per_stack) == (16, 48)
    assert after.source_of("hbf_write_gb_per_s_per_stack").endswith("commit 0145fba")
    assert after.source_of("slots") == before.source_of("slots")
    assert before == load_hardware()


def test_ocp_stack_is_512_gib():
    stack = load_flash("ocp-hbf-0.7").stack
    assert stack is not None
    assert round(stack.hbf_gb_per_stack * 10**9) == 512 * 2**30


def test_erase_block_holds_whole_pages(tmp_path):
    file = tmp_path / "odd.toml"
    file.write_text('extends = "hbf-slc"\npage_bytes = 4097\n')
    with pytest.raises(InputError, match="multiple of page_bytes"):
        load_flash(str(file))


def test_latencies():
    latency = load_latency()
    assert latency.tool_means() == {
        "calculator": 9e-5,
        "retrieval": 0.69,
        "environment": 0.09,
        "human": 28.6,
        "image": 20.03,
        "speech": 17.24,
        "spawn": 0.0,
        "other": 0.69,
    }
    assert (latency.user_median_s, latency.user_sigma) == (120.0, 1.0)
    assert (latency.tpot_ref_s, latency.ttft_ref_s) == (0.2, 1.0)
    assert latency.source_of("user_sigma").startswith("chosen")


def test_slos_and_node():
    assert [(s.tpot_p99_s, s.ttft_p99_s) for s in map(load_slo, ("tight", "loose"))] == [
        (0.06, 2.0),
        (0.1, 2.0),
    ]
    node = load_node()
    assert (node.gpus, node.block_tokens, node.activation_reserve_bytes_per_gpu) == (8, 16, 0)
