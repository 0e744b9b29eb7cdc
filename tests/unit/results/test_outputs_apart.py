"""Outputs never overwrite what is read, nor each other."""

import pytest

from lachesis.cli.entry import execute
from lachesis.errors import InputError
from lachesis.results.files import check_apart

HEADER = "session,input_tokens,output_tokens\n"


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(f"{HEADER}a,10,5\nb,20,5\n")
    return file


@pytest.mark.parametrize(
    "words",
    [
        ["trace", "import", "LOG", "-o", "OUT.trace", "--json", "LOG"],
        ["trace", "stats", "LOG", "--json", "LOG"],
        ["trace", "show", "LOG", "--json", "LOG"],
        ["trace", "validate", "LOG", "--json", "LOG"],
        ["trace", "filter", "LOG", "--min-requests", "1", "-o", "OUT.trace", "--json", "LOG"],
        ["run", "LOG", "--json", "LOG"],
        ["run", "LOG", "--json", "OUT.png", "--plot", "OUT.png"],
        ["run", "LOG", "--plot", "OUT.parquet", "--timeline", "OUT.parquet"],
        ["predictor", "train", "LOG", "-o", "LOG"],
        ["predictor", "train", "LOG", "-o", "OUT.json", "--json", "OUT.json"],
        ["predictor", "evaluate", "LOG", "--json", "LOG"],
    ],
    ids=" ".join,
)
def test_every_command_refuses_and_leaves_what_was_there(log, tmp_path, words, capsys):
    before = log.read_bytes()
    places = {"LOG": str(log), "OUT": str(tmp_path / "out")}
    given = [places.get(word, word.replace("OUT", places["OUT"])) for word in words]
    assert execute(given) == 2
    said = capsys.readouterr().err
    assert "would overwrite" in said or "must end in" in said or "--plot" in said
    assert log.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


def test_parts_of_a_saved_trace_are_read_too(tmp_path):
    trace = tmp_path / "a.trace"
    trace.mkdir()
    with pytest.raises(InputError, match="would overwrite what is read"):
        check_apart([str(trace)], {"--json": str(trace / "trace.json")})


def test_links_are_followed(log, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(log)
    with pytest.raises(InputError, match="would overwrite what is read"):
        check_apart([str(log)], {"--json": str(link)})


def test_standard_output_and_devices_take_several(log):
    check_apart([str(log)], {"--json": "-", "--plot": "/dev/null", "--timeline": "/dev/null"})
