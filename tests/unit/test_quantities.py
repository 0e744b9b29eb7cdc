"""Times, shares and pairs as people write them."""

import pytest

from lachesis.errors import InputError
from lachesis.quantities import parse_pairs, parse_seconds, parse_share


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60ms", 0.06), ("60 ms", 0.06), ("2s", 2.0), ("0.5min", 30.0), ("1.5h", 5400.0),
        ("30d", 2_592_000.0), ("250us", 0.00025), ("250µs", 0.00025), ("1e-3s", 0.001),
    ],
)  # fmt: skip
def test_times_with_units(text: str, seconds: float) -> None:
    assert parse_seconds(text, "--tpot") == seconds


def test_bare_seconds_and_zero_only_where_they_are_allowed() -> None:
    assert parse_seconds("0.05", "--step-time", bare=True) == 0.05
    assert parse_seconds("0ms", "--step-overhead", zero=True) == 0.0
    with pytest.raises(InputError, match="--tpot = 60, must be a time above 0"):
        parse_seconds("60", "--tpot")
    with pytest.raises(InputError, match="above 0"):
        parse_seconds("0ms", "--tpot")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ms",
        "60 parsecs",
        "-2s",
        "nan",
        "nans",
        "infs",
        "1e9d",
        "2s3",
        "1e",
        "1_",
        "2 s s",
        "--1s",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InputError, match="must be a time"):
        parse_seconds(text, "--horizon", bare=True)


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), ("0.02", 0.02), (" 12.5% ", 0.125)])
def test_shares(text: str, share: float) -> None:
    assert parse_share(text, "--precision") == share


@pytest.mark.parametrize("text", ["0", "0%", "1", "100%", "-1%", "nan", "two", "", "%"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(InputError, match="--precision"):
        parse_share(text, "--precision")


def test_pairs() -> None:
    assert parse_pairs(["a=b", "c = d=e"], "--map", "A=B") == {"a": "b", "c": "d=e"}
    for texts in (["a"], ["=b"], ["a="], ["a=b", "a=c"]):
        with pytest.raises(InputError, match="--map"):
            parse_pairs(texts, "--map", "A=B")
