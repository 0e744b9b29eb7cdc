"""A folder of results takes its place when all of it is there, and not before."""

import pytest

from lachesis.errors import InputError
from lachesis.results.folders import replaced_folder


def test_it_appears_when_the_block_ends(tmp_path):
    place = tmp_path / "out"
    with replaced_folder(place) as scratch:
        (scratch / "a.txt").write_text("a")
        assert not place.exists()
    assert (place / "a.txt").read_text() == "a"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_what_was_there_is_replaced_by_name_and_the_rest_stays(tmp_path):
    place = tmp_path / "out"
    (place / "runs").mkdir(parents=True)
    (place / "runs" / "old.parquet").write_text("old")
    (place / "notes.txt").write_text("mine")
    (place / "a.txt").write_text("old")
    with replaced_folder(place) as scratch:
        (scratch / "runs").mkdir()
        (scratch / "runs" / "new.parquet").write_text("new")
        (scratch / "a.txt").write_text("new")
    assert [entry.name for entry in (place / "runs").iterdir()] == ["new.parquet"]
    assert (place / "a.txt").read_text() == "new"
    assert (place / "notes.txt").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt])
def test_an_error_or_ctrl_c_leaves_what_was_there_and_nothing_else(fault, tmp_path):
    place = tmp_path / "out"
    place.mkdir()
    (place / "a.txt").write_text("old")

    def write():
        with replaced_folder(place) as scratch:
            (scratch / "a.txt").write_text("new")
            raise fault

    with pytest.raises(fault):
        write()
    assert (place / "a.txt").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="is no folder"), replaced_folder(tmp_path / "out"):
        pass
