"""Any grid: every combination once, ids apart, and nothing lost between cells and shards."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lachesis.sweeps import Specification, expand
from lachesis.sweeps.shards import shards_of

AXES = st.fixed_dictionaries(
    {
        "trace": st.lists(st.sampled_from(["a.jsonl", "tau3"]), min_size=1, unique=True),
        "policy": st.lists(
            st.sampled_from(["hbm-first", "hbf-only", "lachesis"]), min_size=1, unique=True
        ),
    },
    optional={
        "memory": st.lists(st.sampled_from(["1/7", "2/6", "8/8*"]), min_size=1, unique=True),
        "slo": st.lists(st.sampled_from(["tight", "loose"]), min_size=1, unique=True),
        "load": st.lists(st.integers(1, 99), min_size=1, max_size=3, unique=True),
        "seed": st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=3, unique=True),
        "flash.pe_cycles": st.lists(st.integers(1, 10**6), min_size=1, max_size=2, unique=True),
    },
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(AXES)
def test_every_combination_is_one_run(axes):
    asked = Specification.parse({"grid": axes})
    cells = expand(asked)
    runs = [(cell, policy) for cell in cells for policy in cell.policies]
    expected = 1
    for values in axes.values():
        expected *= len(values)
    assert len(runs) == asked.runs == expected
    assert len({cell.id for cell in cells}) == len(cells)
    assert len({cell.run_id(policy) for cell, policy in runs}) == len(runs)
    seen = {
        (cell.trace, str(cell.plan.settings.memory), cell.plan.settings.slo.name,
         cell.load.sessions, cell.plan.seed, cell.plan.settings.flash.pe_cycles, policy)
        for cell, policy in runs
    }  # fmt: skip
    assert len(seen) == len(runs)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 700))
def test_shards_hold_every_cell_in_order(count):
    (cell,) = expand(Specification.parse({"grid": {"trace": "tau3", "load": 8}}))
    cells = [cell] * count
    shards = shards_of(cells, "sweep", timed=False)
    assert sum(len(shard.cells) for shard in shards) == count
    assert [shard.number for shard in shards] == list(range(len(shards)))
    assert len({len(shard.cells) for shard in shards[:-1]}) <= 1
    assert all(shard.cells for shard in shards)
