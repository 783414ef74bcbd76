"""The best of each row are those that PyTorch finds, in float32 and in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ahop.kernels.best import first_seen, largest


def drawn(rows, columns, seed, kinds=50):
    """Few values, so that there are ties."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-kinds, kinds, (rows, columns), generator=generator).float(), generator


@given(st.integers(0, 40), st.integers(1, 3000), st.integers(1, 12), st.integers(0, 1000))
def test_the_largest_are_those_of_a_sort(rows, columns, count, seed):
    table, _ = drawn(rows, columns, seed)
    expected = table.sort(1, descending=True).values[:, : min(count, columns)]
    for given_ in (table, table.double()):
        assert largest(given_, min(count, columns)).equal(expected.to(given_))


@given(st.integers(0, 40), st.integers(1, 3000), st.sampled_from([0.1, 0.5, 1.0]), st.integers(0, 1000))
def test_the_first_is_the_best_of_those_that_a_row_sees(rows, columns, share, seed):
    table, generator = drawn(rows, columns, seed)
    less = torch.randint(0, 5, (columns,), generator=generator).float()
    seen = torch.rand(rows + columns, generator=generator) < share
    places = torch.arange(rows)[:, None] + torch.arange(columns)
    values = (table - less).masked_fill(~seen[places], -torch.inf)
    best = values.max(1).values if columns else torch.empty(0)
    for given_ in (table, table.double()):
        found = first_seen(given_, less.to(given_), seen)
        assert values.gather(1, found[:, None]).squeeze(1).equal(best)


@pytest.mark.parametrize("threads_", [1, 2, 5])
def test_threads_share_the_rows(threads, threads_):
    threads(threads_)
    table, _ = drawn(997, 301, 0)
    assert largest(table, 10).equal(table.topk(10, 1).values)
    assert first_seen(table, torch.zeros(301), torch.ones(1298, dtype=torch.bool)).equal(table.argmax(1))
