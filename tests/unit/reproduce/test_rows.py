"""When a published number or range counts as met."""

import pytest

from lachesis.reproduce.row import Claim, band_row, end_rows, number_row

CLAIM = Claim("Figure 4(a)", "separability", "Section 3.3", decimals=2)


@pytest.mark.parametrize(
    ("ours", "tolerance", "off", "within"),
    [
        (100, 0.0, 0.0, True),
        (101, 0.0, 0.01, False),
        (102, 0.02, 0.02, True),
        (97.9, 0.02, -0.021, False),
    ],
)
def test_a_number_is_met_within_its_tolerance(ours, tolerance, off, within):
    row = number_row(CLAIM, "w", 100, ours, tolerance=tolerance)
    assert row.deviation == pytest.approx(off)
    assert row.within is within


@pytest.mark.parametrize(
    ("ours", "within", "off"),
    [
        (0.97, True, 0.0),
        (0.9551, True, 0.0),
        (0.9549, False, 0.9549 / 0.96 - 1),
        (0.9949, True, 0.0),
        (1.0, False, 1.0 / 0.99 - 1),
        (float("nan"), False, None),
    ],
)
def test_a_range_is_met_at_the_precision_that_is_published(ours, within, off):
    row = band_row(CLAIM, "w", (0.96, 0.99), ours)
    assert row.within is within
    if off is not None:
        assert row.deviation == pytest.approx(off)


def test_the_ends_of_a_range_belong_to_the_outermost_workloads():
    low, high = end_rows(CLAIM, (0.60, 0.90), {"b": 0.62, "a": 0.70, "c": 0.80}, near=0.1)
    assert (low.subject, low.ours, low.note, low.within) == ("lowest", 0.62, "b", True)
    assert (high.subject, high.ours, high.note, high.within) == ("highest", 0.80, "c", False)
    assert high.workloads == ("a", "b", "c")


def test_an_end_is_missed_from_outside_however_near():
    low, _ = end_rows(CLAIM, (0.60, 0.90), {"a": 0.59, "b": 0.9}, near=0.1)
    assert not low.within


def test_rows_as_json():
    document = band_row(CLAIM, "w", (0.96, 0.99), 0.97, note="n").to_json()
    assert document["published"] == [0.96, 0.99]
    assert document["name"] == "w: separability"
    assert number_row(CLAIM, "w", 5, 5, tolerance=0).to_json()["published"] == 5
