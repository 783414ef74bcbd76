"""The extremes of long rows are those that sorting finds."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from ahop._extremes import below, two_best


@given(st.sampled_from([1, 7, 600]), st.integers(1, 100) | st.integers(2**12, 2**12 + 40), st.integers(0, 1000))
def test_the_two_best_are_those_of_a_sort(rows, columns, seed):
    rows = min(rows, 2**16 // columns)
    # Few values, so that there are ties.
    table = torch.randint(
        0, 1 + seed * columns // 100, (rows, columns), generator=torch.Generator().manual_seed(seed)
    ).float()
    best, second = two_best(table)
    ranked = table.sort(1, descending=True).values
    assert best.equal(ranked[:, 0])
    assert second.equal(ranked[:, 1] if columns > 1 else torch.full((rows,), -torch.inf))


@given(st.sampled_from([1, 5, 2**10]), st.integers(1, 100), st.integers(0, 1000), st.floats(-3, 3))
def test_what_lies_below_a_level_is_found(rows, columns, seed, level):
    table = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    levels = level + torch.arange(rows)[:, None] / rows
    found = torch.zeros(rows, columns, dtype=torch.bool)
    found[below(table, levels)] = True
    assert found.equal(table < levels)
    assert len(below(table, levels)[0]) == int(found.sum())
