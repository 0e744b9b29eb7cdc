"""The page about real records is what the statistics say about them now."""

from pathlib import Path

import pytest

from lachesis.errors import InputError
from lachesis.report import records_page

PAGE = Path(__file__).parents[3] / "docs" / "real_records.md"


@pytest.fixture
def records(tmp_path):
    folder = tmp_path / "records"
    (folder / "good").mkdir(parents=True)
    (folder / "bad").mkdir()
    (folder / "good" / "log.jsonl").write_text(
        '{"session": "a", "input_tokens": 400, "output_tokens": 40}\n'
        '{"session": "a", "input_tokens": 450, "output_tokens": 10}\n'
    )
    (folder / "bad" / "note.txt").write_text("nothing\n")
    return folder


def test_every_folder_stands_on_the_page(records):
    text = records_page.page(records)
    assert "| good | log | 1 | 1 | 1 | 2 | 900 | 460 | 49% | 0% | – | 2 / 0 / 0 | 0 |" in text
    assert "- bad: bad: no request remains" in text
    assert str(records) not in text


def test_main_writes_the_page_whole(records, tmp_path):
    assert records_page.main([str(records), str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text("utf-8") == records_page.page(records)
    assert records_page.main([]) == 2


def test_a_folder_without_records_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no folder of records that reads"):
        records_page.page(tmp_path)


@pytest.mark.samples
def test_the_page_in_the_project_is_this_one(samples_dir):
    assert PAGE.read_text("utf-8") == records_page.page(samples_dir)
