"""Specification files: strict, and every value with its source."""

import tomllib

import pytest

from lachesis.errors import InputError
from lachesis.traces.generator import specification
from lachesis.traces.generator.calls import deal_classes
from lachesis.traces.generator.draws import stream
from lachesis.traces.generator.specification import ToolShare

SHIPPED = specification.names()


def shipped_text(name="tau3-airline"):
    return (specification.SPECIFICATION_DIRECTORY / f"{name}.toml").read_text("utf-8")


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return specification.read(path)

    return read_text


def test_the_eleven_workloads_are_there():
    assert set(SHIPPED) == {
        "tau3-airline", "tau3-retail", "tau3-telecom", "tau3-banking", "bfclv4-base",
        "bfclv4-long-context", "appworld", "deepsearchqa", "swe-bench-verified",
        "terminal-bench", "webarena",
    }  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_every_number_has_a_source(name):
    def check(table, path):
        for key, item in table.items():
            if path or key in ("counts", "temporal", "structural"):
                assert isinstance(item, dict), f"{path}{key} has no source"
                if "value" in item:
                    assert len(item["source"]) > 10, f"{path}{key}"
                else:
                    check(item, f"{path}{key}.")

    check(tomllib.loads(shipped_text(name)), "")


@pytest.mark.parametrize("name", SHIPPED)
def test_name_and_file_agree_and_seeds_differ(name):
    assert specification.load(name).name == name
    seeds = [specification.load(each).seed for each in SHIPPED]
    assert len(set(seeds)) == len(seeds)


def test_an_unknown_key_is_refused(read):
    text = shipped_text().replace("[temporal]", "[temporal]\nstepss = {value = 1, source = 'mine'}")
    with pytest.raises(InputError, match=r"mine\.toml: .*stepss"):
        read(text)


def test_a_missing_key_is_refused(read):
    lines = [line for line in shipped_text().splitlines() if not line.startswith("sessions")]
    with pytest.raises(InputError, match="sessions"):
        read("\n".join(lines))


def test_a_value_without_source_is_refused(read):
    text = shipped_text().replace("sessions = {value = 58, source = ", "sessions = {value = 58} # ")
    with pytest.raises(InputError, match=r"source.*counts\.sessions"):
        read(text)


def test_an_empty_source_is_refused(read):
    start = shipped_text().index('source = "') + len('source = "')
    end = shipped_text().index('"', start)
    with pytest.raises(InputError, match="source"):
        read(shipped_text()[:start] + shipped_text()[end:])


def test_a_share_above_one_is_refused(read):
    text = shipped_text().replace(
        "session_correlation = {value = 0", "session_correlation = {value = 7"
    )
    with pytest.raises(InputError, match="session_correlation"):
        read(text)


def test_both_regimes_at_once_are_refused(read):
    structural = shipped_text("webarena")
    text = shipped_text() + structural[structural.index("[structural.lead]") :]
    with pytest.raises(InputError, match="exactly one"):
        read(text)


def test_broken_toml_is_one_line(read):
    with pytest.raises(InputError) as fault:
        read("name = ")
    assert "mine.toml" in str(fault.value)
    assert "\n" not in str(fault.value)


def test_an_unknown_workload_is_named():
    with pytest.raises(InputError, match=r"corpus = nothing, must be one of .*webarena"):
        specification.load("nothing")


def test_tool_classes_are_dealt_in_their_shares():
    shares = [ToolShare(name="retrieval", share=0.7), ToolShare(name="human", share=0.3)]
    dealt = deal_classes(shares, 1000, stream(1, "x")).tolist()
    assert dealt.count("human") == 300
    assert dealt[:300] != ["retrieval"] * 300


@pytest.mark.parametrize("name", ["qa", "spawn"])
def test_a_tool_class_that_is_none_is_refused(name):
    with pytest.raises(InputError, match=r"tools\.name"):
        deal_classes([ToolShare(name=name, share=1.0)], 3, stream(1, "x"))


def test_tool_shares_must_sum_to_one():
    with pytest.raises(InputError, match="sum to 1"):
        deal_classes([ToolShare(name="human", share=0.5)], 3, stream(1, "x"))
