"""Every number of every preset carries a source, and every listed unit is the one in its name."""

import re
from importlib import resources

import pytest

import lachesis
from lachesis.errors import InputError
from lachesis.presets import Settings, describe_preset, iter_presets, load_hardware
from lachesis.presets.sourced import SourcedTree, overlay, split_sources

LISTINGS = list(iter_presets())


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda p: f"{p.kind}-{p.name}")
def test_every_number_has_a_source(listing):
    numbers = [
        row
        for row in listing.rows
        if isinstance(row.value, (int, float)) and not isinstance(row.value, bool)
    ]
    assert numbers
    assert [row.field for row in numbers if not row.source.strip()] == []


@pytest.mark.parametrize("part", ["model", "hardware", "flash", "latency", "slo", "node"])
def test_every_number_of_the_chosen_settings_has_a_source_in_its_file(part):
    preset = getattr(Settings.choose(flash="sandisk-gen2"), part)
    numbers = [
        row
        for row in describe_preset(preset).rows
        if isinstance(row.value, (int, float)) and not isinstance(row.value, bool)
    ]
    from_file = [row for row in numbers if not row.source.startswith("derived")]
    assert from_file
    for row in from_file:
        assert preset.source_of(row.field) == row.source


def test_listing_covers_all_kinds_and_names_are_unique():
    keys = [(p.kind, p.name) for p in LISTINGS]
    assert len(keys) == len(set(keys))
    counts = {kind: sum(k == kind for k, _ in keys) for kind, _ in keys}
    assert counts == {
        "model": 15,
        "hardware": 11,
        "memory": 9,
        "flash": 6,
        "latency": 1,
        "slo": 2,
        "node": 1,
    }
    assert all(p.title for p in LISTINGS)


def test_measures_have_units():
    # A name that ends in one of these says what it is measured in; it may not be listed bare.
    measured = re.compile(r"_(gb|tb|bytes|tflops|us|ms|s|w|tokens|years|cycles)(_|$|\.)")
    counts = {"experts_per_token", "shared_experts", "block_tokens", "top_k_tokens"}
    for listing in LISTINGS:
        for row in listing.rows:
            if measured.search(row.field) and row.field.split(".")[-1] not in counts:
                assert row.unit, (listing.name, row.field)


def test_rows_show_the_unit_and_source_of_a_value():
    rows = {row.field: row for row in describe_preset(load_hardware()).rows}
    row = rows["hbf_write_gb_per_s_per_stack"]
    assert (row.value, row.unit) == (16.0, "GB/s per stack")
    assert "Son et al." in row.source


def test_memory_listing_of_the_daisy_chain():
    chain = next(p for p in LISTINGS if (p.kind, p.name) == ("memory", "8/8*"))
    values = {row.field: (row.value, row.unit) for row in chain.rows}
    assert values["hbm_gb"] == (288.0, "GB")
    assert values["hbf_gb"] == (4096.0, "GB")
    assert values["pooled_read_tb_per_s"] == (12.8, "TB/s")
    assert values["hbf_write_gb_per_s"] == (128.0, "GB/s")


def test_data_files_lie_inside_the_package():
    data = resources.files("lachesis.presets") / "data"
    found = {e.name for kind in data.iterdir() for e in kind.iterdir()}
    assert {"rubin-hbf.toml", "llama-4-maverick.toml", "hbf-slc.toml"} <= found
    assert str(data).startswith(str(resources.files(lachesis)))


def test_a_number_without_source_is_refused():
    with pytest.raises(InputError, match=r"gpu.toml: a.b = 3, must carry a source"):
        split_sources({"title": "t", "a": {"b": 3}}, path="gpu.toml")
    assert split_sources({"on": True, "title": "t"}, path="gpu.toml").sources == {}


@pytest.mark.parametrize("source", ["", "  ", 3, []])
def test_source_must_be_a_text(source):
    with pytest.raises(InputError, match="must be a text that is not empty"):
        split_sources({"slots": {"value": 8, "source": source}}, path="gpu.toml")


def test_nearest_source_wins():
    document = {
        "source": "file",
        "a": 1,
        "t": {"source": "table", "b": 2, "c": {"value": 3, "source": "leaf"}},
        "list": [{"d": 4}, {"d": 5, "source": "entry"}],
    }
    tree = split_sources(document, path="x")
    assert tree.values == {"a": 1, "t": {"b": 2, "c": 3}, "list": [{"d": 4}, {"d": 5}]}
    assert tree.sources == {
        "a": "file",
        "t.b": "table",
        "t.c": "leaf",
        "list.0.d": "file",
        "list.1.d": "entry",
    }


def test_a_replaced_list_loses_its_old_sources():
    base = SourcedTree({"g": [{"a": 1}, {"a": 2}]}, {"g.0.a": "old", "g.1.a": "old"})
    merged = overlay(base, SourcedTree({"g": [{"a": 3}]}, {"g.0.a": "new"}))
    assert merged == ({"g": [{"a": 3}]}, {"g.0.a": "new"})
