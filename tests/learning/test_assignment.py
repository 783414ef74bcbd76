from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ahop import memory_budget
from ahop.learning.assignment import assigned


def of(table, room, floor=-float("inf"), k=None):
    worth, columns = table.sort(dim=1, descending=True, stable=True)
    return assigned(worth[:, :k], columns[:, :k], room, lambda rows: table[rows], floor)


def total(table, found, floor):
    return sum(floor if to < 0 else float(row[to]) for row, to in zip(table, found, strict=True))


def best_of_all(table, room, floor):
    """By trying everything; to be left out costs more than anything where there is no floor."""
    last = -1e6 if floor == -float("inf") else floor
    return max(
        total(table, found, last)
        for found in product(range(-1, table.shape[1]), repeat=len(table))
        if all(found.count(column) <= int(seats) for column, seats in enumerate(room))
    )


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_nothing_is_better_than_the_best_assignment(seed, count, width, open_set):
    generator = torch.Generator().manual_seed(seed)
    table = 5 * torch.randn(count, width, generator=generator, dtype=torch.float64)
    room, floor = torch.randint(0, 3, (width,), generator=generator), 0.1 if open_set else -float("inf")
    found = of(table, room, floor).tolist()
    assert all(found.count(column) <= int(seats) for column, seats in enumerate(room))
    last = floor if open_set else -1e6
    assert total(table, found, last) == pytest.approx(best_of_all(table, room, floor))


def test_seats_below_the_floor_are_all_alike():
    table = torch.tensor([[1.0, -10.0], [0.9, -20.0]])
    assert of(table, torch.tensor([1, 1]), floor=0.0).tolist() == [0, -1]


@pytest.mark.parametrize(("room", "floor"), [(1, -float("inf")), (3, -float("inf")), (1, -0.5)])
def test_candidates_give_what_the_whole_table_gives_where_they_are_enough(room, floor):
    generator = torch.Generator().manual_seed(0)
    width, count = 500 // room, 480
    places = torch.rand(width, 3, generator=generator, dtype=torch.float64)
    asked = places[torch.arange(count) % width] + 0.02 * torch.randn(count, 3, generator=generator, dtype=torch.float64)
    table, seats = -100 * torch.cdist(asked, places).square(), torch.full((width,), room)
    exact = of(table, seats, floor)
    with memory_budget(2**20):
        few = of(table, seats, floor, k=60)
    assert few.equal(exact) and not exact.equal(table.argmax(1))


def test_queries_whose_candidates_are_all_taken_are_assigned_among_the_rest():
    generator = torch.Generator().manual_seed(1)
    # All ask for the same ten first.
    table = torch.rand(400, 400, generator=generator, dtype=torch.float64)
    table[:, :10] += 5
    with memory_budget(2**20):
        found = of(table, torch.ones(400, dtype=torch.long), k=10)
    assert found.sort().values.equal(torch.arange(400))


def test_room_that_takes_more_memory_than_there_is_says_so():
    table = torch.rand(3000, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    table[:, 0] += 1
    with (
        memory_budget(2**20),
        pytest.raises(ValueError, match=r"room must be smaller .* and memory_budget allows 1,048,576"),
    ):
        of(table, torch.full((4,), 1000))
    # Room for all takes none.
    with memory_budget(2**20):
        assert of(table, torch.full((4,), 3000)).equal(table.argmax(1))
