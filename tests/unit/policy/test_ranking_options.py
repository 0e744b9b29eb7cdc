"""Options of policies that rank workers, as they are written on the command line."""

import pytest

from lachesis.errors import InputError
from lachesis.policy import RankingOptions, choose_policy


def test_options_follow_the_name():
    policy = choose_policy("lachesis:reserve=live, margin=2,ranked_against=workers-in-hbm")
    assert policy.name == "lachesis:reserve=live, margin=2,ranked_against=workers-in-hbm"
    assert policy.ranking == RankingOptions(
        ranked_against="workers-in-hbm", reserve="live", margin=2.0
    )
    assert choose_policy("lachesis-oracle:capacity=free").ranking.by == "true"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "options are ranked_against, capacity, reserve, margin"),
        ("reserve", "Invalid enum value ''"),
        ("reserve=some", "Invalid enum value 'some'"),
        ("by=true", "options are"),
        ("margin=1,margin=2", "each once"),
        ("margin=0", "margin must be above 0"),
        ("margin=nan", "margin must be above 0"),
        ("margin=101", "at most 100"),
        ("margin=much", "Expected `float`"),
    ],
)
def test_other_options_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        choose_policy(f"lachesis:{options}")


def test_policies_that_rank_nothing_take_no_options():
    with pytest.raises(InputError, match="must be one of"):
        choose_policy("hbm-first:margin=2")
