"""Outputs at odd places: written whole, or refused in one line before the work."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from lachesis.errors import InputError
from lachesis.results.directory import read_manifest, read_table, write_table
from lachesis.results.files import check_apart, check_output, replaced, write_text
from lachesis.results.folders import check_folder
from lachesis.results.results_directory import read_stored_results


def test_a_circle_of_links_is_refused(tmp_path):
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    for refuse in (check_output, check_folder):
        with pytest.raises(InputError, match="symbolic links"):
            refuse(loop)
    check_apart([str(loop)], {"--json": str(tmp_path / "other.json")})
    with pytest.raises(InputError):
        write_text(loop, "x")
    assert loop.is_symlink()


def test_a_link_to_no_folder_is_refused_before_the_work(tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "none" / "x.json")
    with pytest.raises(InputError, match="no folder"):
        check_output(link)


def test_a_link_to_a_file_that_is_not_there_makes_the_file(tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "new.json")
    write_text(link, "x")
    assert link.is_symlink()
    assert (tmp_path / "new.json").read_text() == "x"


@pytest.mark.parametrize("length", [1, 200, 240, 250])
@pytest.mark.parametrize("letter", ["x", "é"])
def test_the_longest_names_can_be_written(length, letter, tmp_path):
    name = letter * (length // len(letter.encode())) + ".json"
    write_text(tmp_path / name, "x")
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_longer_names_are_refused(tmp_path):
    name = tmp_path / ("x" * 255 + ".json")
    for refuse in (check_output, check_folder, read_stored_results):
        with pytest.raises(InputError, match="too long"):
            refuse(name)
    with pytest.raises(InputError, match="too long"):
        write_text(name, "x")


@pytest.mark.parametrize("refuse", [check_output, check_folder, read_manifest])
def test_a_name_with_nul_is_refused(refuse):
    with pytest.raises(InputError, match="is no name of a"):
        refuse("a\0b")


def test_a_full_device_is_said_in_one_line():
    with pytest.raises(InputError, match="No space left on device"):
        write_text("/dev/full", "x" * 100_000)


def test_tables_lie_under_names_that_are_no_utf8(tmp_path):
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.parquet"))
    table = pa.table({"a": [1, 2]})
    write_table(place, table)
    assert read_table(place).equals(table)


def test_a_pipe_is_not_waited_for(tmp_path):
    for name in ("manifest.json", "table.parquet"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="is no regular file"):
        read_manifest(tmp_path)
    with pytest.raises(InputError, match="is no regular file"):
        read_table(tmp_path / "table.parquet")


def test_an_error_leaves_what_was_there(tmp_path):
    place = tmp_path / "a.json"
    place.write_text("before")

    def stop_half_way():
        with replaced(place) as scratch:
            scratch.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_half_way()
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]
