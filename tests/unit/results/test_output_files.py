"""Output files appear whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from lachesis.errors import InputError
from lachesis.results import check_output, replaced, write_text


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    place = tmp_path / "out.json"
    place.write_text("old")
    write_text(place, "new")
    assert place.read_text() == "new"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("fault", [RuntimeError, KeyboardInterrupt])
def test_a_fault_leaves_what_was_there(tmp_path: Path, fault: type[BaseException]) -> None:
    place = tmp_path / "out.svg"
    place.write_text("old")

    def write_half() -> None:
        with replaced(place) as scratch:
            assert scratch.suffix == ".svg"
            scratch.write_text("ha")
            assert place.read_text() == "old"
            raise fault

    with pytest.raises(fault):
        write_half()
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_a_link_keeps_pointing_and_its_file_changes(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    write_text(tmp_path / "link.json", "new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_a_device_is_written_and_stays_a_device() -> None:
    write_text("/dev/null", "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_new_files_have_the_permissions_that_the_user_asks_for(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "out.json", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("name", "rule"),
    [("none/out.json", "no folder"), ("folder", "is a folder"), ("file/out.json", "is no folder")],
)
def test_places_that_cannot_be_written(tmp_path: Path, name: str, rule: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=rule):
        check_output(tmp_path / name)
    with pytest.raises(InputError, match=rule):
        write_text(tmp_path / name, "x")
