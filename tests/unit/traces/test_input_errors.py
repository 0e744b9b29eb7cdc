import pytest

from lachesis.errors import InputError, InternalError, LachesisError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            InputError("must be at least 1", path="a.csv", row=7, field="output_tokens", value=-3),
            "a.csv:7: output_tokens = -3, must be at least 1",
        ),
        (InputError("no such file or folder", path="x.json"), "x.json: no such file or folder"),
        (
            InputError("must be unique", path="t.trace", row="session a", field="session"),
            "t.trace: session a: session, must be unique",
        ),
        (InputError("two\nlines"), "two lines"),
        (
            InputError("too long", field="x", value="a\n" + "b" * 200),
            "x = a " + "b" * 77 + "…, too long",
        ),
    ],
)
def test_an_input_error_is_one_line(error, text):
    assert str(error) == text


def test_exit_codes_tell_whose_fault_it_is():
    assert InputError("x").exit_code == 2
    assert InternalError("x").exit_code == 1
    assert issubclass(InputError, LachesisError)


def test_a_file_is_added_only_where_none_is_known():
    assert str(InputError("bad", row=3).located("f")) == "f:3: bad"
    assert str(InputError("bad", path="g", row=3).located("f")) == "g:3: bad"
